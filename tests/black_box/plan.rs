//! `pilothouse plan`: what it says is what the swap then does, and it writes nothing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::ListParams;
use pilothouse_control_plane::RESTRICTED;
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, PATIENCE, condition, install_crd},
    third_party::PYTORCH_JOB,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    chart::PLUGINS as REFERENCE_PLUGINS,
    command::{Ended, file, pilothouse, repacked, with_manifest},
    compose::config_of as read_config,
    permissions::{allow, rule},
    plugin_objects::plugin_object,
    suite::{Suite, tests},
    test_env::{TestEnv, answering, app, config_map, is_ready, misbehaver, scripted, sextet},
};

/// The label that all children have.
const PLUGIN: &str = "pilothouse.dev/plugin";

/// The annotation with the digest of what was applied.
const APPLIED: &str = "pilothouse.dev/applied";

/// The exit code of a plan with which something would change.
pub const CHANGES: i32 = 2;

/// The number of objects of a plan over many.
const MANY: usize = 500;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plan_is_what_the_swap_then_does,
        a_plan_of_each_reference_plugin_is_what_it_then_does,
        a_plan_over_many_objects_writes_nothing,
        a_child_that_waits_for_another_is_in_the_eventual_plan,
        the_values_of_secrets_are_not_shown,
        the_values_of_secrets_are_not_logged,
        deletes_that_would_be_held_back_are_told,
        children_of_a_kind_that_is_no_longer_declared_are_deleted,
        objects_that_are_not_reconciled_are_counted,
        an_object_in_error_is_told_with_its_reason,
        a_finalizer_is_a_change_also_of_an_object_in_error,
        what_a_version_says_cannot_change_the_terminal,
        what_cannot_be_read_is_an_error,
        objects_of_one_namespace_see_the_whole_cluster,
        a_namespace_that_selects_nothing_by_mistake_is_an_error,
        a_kind_that_comes_from_the_configuration_is_that_of_the_plugin,
        a_dry_run_tells_what_the_api_server_refuses,
        a_dry_run_deletes_nothing,
        a_name_that_is_taken_is_an_error,
        an_object_that_would_be_ready_no_longer_is_in_error,
        a_wrong_argument_is_no_change,
        a_plugin_without_a_version_at_work_is_named_as_such,
        what_is_no_component_is_told_in_one_line,
    );
}

/// The children by kind and name, each with the digest of what was applied. A plan does not tell that of a Secret, so it is empty here.
type Children = BTreeMap<(String, String), String>;

async fn a_plan_is_what_the_swap_then_does(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let names = env.many_at_rest(3).await?;
    env.metrics_at_rest().await?;
    let same = plan(env, "app-service", &[]).await?;
    ensure!(same.code == 0, "the version at work would change something: {same:?}");

    let next = plan(env, "app-service-next", &["--eventual"]).await?;
    ensure!(next.code == CHANGES, "{next:?}");
    let report = report(&next)?;
    ensure!(report["counts"]["changed"] == names.len() && report["counts"]["unchanged"] == 0, "{}", report["counts"]);
    let update = &report["objects"][0]["steps"][0][0];
    let path = "/metadata/annotations/apps.example.com~1revision";
    let fields = update["fields"].as_array().context("no fields")?;
    let field = fields.iter().find(|field| field["path"] == path).with_context(|| format!("no {path}: {update}"))?;
    ensure!(field["from"].is_null() && field["to"] == "2", "{field}");

    let expected = after(children(env).await?, &report);
    env.replace("app-service", "app-service-next")?;
    for name in &names {
        let is_next = |it: &Value| it["metadata"]["annotations"]["apps.example.com/revision"] == "2";
        env.namespace.until("Deployment", name, "to have the mark of the new version", is_next).await?;
    }
    env.metrics_at_rest().await?;
    ensure!(children(env).await? == expected, "the swap did something else: {:?}", children(env).await?);
    let done = plan(env, "app-service-next", &["--eventual"]).await?;
    ensure!(done.code == 0, "there is more to do: {done:?}");
    Ok(())
}

async fn a_plan_of_each_reference_plugin_is_what_it_then_does(env: &mut TestEnv) -> Result<()> {
    install_crd(&env.namespace.client(), &PYTORCH_JOB.fetch().await?).await?;
    let applied = apply_samples(env).await?;
    let mut expected = Children::new();
    for plugin in REFERENCE_PLUGINS {
        let ended = plan(env, plugin, &["--eventual"]).await?;
        let report = report(&ended).with_context(|| format!("{plugin}: {ended:?}"))?;
        ensure!(report["counts"]["inError"] == 0, "{plugin}: {report}");
        expected = after(expected, &report);
    }
    ensure!(expected.len() > REFERENCE_PLUGINS.len(), "they have hardly any children: {expected:?}");
    env.start(&REFERENCE_PLUGINS).await?;
    for kind in ["AppService", "LLMModel.llm.example.com", "LLMDeployment", "ModelDeployment"] {
        for object in env.namespace.list(kind).await? {
            let name = object["metadata"]["name"].as_str().context("no name")?;
            env.namespace.until(kind, name, "to be ready", is_ready).await?;
        }
    }
    env.metrics_at_rest().await?;
    let mut found = children(env).await?;
    // What a job has been through since is kept there, so that only that it exists can be foretold.
    for children in [&mut expected, &mut found] {
        let state = children.get_mut(&("ConfigMap".to_owned(), "mnist-pytorchjob-state".to_owned()));
        *state.context("the job has no state")? = String::new();
    }
    ensure!(found == expected, "planned: {expected:#?}\nfound: {found:#?}");
    // Their Pods hold GPUs of the cluster that all tests share.
    for (kind, name) in applied {
        env.namespace.delete(&kind, &name).await?;
    }
    Ok(())
}

async fn a_plan_over_many_objects_writes_nothing(env: &mut TestEnv) -> Result<()> {
    for number in 0..MANY {
        env.namespace.apply(app(&format!("web-{number}"))).await?;
    }
    let (before, begun) = (env.writes_of(HOST_USER).await?, Instant::now());
    let ended = plan(env, "app-service", &["--eventual"]).await?;
    eprintln!("a plan over {MANY} objects took {:?}", begun.elapsed());
    let counts = report(&ended)?["counts"].clone();
    ensure!(
        ended.code == CHANGES && counts["changed"] == MANY && counts["children"]["created"] == 2 * MANY,
        "{counts}"
    );
    let written = env.writes_of(HOST_USER).await?;
    ensure!(written == before, "it wrote: {:?}", &written[before.len()..]);
    Ok(())
}

async fn a_child_that_waits_for_another_is_in_the_eventual_plan(env: &mut TestEnv) -> Result<()> {
    let first = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "first"}, "spec": {
        "selector": {"matchLabels": {"app": "first"}},
        "template": {"metadata": {"labels": {"app": "first"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    }});
    let children = json!([{"object": first}, {"object": config_map("second", json!({"a": "b"})), "after": [0]}]);
    env.namespace.apply(answering("web", json!({"children": children}))).await?;
    let names = |report: &Value| {
        let steps = report["objects"][0]["steps"].as_array().cloned().unwrap_or_default();
        let names = |step: &Value| {
            let changes = step.as_array().cloned().unwrap_or_default();
            changes.iter().map(|change| change["name"].clone()).collect::<Vec<_>>()
        };
        steps.iter().map(names).collect::<Vec<_>>()
    };
    let soon = report(&plan(env, "scripted", &[]).await?)?;
    ensure!(names(&soon) == [[json!("first")]], "{soon}");
    ensure!(soon["objects"][0]["addsFinalizer"] == true, "children in an order need one: {soon}");
    let in_the_end = report(&plan(env, "scripted", &["--eventual"]).await?)?;
    ensure!(names(&in_the_end) == [[json!("first")], [json!("second")]], "{in_the_end}");

    env.start(&["scripted"]).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    ensure!(self::children(env).await? == after(Children::new(), &in_the_end), "{:?}", self::children(env).await?);
    Ok(())
}

async fn the_values_of_secrets_are_not_shown(env: &mut TestEnv) -> Result<()> {
    let secret = |value: &str| {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"token": value}});
        json!({"children": [{"object": secret}]})
    };
    env.namespace.apply(answering("web", secret("not-for-everybody"))).await?;
    let hidden = ["not-for-everybody", "bm90LWZvci1ldmVyeWJvZHk", "nor-this", "bm9yLXRoaXM"];
    for output in ["json", "text"] {
        let created = plan_as(env, &artifacts::guest("scripted")?, &["-o", output]).await?;
        ensure!(created.code == CHANGES && created.output.contains("token"), "{created:?}");
        ensure!(!hidden.iter().any(|value| created.output.contains(value)), "it is shown: {created:?}");
    }
    // Nor what they can be found from by trying.
    let created = report(&plan_as(env, &artifacts::guest("scripted")?, &["-o", "json"]).await?)?;
    let child = &created["objects"][0]["steps"][0][0];
    let applied = &child["body"]["metadata"]["annotations"][APPLIED];
    ensure!(child["kind"] == "Secret" && child["digest"].is_null() && applied == "(hidden)", "{child}");
    env.start(&["scripted"]).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.host.stop().await?;
    env.namespace.apply(answering("web", secret("nor-this"))).await?;
    for output in ["json", "text"] {
        let changed = plan_as(env, &artifacts::guest("scripted")?, &["-o", output]).await?;
        ensure!(changed.code == CHANGES && changed.output.contains("/data/token"), "{changed:?}");
        ensure!(!hidden.iter().any(|value| changed.output.contains(value)), "it is shown: {changed:?}");
    }
    Ok(())
}

/// A change of the answer and a drift are logged with the fields, as a plan has them.
async fn the_values_of_secrets_are_not_logged(env: &mut TestEnv) -> Result<()> {
    let secret = |value: &str| {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"token": value}});
        answering("web", json!({"children": [{"object": secret}]}))
    };
    let has = |value: &'static str| move |secret: &Value| secret["data"]["token"] == value;
    env.host.set_log_level(Some("debug"));
    env.namespace.apply(secret("first-value")).await?;
    env.start(&["scripted"]).await?;
    env.namespace.until("Secret", "key", "to be there", has("Zmlyc3QtdmFsdWU=")).await?;
    env.namespace.apply(secret("second-value")).await?;
    env.namespace.until("Secret", "key", "to have the other value", has("c2Vjb25kLXZhbHVl")).await?;
    env.namespace.patch("Secret", "key", json!({"data": {"token": "ZHJpZnRlZA=="}})).await?;
    env.namespace.until("Secret", "key", "to be repaired", has("c2Vjb25kLXZhbHVl")).await?;
    let log = env.host.log();
    ensure!(log.contains("/data/token"), "the field is not told: {log}");
    for value in ["Zmlyc3QtdmFsdWU", "c2Vjb25kLXZhbHVl", "ZHJpZnRlZA"] {
        let told: Vec<_> = log.lines().filter(|line| line.contains(value)).collect();
        ensure!(told.is_empty(), "{value} is told: {told:#?}");
    }
    Ok(())
}

/// More than half of twelve children, of an object that nobody has changed.
async fn deletes_that_would_be_held_back_are_told(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut many = misbehaver("many", "several");
    many["spec"]["number"] = 12.into();
    env.namespace.apply(many).await?;
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    let held = plan(env, "forgetful", &[]).await?;
    let report = report(&held)?;
    ensure!(held.code == CHANGES, "{held:?}");
    ensure!(report["counts"]["children"]["heldBack"] == 12 && report["counts"]["children"]["deleted"] == 0, "{report}");
    let cause = report["objects"][0]["steps"][0][0]["cause"].as_str().unwrap_or_default();
    ensure!(cause.contains("12 of 12 children of an object that has not changed"), "{cause}");
    let text = plan_as(env, &artifacts::guest("forgetful")?, &["--eventual"]).await?;
    ensure!(text.output.contains("? ConfigMap many-0: held back"), "{text:?}");
    ensure!(text.output.contains("0 deleted, 12 held back"), "what is held back is counted once: {text:?}");
    Ok(())
}

/// Which kinds a version had is in the host's record.
async fn children_of_a_kind_that_is_no_longer_declared_are_deleted(env: &mut TestEnv) -> Result<()> {
    env.start(&["sextet"]).await?;
    env.namespace.apply(sextet("six")).await?;
    env.namespace.until("Sextet", "six", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    let ended = plan(env, "sextet-next", &["--eventual"]).await?;
    let report = report(&ended)?;
    let steps = report["objects"][0]["steps"].as_array().context("no steps")?;
    let deletes = steps.iter().flat_map(|step| step.as_array().into_iter().flatten());
    let deletes: Vec<_> = deletes.filter(|change| change["action"] == "Delete").collect();
    ensure!(deletes.len() == 2, "{report}");
    for delete in deletes {
        ensure!(delete["kind"] == "Secret" && delete["cause"] == "its kind is no longer declared", "{delete}");
    }
    let expected = after(children(env).await?, &report);
    env.replace("sextet", "sextet-next")?;
    eventually(PATIENCE, "its children of the former kind to go", async || {
        let left = env.namespace.api("Secret")?.list(&ListParams::default().labels(PLUGIN)).await?.items.len();
        Ok(if left == 0 { Look::Found(()) } else { Look::NotYet(left.to_string()) })
    })
    .await?;
    env.metrics_at_rest().await?;
    ensure!(children(env).await? == expected, "the swap did something else");
    Ok(())
}

async fn objects_that_are_not_reconciled_are_counted(env: &mut TestEnv) -> Result<()> {
    for (name, annotations, finalizers) in [
        ("suspended", json!({"pilothouse.dev/suspended": "true"}), json!([])),
        ("going", json!({}), json!(["tests.pilothouse.dev/held"])),
        ("web", json!({}), json!([])),
    ] {
        let mut object = app(name);
        object["metadata"]["annotations"] = annotations;
        object["metadata"]["finalizers"] = finalizers;
        env.namespace.apply(object).await?;
    }
    env.namespace.delete("AppService", "going").await?;
    let ended = plan(env, "app-service", &[]).await?;
    let report = report(&ended)?;
    let states: Vec<_> = report["objects"].as_array().into_iter().flatten().map(|it| &it["state"]).collect();
    ensure!(states == ["Deleting", "LeftAlone", "Changed"], "{report}");
    ensure!(report["objects"][1]["reason"] == "Suspended", "{report}");
    env.namespace.patch("AppService", "going", json!({"metadata": {"finalizers": null}})).await.map(drop)
}

/// An error that the object has today is no reason to stop a new version.
async fn an_object_in_error_is_told_with_its_reason(env: &mut TestEnv) -> Result<()> {
    env.namespace.apply(answering("web", json!({"verdict": {"invalid": "no good colour"}}))).await?;
    let brought = plan(env, "scripted", &[]).await?;
    let object = report(&brought)?["objects"][0].clone();
    ensure!(brought.code == 1, "{brought:?}");
    ensure!(
        object["state"] == "InError" && object["reason"] == "Invalid" && object["message"] == "no good colour",
        "{object}"
    );
    env.start(&["scripted"]).await?;
    env.stalled("Scripted", "web", "Invalid").await?;
    let present = plan(env, "scripted", &[]).await?;
    ensure!(present.code == 0 && report(&present)?["counts"]["inErrorToday"] == 1, "{present:?}");
    Ok(())
}

async fn a_finalizer_is_a_change_also_of_an_object_in_error(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", json!({"verdict": {"invalid": "no good colour"}}))).await?;
    env.stalled("Scripted", "web", "Invalid").await?;
    env.host.stop().await?;
    let ended = plan(env, "scripted-finalizing", &[]).await?;
    let object = report(&ended)?["objects"][0].clone();
    ensure!(object["isInErrorToday"] == true && object["addsFinalizer"] == true, "{object}");
    ensure!(ended.code == CHANGES, "the host would write it: {ended:?}");
    Ok(())
}

/// Whoever asks about a version does so because nobody knows yet what it does.
async fn what_a_version_says_cannot_change_the_terminal(env: &mut TestEnv) -> Result<()> {
    let escape = "\u{1b}[2J\u{7}\u{202e}";
    env.namespace.apply(answering("bad", json!({"verdict": {"invalid": escape}}))).await?;
    let map = config_map("map", json!({"text": escape}));
    env.namespace.apply(answering("web", json!({"children": [{"object": map}]}))).await?;
    let ended = plan_as(env, &artifacts::guest("scripted")?, &[]).await?;
    ensure!(ended.code == 1 && ended.output.contains("Invalid: "), "{ended:?}");
    ensure!(ended.output.contains("[2J"), "it does not say what is said: {ended:?}");
    let is_active = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
    ensure!(!ended.output.contains(is_active), "{ended:?}");
    // Its number is shown to whoever approves it, so it is none of those at all.
    for version in ["1.0\u{1b}[8m", "1.0\nno changes", "1.0 "] {
        let odd = with_manifest(&artifacts::guest("scripted")?, |manifest| {
            manifest["lookups"] = json!([]);
            manifest["version"] = version.into();
        })?;
        plan_as(env, odd.path(), &[]).await?.failed_with(&["`version` is not valid"])?;
    }
    Ok(())
}

/// What may not be read may exist, so nothing is said to be created.
async fn what_cannot_be_read_is_an_error(env: &mut TestEnv) -> Result<()> {
    env.namespace.apply(app("web")).await?;
    let rules: Vec<PolicyRule> = vec![rule("apps.example.com", "*", "get list watch"), rule("", "*", "get list watch")];
    allow(env, &rules).await?;
    let restricted = env.cluster.plane.kubeconfig_for(RESTRICTED)?;
    let own = ["--host-namespace", &env.namespace.name];
    for (arguments, words) in [
        (&["-o", "json"][..], ["failed to list the Plugins", "forbidden", "--without-plugin-object"]),
        (&["-o", "json", "--without-plugin-object"], ["failed to read the cluster", "Deployment", "forbidden"]),
    ] {
        let ended =
            plan_with(env, &artifacts::plugin("app-service")?, &restricted, &[arguments, &own].concat()).await?;
        ensure!(ended.output.is_empty(), "it plans without having looked: {ended:?}");
        ended.failed_with(&words)?;
    }
    Ok(())
}

/// A narrower view would say that what is elsewhere has to be created.
async fn objects_of_one_namespace_see_the_whole_cluster(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["tests/guests/scripted/crd.yaml", "tests/guests/scripted/child-crd.yaml"]).await?;
    let other = env.cluster.namespace("other").await?;
    other.apply(config_map("shared", json!({"word": "found"}))).await?;
    let lookups = json!([{"kind": "ConfigMap", "namespace": "other", "name": "shared"}]);
    let child = config_map("web", json!({"word": {"$found": "shared", "at": "/data/word"}}));
    let spec = json!({"lookups": lookups, "response": {"children": [{"object": child}]}});
    env.namespace.apply(scripted("web", spec.clone())).await?;
    other.apply(scripted("web", spec)).await?;
    let plugin = repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
        manifest["lookups"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "allNamespaces": true}]);
    })
    .await?;
    let kubeconfig = env.namespace.setup().kubeconfig;
    let planned = async |namespace: &[&str]| {
        let arguments = ["plan", "--without-plugin-object", "-o", "json", "--kubeconfig"].map(Path::new);
        let arguments = arguments.into_iter().chain([&*kubeconfig, plugin.path()]);
        let ended = pilothouse(arguments.chain(namespace.iter().map(Path::new))).await?;
        ensure!(ended.code == CHANGES, "{ended:?}");
        report(&ended)
    };
    let (all, one) = (planned(&[]).await?, planned(&["-n", &env.namespace.name]).await?);
    let of_one = |object: &&Value| object["namespace"] == env.namespace.name;
    let expected: Vec<_> = all["objects"].as_array().into_iter().flatten().filter(of_one).collect();
    ensure!(all["counts"]["changed"] == 2 && expected.len() == 1, "{all}");
    ensure!(one["objects"] == json!(expected) && one["objects"].to_string().contains("found"), "{one}");
    Ok(())
}

/// Otherwise a misspelt name in a pipeline would say that nothing changes.
async fn a_namespace_that_selects_nothing_by_mistake_is_an_error(env: &mut TestEnv) -> Result<()> {
    let crds = ["tests/guests/scripted-cluster/crd.yaml", "tests/guests/scripted/child-crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    let kubeconfig = env.namespace.setup().kubeconfig;
    for (namespace, words) in [
        ("no-such-namespace", "there is no namespace 'no-such-namespace'"),
        (&*env.namespace.name, "belong to the whole cluster; leave the namespace out"),
    ] {
        let plugin = artifacts::guest("scripted-cluster")?;
        let arguments = [Path::new("plan"), Path::new("--without-plugin-object"), &plugin, Path::new("-n")];
        let more = [Path::new(namespace), Path::new("--kubeconfig"), &kubeconfig];
        pilothouse(arguments.into_iter().chain(more)).await?.failed_with(&[words])?;
    }
    for (arguments, words) in [
        (&["--watch-namespace", "no-such-one"][..], "there is no namespace 'no-such-one'"),
        (&["--watch-namespace", &env.namespace.name, "-n", "default"], "has no objects of 'default'"),
    ] {
        let plugin = artifacts::guest("scripted-cluster")?;
        let own = [Path::new("plan"), &plugin, Path::new("--without-plugin-object")];
        let own = own.into_iter().chain([Path::new("--kubeconfig"), &kubeconfig]);
        pilothouse(own.chain(arguments.iter().map(Path::new))).await?.failed_with(&[words])?;
    }
    Ok(())
}

/// Of the Plugin that is named, as its account and its limits are.
async fn a_kind_that_comes_from_the_configuration_is_that_of_the_plugin(env: &mut TestEnv) -> Result<()> {
    let crds = ["plugins.pilothouse.dev", "appservices.apps.example.com"].map(|name| format!("crds/{name}.yaml"));
    env.move_to_api_server_with(&crds.each_ref().map(String::as_str)).await?;
    env.namespace.apply(app("shop")).await?;
    let config = read_config("app-service.yaml")?;
    env.namespace
        .apply(plugin_object("web", json!({"source": {"configMap": {"name": "compose"}}, "config": config})))
        .await?;
    let compose = artifacts::plugin("compose")?;
    let planned = plan_as(env, &compose, &["-o", "json", "--plugin", "web"]).await?;
    let counts = report(&planned)?["counts"].clone();
    ensure!(planned.code == CHANGES && counts["changed"] == 1 && counts["children"]["created"] == 2, "{planned:?}");
    // Another one counts where it is given.
    let mut other = config;
    other["resources"] = json!([other["resources"][0]]);
    let other = file(other.to_string().as_bytes())?;
    let path = other.path().to_str().context("a path that is no text")?;
    let planned = plan_as(env, &compose, &["-o", "json", "--plugin", "web", "--config", path]).await?;
    ensure!(report(&planned)?["counts"]["children"]["created"] == 1, "{planned:?}");
    let unknown = plan_as(env, &compose, &[]).await?;
    unknown.failed_with(&["the kind that this plugin reconciles comes from its configuration", "--plugin"])?;
    env.namespace.apply(plugin_object("empty", json!({"source": {"configMap": {"name": "compose"}}}))).await?;
    let without = plan_as(env, &compose, &["--plugin", "empty"]).await?;
    without.failed_with(&[
        "the kind that this plugin reconciles comes from its configuration",
        "'empty' has no configuration",
    ])
}

async fn a_dry_run_tells_what_the_api_server_refuses(env: &mut TestEnv) -> Result<()> {
    let deployment = |app: &str, image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "a", "image": image}]}},
        }})
    };
    let response = |child: Value, policy: &str| json!({"children": [{"object": child, "onImmutable": policy}]});
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", response(deployment("a", "a"), "fail"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.host.stop().await?;
    let mut without_image = deployment("a", "a");
    without_image["spec"]["template"]["spec"]["containers"][0]["name"] = "Not A Name".into();
    for (child, policy, code, action, refused) in [
        (deployment("a", "b"), "fail", CHANGES, "Update", None),
        (deployment("b", "a"), "fail", 1, "Update", Some("selector")),
        (deployment("b", "a"), "recreate", CHANGES, "Recreate", None),
        (without_image, "fail", 1, "Update", Some("Not A Name")),
    ] {
        env.namespace.apply(answering("web", response(child, policy))).await?;
        let before = env.namespace.get("Deployment", "web").await?;
        let ended = plan(env, "scripted", &["--server-dry-run"]).await?;
        let change = report(&ended)?["objects"][0]["steps"][0][0].clone();
        ensure!(ended.code == code && change["action"] == action, "{policy}: {ended:?}");
        let message = change["refused"]["message"].as_str();
        ensure!(message.is_some() == refused.is_some(), "{policy}: {change}");
        ensure!(refused.is_none_or(|words| message.unwrap_or_default().contains(words)), "{change}");
        let now = env.namespace.get("Deployment", "web").await?;
        ensure!(before == now, "it was no dry run: {now:?}");
    }
    Ok(())
}

/// What the API server is asked to forget includes deletions, which say what they want in their bodies.
async fn a_dry_run_deletes_nothing(env: &mut TestEnv) -> Result<()> {
    let port = json!({"spec": {"ports": [{"port": 80}]}});
    let child = |kind: &str, more: &Value| {
        let mut child = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "child"}});
        more.as_object().into_iter().flatten().for_each(|(key, value)| child[key] = value.clone());
        json!({"object": child})
    };
    let children = [child("ConfigMap", &json!({})), child("Secret", &json!({})), child("Service", &port)];
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", json!({"children": children}))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.host.stop().await?;
    env.namespace.apply(answering("web", json!({"children": []}))).await?;
    let live = async || -> Result<Vec<_>> {
        let mut live = Vec::new();
        for kind in ["ConfigMap", "Secret", "Service"] {
            live.push(env.namespace.get(kind, "child").await?.with_context(|| format!("no {kind}"))?);
        }
        Ok(live)
    };
    let before = live().await?;
    for turn in ["first", "second"] {
        let ended = plan(env, "scripted", &["--server-dry-run"]).await?;
        let report = report(&ended)?;
        ensure!(ended.code == CHANGES && report["counts"]["children"]["deleted"] == 3, "{turn}: {report}");
        ensure!(live().await? == before, "{turn}: it was no dry run");
    }
    Ok(())
}

/// By somebody's own object, by a child of another object, and by one that another object would create. The swap does nothing either.
async fn a_name_that_is_taken_is_an_error(env: &mut TestEnv) -> Result<()> {
    let returning = |names: &[&str]| {
        let children: Vec<_> = names.iter().map(|name| json!({"object": config_map(name, json!({}))})).collect();
        json!({"children": children})
    };
    env.start(&["scripted"]).await?;
    let before = [("foreign", &[][..]), ("one", &["one"]), ("two", &["two"]), ("first", &[]), ("second", &[])];
    for (name, children) in before {
        env.namespace.apply(answering(name, returning(children))).await?;
        env.namespace.until("Scripted", name, "to be ready", is_ready).await?;
    }
    env.namespace.apply(config_map("users", json!({"key": "value"}))).await?;
    env.host.stop().await?;
    for (name, children) in [
        ("foreign", &["users"][..]),
        ("one", &["two"]),
        ("two", &["one"]),
        ("first", &["both"]),
        ("second", &["both", "other"]),
    ] {
        env.namespace.apply(answering(name, returning(children))).await?;
    }
    for depth in [&[][..], &["--eventual"]] {
        let ended = plan(env, "scripted", depth).await?;
        let report = report(&ended)?;
        ensure!(ended.code == 1, "{ended:?}");
        let counts = &report["counts"]["children"];
        // Of an object whose one child cannot be written, the others are.
        ensure!(counts["created"] == 2 && counts["deleted"] == 0, "{report}");
        let reasons: BTreeMap<_, _> = report["objects"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|object| (object["name"].as_str().unwrap_or_default(), object["reason"].as_str()))
            .collect();
        let taken = Some("NameConflict");
        let expected = [("first", None), ("foreign", taken), ("one", taken), ("second", taken), ("two", taken)];
        ensure!(reasons == BTreeMap::from(expected), "{report}");
    }
    // As the swap finds it. Which of two comes first is not said.
    env.host.resume().await?;
    for name in ["foreign", "one", "two"] {
        let has_conflict = |object: &Value| condition(object, "Ready")["reason"] == "NameConflict";
        env.namespace.until("Scripted", name, "to have a conflict", has_conflict).await?;
    }
    let now = plan(env, "scripted", &[]).await?;
    let as_today = &self::report(&now)?["counts"];
    ensure!(
        now.code != 1 && as_today["inErrorToday"] == as_today["inError"],
        "what is so today is held against it: {now:?}"
    );
    Ok(())
}

/// Its children are the same, and it says that it waits, or that it is not ready.
async fn an_object_that_would_be_ready_no_longer_is_in_error(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let waits = json!({"wait": {"seconds": 3600, "reason": "Stuck", "message": "what never comes"}});
    let unready = json!([{"type": "Ready", "status": "False", "reason": "Broken", "message": "it is"}]);
    let responses = [
        ("waits", json!({"children": [], "verdict": waits}), Some("Stuck")),
        ("unready", json!({"children": [], "conditions": unready}), Some("Broken")),
        ("well", json!({"children": []}), None),
    ];
    for (name, ..) in &responses {
        env.namespace.apply(answering(name, json!({"children": []}))).await?;
        env.namespace.until("Scripted", name, "to be ready", is_ready).await?;
    }
    env.host.stop().await?;
    for (name, response, _) in &responses {
        env.namespace.apply(answering(name, response.clone())).await?;
    }
    for depth in [&[][..], &["--eventual"]] {
        let ended = plan(env, "scripted", depth).await?;
        ensure!(ended.code == 1, "{ended:?}");
        let report = report(&ended)?;
        for (name, _, reason) in &responses {
            let object = report["objects"].as_array().into_iter().flatten().find(|object| object["name"] == *name);
            let object = object.with_context(|| format!("no {name}: {report}"))?;
            ensure!(object["reason"].as_str() == *reason, "{object}");
        }
    }
    Ok(())
}

async fn a_plugin_without_a_version_at_work_is_named_as_such(env: &mut TestEnv) -> Result<()> {
    let crds = ["plugins.pilothouse.dev", "appservices.apps.example.com"].map(|name| format!("crds/{name}.yaml"));
    env.move_to_api_server_with(&crds.each_ref().map(String::as_str)).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    let ended = plan_as(env, &artifacts::plugin("app-service")?, &["--plugin", "web"]).await?;
    ensure!(ended.code == 0, "{ended:?}");
    let first = ended.output.lines().find(|line| line.contains("the Plugin 'web'")).context("it is not named")?;
    ensure!(first.ends_with("for the Plugin 'web', of which no version is at work:"), "{first}");
    Ok(())
}

/// And once: neither the bytes of the file nor the same words again.
async fn what_is_no_component_is_told_in_one_line(env: &mut TestEnv) -> Result<()> {
    for (bytes, words) in [
        (&b"#!/bin/sh\n"[..], "bad magic number (at byte 0)"),
        (b"\0asm\x07\0\0\0", "version: 0x7 (at byte 4)"),
        (&std::fs::read(artifacts::plugin("app-service")?)?[..1000], "(at byte "),
    ] {
        let file = file(bytes)?;
        for ended in [plan_as(env, file.path(), &[]).await?, pilothouse([Path::new("inspect"), file.path()]).await?] {
            let told = ended.errors.trim_end();
            ensure!(ended.code == 1 && told.lines().count() == 1 && !told.contains("expected="), "{ended:?}");
            ensure!(told.matches("not a whole WebAssembly file").count() == 1 && told.contains(words), "{told}");
            ensure!(told.matches("(at ").count() == 1, "it is told twice: {told}");
        }
    }
    Ok(())
}

/// The code for wrong arguments is that of a plan with changes elsewhere.
async fn a_wrong_argument_is_no_change(_: &mut TestEnv) -> Result<()> {
    let ended = pilothouse(["plan", "--no-such-thing"]).await?;
    ensure!(ended.code == 1 && ended.errors.contains("--no-such-thing"), "{ended:?}");
    let help = pilothouse(["plan", "--help"]).await?;
    ensure!(help.code == 0 && help.output.contains("Exit codes"), "{help:?}");
    Ok(())
}

/// A plan of the test's namespace, as JSON.
async fn plan(env: &TestEnv, plugin: &str, arguments: &[&str]) -> Result<Ended> {
    plan_as(env, &artifacts::any_plugin(plugin)?, &[&["-o", "json"], arguments].concat()).await
}

/// A plan of the test's namespace by the host's user.
pub async fn plan_as(env: &TestEnv, plugin: &Path, arguments: &[&str]) -> Result<Ended> {
    plan_with(env, plugin, &env.namespace.setup().kubeconfig, arguments).await
}

async fn plan_with(env: &TestEnv, plugin: &Path, kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    let (namespace, cache): (PathBuf, PathBuf) = (env.namespace.name.as_str().into(), env.namespace.setup().cache);
    let mut all = vec![Path::new("plan"), plugin, Path::new("--kubeconfig"), kubeconfig];
    all.extend([Path::new("--watch-namespace"), &namespace, Path::new("--cache-dir"), &cache]);
    all.extend(arguments.iter().map(Path::new));
    pilothouse(all).await
}

/// Applies an object of each kind of the reference plugins. Returns their kinds and names.
pub async fn apply_samples(env: &TestEnv) -> Result<Vec<(String, String)>> {
    let samples = ["appservice", "trainingjob", "llmmodel", "llmdeployment", "modeldeployment"];
    let samples = samples.map(|sample| format!("crds/samples/{sample}.yaml"));
    let mut applied = Vec::new();
    for sample in samples.iter().map(String::as_str).chain(["plugins/pytorch-job/samples/mnist.yaml"]) {
        let text = std::fs::read_to_string(artifacts::repository().join(sample))?;
        for mut object in serde_saphyr::from_multiple::<Value>(&text)? {
            object["metadata"]["namespace"] = env.namespace.name.as_str().into();
            let applied_object = env.namespace.apply(object).await?;
            applied.push(kind_and_name(&applied_object));
        }
    }
    Ok(applied)
}

/// The kind of an object, with its group, and its name.
fn kind_and_name(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&object["apiVersion"]).split('/').next().unwrap_or_default().to_owned();
    (format!("{}.{group}", text(&object["kind"])), text(&object["metadata"]["name"]))
}

pub fn report(ended: &Ended) -> Result<Value> {
    serde_json::from_str(&ended.output).with_context(|| format!("no report: {ended:?}"))
}

/// The children that there would be after a plan.
fn after(mut children: Children, report: &Value) -> Children {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = report["objects"].as_array().into_iter().flatten();
    let steps = objects.flat_map(|object| object["steps"].as_array().into_iter().flatten());
    for change in steps.flat_map(|step| step.as_array().into_iter().flatten()) {
        let key = (text(&change["kind"]), text(&change["name"]));
        match change["action"].as_str() {
            Some("Delete") => children.remove(&key),
            Some("HoldBack") => None,
            _ => children.insert(key, text(&change["digest"])),
        };
    }
    children
}

/// The children in the test's namespace.
async fn children(env: &TestEnv) -> Result<Children> {
    let mut found = Children::new();
    let kinds = [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "Secret",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    ];
    for kind in kinds {
        for child in env.namespace.api(kind)?.list(&ListParams::default().labels(PLUGIN)).await?.items {
            let applied = child.metadata.annotations.unwrap_or_default().remove(APPLIED);
            let applied = applied.map(|applied| if kind == "Secret" { String::new() } else { applied });
            if let Some(applied) = applied {
                found.insert((kind.to_owned(), child.metadata.name.unwrap_or_default()), applied);
            }
        }
    }
    Ok(found)
}
