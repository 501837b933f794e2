//! A new version of a plugin over many servers: it asks for the same, so nothing is written and no Pod is replaced.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_tests::{
    artifacts,
    cluster::condition,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{MODEL, deployment, model, model_deployment, server};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

/// The objects of each kind.
const COUNT: usize = 100;

/// The number of requests at the same time.
const PARALLEL: usize = 32;

/// The time limit for all of them.
const LONG: Duration = Duration::from_secs(120);

/// The plugins with children.
const PLUGINS: [&str; 3] = ["ai-llm-model", "llm-deployment", "model-deployment"];

pub fn register(suite: &mut Suite) {
    heavy!(suite, a_new_version_over_a_hundred_objects_writes_nothing);
}

async fn a_new_version_over_a_hundred_objects_writes_nothing(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[
        "crds/llmmodels.ai.example.com.yaml",
        "crds/llmmodels.llm.example.com.yaml",
        "crds/llmdeployments.llm.example.com.yaml",
        "crds/modeldeployments.llm.example.com.yaml",
    ])
    .await?;
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({"gpuCount": 1}))).await?;
    let objects = (0..COUNT).flat_map(|number| {
        [
            server(&format!("a-{number}"), json!({"gpuCount": 1, "networkPolicy": {}})),
            deployment(&format!("b-{number}"), json!({})),
            model_deployment(&format!("c-{number}"), json!({"sla": {"maxLatency": "1s"}})),
        ]
    });
    let applies = objects.map(|object| env.namespace.apply(object));
    stream::iter(applies).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    for (kind, count) in [("Deployment", 2 * COUNT), ("StatefulSet", COUNT), ("HorizontalPodAutoscaler", COUNT)] {
        eventually(LONG, &format!("{count} of {kind}"), async || {
            let found = env.namespace.list(kind).await?.len();
            Ok(Look::of(found == count, found))
        })
        .await?;
    }
    settles(env).await?;
    // The Services of a hundred deployments at once keep the model that they serve busy for a while.
    let is_calm = |model: &Value| {
        let lists_all = model["status"]["referencedBy"].as_array().map(Vec::len) == Some(COUNT);
        lists_all && condition(model, "Throttled").is_null()
    };
    env.namespace.until(MODEL, "gpt-small", "to list all who serve it, and to be calm", is_calm).await?;
    let before = env.host_writes().await?.len();
    for plugin in PLUGINS {
        let calls = env.calls(plugin).await?;
        upgrade(env, plugin)?;
        eventually(LONG, &format!("the new version of {plugin} to be asked for all"), async || {
            let since = env.calls(plugin).await? - calls;
            Ok(Look::of(since >= COUNT as f64, since))
        })
        .await?;
    }
    settles(env).await?;
    let writes = env.host_writes().await?;
    let of_objects: Vec<_> =
        writes[before..].iter().filter(|write| !write.contains("configmaps/ pilothouse-")).collect();
    ensure!(of_objects.is_empty(), "the new versions write: {of_objects:#?}");
    Ok(())
}

/// Waits until every object's status is about its spec, and the host is at rest.
async fn settles(env: &TestEnv) -> Result<()> {
    for kind in ["LLMModel", "LLMDeployment", "ModelDeployment"] {
        eventually(LONG, &format!("every {kind} to be reported on"), async || {
            let reported = |object: &&Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let count = env.namespace.list(kind).await?.iter().filter(reported).count();
            Ok(Look::of(count == COUNT, count))
        })
        .await?;
    }
    env.metrics_at_rest().await?;
    Ok(())
}

/// Replaces a plugin by one of other bytes that does the same: with a section that nobody reads.
fn upgrade(env: &TestEnv, plugin: &str) -> Result<()> {
    const SECTION: &[u8] = b"\x00\x08\x07upgrade";
    let mut component = std::fs::read(artifacts::plugin(plugin)?)?;
    component.extend_from_slice(SECTION);
    let file = tempfile::NamedTempFile::new().context("no file")?;
    std::fs::write(file.path(), component)?;
    env.host.install(file.path(), &format!("{plugin}.wasm"))
}
