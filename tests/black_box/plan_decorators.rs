//! `pilothouse plan` of a plugin that decorates objects of others: their labels and annotations are a part of it, and so is what it takes away.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    command::Ended,
    decorators::{ANSWER, answer, children, decorate, label, on_namespace, start_with, until_labelled},
    plan::{CHANGES, plan_as},
    suite::{Suite, tests},
    test_env::{TestEnv, answering},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        labels_and_annotations_are_in_the_plan,
        what_is_taken_away_is_in_the_plan,
        a_decorator_is_not_taken_for_the_owner_of_its_kind,
    );
}

/// The marks of the host are among them: it writes them.
const MARK: &str = "/metadata/annotations/decorator.decorator.pilothouse.dev~1keys";

async fn labels_and_annotations_are_in_the_plan(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    env.host.stop().await?;
    let on_object = on_namespace(env, json!({"labels": {"tier": "gold"}, "annotations": {"example.com/by": "us"}}));
    decorate(env, ANSWER, &children([on_object])).await?;
    let planned = plan(env, "decorator", &["--eventual"]).await?;
    let object = own(env, &planned)?;
    ensure!(planned.code == CHANGES && object["state"] == "Changed", "{planned:?}");
    let expected = json!([
        {"path": "/metadata/labels/tier", "from": null, "to": "gold"},
        {"path": MARK, "from": null, "to": "annotation:example.com/by label:tier"},
        {"path": "/metadata/annotations/example.com~1by", "from": null, "to": "us"},
    ]);
    ensure!(object["fields"] == expected, "{object}");
    let text = plan_text(env, "decorator").await?;
    ensure!(text.output.contains("  + /metadata/labels/tier: \"gold\"\n"), "{text:?}");

    env.host.resume().await?;
    until_labelled(env, "tier", Some("gold")).await?;
    env.metrics_at_rest().await?;
    env.host.stop().await?;
    let namespace = env.namespace.get("Namespace", &env.namespace.name).await?.context("it is gone")?;
    for field in object["fields"].as_array().into_iter().flatten() {
        let path = field["path"].as_str().context("no path")?;
        ensure!(namespace.pointer(path) == Some(&field["to"]), "{path} is another: {namespace}");
    }
    let done = plan(env, "decorator", &["--eventual"]).await?;
    ensure!(done.code == 0, "there is more to do: {done:?}");

    // What somebody else has set is left alone, and then nothing of the answer is carried out.
    label(env, json!({"team": "theirs"})).await?;
    let with_child = json!({"labels": {"team": "ours"}});
    let mut both = answer(env, "map", "one");
    both["children"][1] = json!({"object": on_namespace(env, with_child)});
    decorate(env, ANSWER, &both).await?;
    let taken = plan(env, "decorator", &["--server-dry-run"]).await?;
    let object = own(env, &taken)?;
    ensure!(taken.code == 1 && object["reason"] == "MetadataConflict", "{taken:?}");
    ensure!(object["steps"].is_null() && object["fields"].is_null(), "the host would write nothing: {object}");
    Ok(())
}

/// From an object that it no longer selects, and where its answer has less.
async fn what_is_taken_away_is_in_the_plan(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.namespace.until("ConfigMap", "ours", "to be there", |_| true).await?;
    env.metrics_at_rest().await?;
    env.host.stop().await?;
    let gone = |object: &Value| -> Result<()> {
        let expected = json!([
            {"path": "/metadata/labels/ours", "from": "one", "to": null},
            {"path": MARK, "from": "label:ours", "to": null},
        ]);
        let child = &object["steps"][0][0];
        ensure!(object["fields"] == expected, "{object}");
        ensure!(child["action"] == "Delete" && child["name"] == "ours", "{object}");
        Ok(())
    };
    decorate(env, ANSWER, &children([])).await?;
    let less = plan(env, "decorator", &["--eventual"]).await?;
    ensure!(less.code == CHANGES, "{less:?}");
    gone(&own(env, &less)?)?;

    label(env, json!({"decorated": null})).await?;
    for arguments in [&["--eventual"][..], &["--server-dry-run"]] {
        let ended = plan(env, "decorator", arguments).await?;
        let object = own(env, &ended).with_context(|| format!("with {arguments:?}"))?;
        ensure!(ended.code == CHANGES, "with {arguments:?}: {ended:?}");
        gone(&object)?;
        ensure!(object["steps"][0][0]["cause"] == "its object is no longer decorated", "{object}");
    }
    env.host.resume().await?;
    until_labelled(env, "ours", None).await?;
    env.namespace.until_gone("ConfigMap", "ours").await?;
    env.metrics_at_rest().await?;
    let done = plan(env, "decorator", &["--eventual"]).await?;
    ensure!(done.code == 0, "there is more to do: {done:?}");
    Ok(())
}

/// The `Plugin` of the other one comes first by its name.
async fn a_decorator_is_not_taken_for_the_owner_of_its_kind(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["scripted", "decorator-scripted"]).await?;
    env.namespace.apply(answering("web", json!({"children": []}))).await?;
    for plugin in ["scripted", "decorator-scripted"] {
        let is_known = |object: &Value| object["status"]["reconciles"]["kind"] == "Scripted";
        env.namespace.until("Plugin", plugin, "to say what it reconciles", is_known).await?;
        let ended = plan(env, plugin, &[]).await?;
        let report: Value = serde_json::from_str(&ended.output).with_context(|| format!("{ended:?}"))?;
        ensure!(report["present"]["name"] == plugin, "{plugin}: {ended:?}");
    }
    Ok(())
}

/// A plan as JSON.
async fn plan(env: &TestEnv, plugin: &str, arguments: &[&str]) -> Result<Ended> {
    let own = ["-o", "json", "--host-namespace", &env.namespace.name];
    plan_as(env, &artifacts::guest(plugin)?, &[&own, arguments].concat()).await
}

async fn plan_text(env: &TestEnv, plugin: &str) -> Result<Ended> {
    plan_as(env, &artifacts::guest(plugin)?, &["--host-namespace", &env.namespace.name]).await
}

/// What a plan says of the test's namespace.
fn own(env: &TestEnv, ended: &Ended) -> Result<Value> {
    let report: Value = serde_json::from_str(&ended.output).with_context(|| format!("no report: {ended:?}"))?;
    let mut objects = report["objects"].as_array().into_iter().flatten();
    let own = objects.find(|object| object["name"] == *env.namespace.name);
    own.cloned().with_context(|| format!("it is not in {report}"))
}
