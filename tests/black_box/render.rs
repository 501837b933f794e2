//! `pilothouse render` agrees with the host: it reports what the host would refuse or hold back.

use std::path::Path;

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    command::{Ended, file, pilothouse},
    suite::{Suite, tests},
    test_env::{TestEnv, answering, misbehaver},
};

/// The number of children of an object. If most of them would be deleted, somebody has to confirm it.
const MANY: usize = 12;

/// The UID of the object.
const UID: &str = "a1b2c3d4-0000-4000-8000-000000000001";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        deletes_that_would_be_held_back_are_not_printed_as_deletes,
        deletes_that_nothing_holds_back_are_printed,
        an_answer_that_the_host_refuses_is_an_error,
    );
}

/// The host's guard against mass deletion would hold these deletes back until somebody confirms them.
async fn deletes_that_would_be_held_back_are_not_printed_as_deletes(env: &mut TestEnv) -> Result<()> {
    let ended = render(env, "misbehaver", &[&reported("none"), &many()]).await?;
    ensure!(ended.code == 0, "{ended:?}");
    let plan: Vec<_> = ended.errors.lines().filter(|line| line.starts_with("plan: ")).collect();
    let [held] = &plan[..] else { anyhow::bail!("not one line, but {plan:#?}") };
    ensure!(held.starts_with(&format!("plan: hold back {MANY} deletes: ")), "{held}");
    ensure!(held.contains("12 of 12 children of an object that has not changed"), "it does not say why: {held}");
    Ok(())
}

/// Either the object has changed since its last report, or only few children are deleted.
async fn deletes_that_nothing_holds_back_are_printed(env: &mut TestEnv) -> Result<()> {
    let mut changed = reported("none");
    changed["metadata"]["generation"] = 2.into();
    let mut most_stay = reported("several");
    most_stay["spec"]["number"] = (MANY - 2).into();
    for (object, deletes) in [(changed, MANY), (most_stay, 2)] {
        let ended = render(env, "misbehaver", &[&object, &many()]).await?;
        let printed = ended.errors.lines().filter(|line| line.starts_with("plan: delete ConfigMap ")).count();
        ensure!(ended.code == 0 && printed == deletes, "not {deletes} deletes for {object}: {ended:?}");
        ensure!(!ended.errors.contains("hold back"), "{ended:?}");
    }
    Ok(())
}

/// The error has the host's own words, and nothing panics.
async fn an_answer_that_the_host_refuses_is_an_error(env: &mut TestEnv) -> Result<()> {
    let child = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    for (child, words) in [
        (child(json!({"name": "child", "labels": "x"})), ["child", "metadata.labels"]),
        (child(json!({"name": "child", "annotations": ["x"]})), ["child", "metadata.annotations"]),
        (child(json!({"name": "child", "labels": {"app": 5}})), ["child", "metadata.labels"]),
        (child(json!({"name": "my app"})), ["my app", "metadata.name"]),
    ] {
        let object = answering("object", json!({"children": [{"object": child}]}));
        render(env, "scripted", &[&object]).await?.failed_with(&words)?;
    }
    Ok(())
}

/// A `Misbehaver` whose status was reported for its present generation.
fn reported(act: &str) -> Value {
    let mut object = misbehaver("many", act);
    object["metadata"] = json!({"name": "many", "namespace": "default", "uid": UID, "generation": 1});
    object["status"] = json!({"observedGeneration": 1});
    object
}

/// The children of that object, as the host creates them.
fn many() -> Value {
    let child = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("many-{number}"), "namespace": "default",
                "labels": {"pilothouse.dev/plugin": "misbehaver", "pilothouse.dev/owner-uid": UID},
                "annotations": {"pilothouse.dev/identity": format!("ConfigMap/default/many-{number}")},
                "ownerReferences": [{
                    "apiVersion": "test.pilothouse.dev/v1", "kind": "Misbehaver", "name": "many", "uid": UID,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    };
    (0..MANY).map(child).collect()
}

/// Renders an object, the first input, with its live children if there is a second one.
async fn render(env: &TestEnv, plugin: &str, inputs: &[&Value]) -> Result<Ended> {
    let (plugin, cache) = (artifacts::guest(plugin)?, env.namespace.setup().cache);
    let mut files = Vec::new();
    for input in inputs {
        let documents = input.as_array().map_or_else(|| std::slice::from_ref(*input), Vec::as_slice);
        let text: String = documents.iter().map(|document| format!("---\n{document}\n")).collect();
        files.push(file(text.as_bytes())?);
    }
    let mut arguments = vec![Path::new("render"), &plugin, Path::new("--cache-dir"), &cache];
    let mut files = files.iter().map(|file| file.path());
    arguments.extend(files.next());
    arguments.extend(files.flat_map(|children| [Path::new("--children"), children]));
    pilothouse(arguments).await
}
