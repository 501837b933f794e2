//! `pilothouse plan --server-dry-run` changes nothing: all objects of the API server are the same before and after, to the last field, whatever
//! plugin is asked and whatever it would have the host do.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, install_crd},
    everything::Everything,
    third_party::PYTORCH_JOB,
};
use serde_json::{Value, json};

use crate::{
    chart::PLUGINS as REFERENCE_PLUGINS,
    command::Ended,
    decorators::{ANSWER, answer, children, decorate, label, start_with, until_labelled},
    plan::{apply_samples, plan_as, report},
    suite::{Suite, tests},
    test_env::{TestEnv, answering, app, config_map, is_ready, misbehaver, sextet},
};

/// The plugins that are at work before: those of the repository, and some of the tests.
const AT_WORK: [&str; 6] = ["scripted", "scripted-cluster", "misbehaver", "sextet", "farewell", "census"];

/// The guests that are asked: those at work, and others for the same kinds. Of two more, no CRD is in the repository.
const ASKED: [&str; 15] = [
    "scripted",
    "scripted-cluster",
    "scripted-finalizing",
    "misbehaver",
    "forgetful",
    "sextet",
    "sextet-next",
    "farewell",
    "census",
    "app-service-next",
    "app-service-fails",
    "decorator",
    "decorator-second",
    "decorator-scripted",
    "service-per-pod",
];

/// What the log of a host at work says of a write.
const SAYS_WRITTEN: [&str; 5] = ["Deleting", "Creating", "Updating", "Recreating", "no longer wanted"];

pub fn register(suite: &mut Suite) {
    tests!(suite, a_dry_run_of_each_plugin_changes_nothing, a_dry_run_as_the_account_of_a_plugin_changes_nothing);
}

async fn a_dry_run_of_each_plugin_changes_nothing(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    let census = artifacts::repository().join("tests/guests/census/crd.yaml");
    for crd in [PYTORCH_JOB.fetch().await?, census] {
        install_crd(&env.namespace.client(), &crd).await?;
    }
    let mut tried = Tried::default();
    // Before any host everything has to be created.
    apply_samples(env).await?;
    for object in first_objects() {
        env.namespace.apply(object).await?;
    }
    tried.all(env).await?;
    ensure!(tried.children["created"] > 10, "{tried:?}");

    env.start(&[&REFERENCE_PLUGINS[..], &AT_WORK].concat()).await?;
    for name in ["keeps", "changes", "deletes", "recreates", "ordered", "reversed"] {
        env.namespace.until("Scripted", name, "to be ready", is_ready).await?;
    }
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    env.host.stop().await?;
    for object in next_objects() {
        env.namespace.apply(object).await?;
    }
    env.namespace.patch("ConfigMap", "left", json!({"data": {"value": "drifted"}})).await?;
    for (kind, name) in [("Farewell", "guest"), ("Scripted", "going"), ("AppService", "gone")] {
        env.namespace.delete(kind, name).await?;
    }
    tried.all(env).await?;
    for what in ["created", "changed", "recreated", "deleted", "heldBack"] {
        ensure!(tried.children[what] > 0, "nothing is {what}: {tried:?}");
    }
    Ok(())
}

/// As an account that may write for real. What a decorator takes away from the object itself is among it.
async fn a_dry_run_as_the_account_of_a_plugin_changes_nothing(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["scripted", "decorator"]).await?;
    for object in first_objects().into_iter().filter(|object| object["kind"] == "Scripted") {
        env.namespace.apply(object).await?;
    }
    for name in ["keeps", "changes", "deletes", "recreates", "ordered", "reversed"] {
        env.namespace.until("Scripted", name, "to be ready", is_ready).await?;
    }
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.metrics_at_rest().await?;
    env.host.stop().await?;
    for object in next_objects().into_iter().filter(|object| object["kind"] == "Scripted") {
        env.namespace.apply(object).await?;
    }
    decorate(env, ANSWER, &children([])).await?;
    for is_selected in ["yes", "no"] {
        label(env, json!({"decorated": is_selected})).await?;
        let before = Everything::at_rest(&env.namespace.client()).await?;
        for plugin in ["scripted", "decorator"] {
            for named in [&[][..], &["--plugin", plugin]] {
                let own = ["-o", "json", "--server-dry-run", "--host-namespace", &env.namespace.name];
                let ended = plan_as(env, &artifacts::guest(plugin)?, &[&own, named].concat()).await?;
                ensure!(report(&ended)?["counts"]["changed"] != 0, "{plugin} would change nothing: {ended:?}");
                before.is_unchanged(&env.namespace.client()).await.with_context(|| format!("{ended:?}"))?;
                says_nothing_is_written(&ended)?;
            }
        }
    }
    Ok(())
}

/// What the plans have been about.
#[derive(Debug, Default)]
struct Tried {
    /// The children, by what would become of them.
    children: BTreeMap<String, u64>,
}

impl Tried {
    /// Tries out all plugins, each time with all objects as they are.
    async fn all(&mut self, env: &TestEnv) -> Result<()> {
        let before = Everything::at_rest(&env.namespace.client()).await?;
        ensure!(before.number() > 100, "an API server of its own has more than {} objects", before.number());
        for plugin in REFERENCE_PLUGINS.iter().chain(&ASKED) {
            let file = artifacts::any_plugin(plugin)?;
            let ended = plan_as(env, &file, &["-o", "json", "--server-dry-run", "--without-plugin-object"]).await?;
            let counts = report(&ended).with_context(|| plugin.to_string())?["counts"]["children"].clone();
            for (what, number) in counts.as_object().context("no counts")? {
                *self.children.entry(what.clone()).or_default() += number.as_u64().unwrap_or_default();
            }
            before.is_unchanged(&env.namespace.client()).await.with_context(|| format!("{plugin}: {ended:?}"))?;
            says_nothing_is_written(&ended)?;
        }
        Ok(())
    }
}

fn says_nothing_is_written(ended: &Ended) -> Result<()> {
    let told = SAYS_WRITTEN.iter().find(|words| ended.errors.contains(*words));
    ensure!(told.is_none(), "the log says {told:?}, as if it had been done: {}", ended.errors);
    Ok(())
}

fn map(name: &str, value: &str) -> Value {
    json!({"object": config_map(name, json!({"value": value}))})
}

/// A child that has to be created anew for another value.
fn immutable(value: &str) -> Value {
    let mut child = config_map("immutable", json!({"value": value}));
    child["immutable"] = json!(true);
    json!({"object": child, "onImmutable": "recreate"})
}

fn in_order(names: [&str; 3], value: &str) -> Value {
    let [first, second, third] = names.map(|name| map(name, value));
    let after = |mut child: Value, index: usize| {
        child["after"] = json!([index]);
        child
    };
    json!([first, after(second, 0), after(third, 1)])
}

fn first_objects() -> Vec<Value> {
    let scripted = |name: &str, children: Value| answering(name, json!({"children": children}));
    let mut many = misbehaver("many", "several");
    many["spec"]["number"] = json!(12);
    let of_test = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "test.pilothouse.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    vec![
        scripted("keeps", json!([map("kept", "one"), map("kept-too", "one")])),
        scripted("changes", json!([map("changed", "one")])),
        scripted("deletes", json!([map("deleted", "one"), map("left", "one")])),
        scripted("recreates", json!([immutable("one")])),
        scripted("ordered", json!([])),
        scripted("reversed", in_order(["r-first", "r-second", "r-third"], "one")),
        scripted("going", in_order(["g-first", "g-second", "g-third"], "one")),
        many,
        sextet("six"),
        app("gone"),
        app("stays"),
        of_test("Farewell", "guest", json!({})),
        of_test("Census", "census", json!({"selector": "app=web"})),
    ]
}

fn next_objects() -> Vec<Value> {
    let scripted = |name: &str, children: Value| answering(name, json!({"children": children}));
    let kept = |name: &str| {
        let mut child = map(name, "two");
        child["handling"] = json!("keep");
        child
    };
    vec![
        scripted("keeps", json!([kept("kept"), kept("kept-too"), map("new", "one")])),
        scripted("changes", json!([map("changed", "two")])),
        scripted("deletes", json!([map("left", "one")])),
        scripted("recreates", json!([immutable("two")])),
        scripted("ordered", in_order(["o-first", "o-second", "o-third"], "one")),
        scripted("reversed", json!([])),
    ]
}
