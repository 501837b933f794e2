//! One model under many deployments: bursts of edits converge, a real change rolls once, and what does not differ is not written.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, install_crd},
    thoroughness,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{
    deployment::PLUGINS,
    words::{MODEL, deployment, image, model},
};
use crate::{
    suite::{Suite, heavy, timed_with},
    test_env::TestEnv,
};

/// The deployments under a burst of edits, and the edits.
const FEW: usize = 50;
const EDITS: usize = 20;

/// The deployments of one model, and of one edit.
const MANY: usize = 1_000;

/// The number of requests at the same time.
const PARALLEL: usize = 32;

/// The time limit for many objects on a busy machine.
const LONG: Duration = Duration::from_secs(180);

pub fn register_timed(suite: &mut Suite) {
    timed_with!(suite, thoroughness::all(), an_edit_reaches_a_thousand_deployments);
}

pub fn register(suite: &mut Suite) {
    heavy!(suite, a_burst_of_edits_converges_without_a_needless_write);
}

/// A control plane without controllers: all writes come from the host and the test.
async fn start(env: &mut TestEnv, count: usize) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    for crd in ["crds/llmmodels.llm.example.com.yaml", "crds/llmdeployments.llm.example.com.yaml"] {
        install_crd(&env.namespace.client(), &artifacts::repository().join(crd)).await?;
    }
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let names: Vec<_> = (0..count).map(|number| format!("chat-{number:04}")).collect();
    let applies = names.iter().map(|name| env.namespace.apply(deployment(name, json!({}))));
    stream::iter(applies).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    all_have(env, count, "your-registry/gpt-small:v1").await?;
    env.metrics_at_rest().await?;
    Ok(())
}

/// Waits until all Deployments have this image, and returns them.
async fn all_have(env: &TestEnv, count: usize, wanted: &str) -> Result<Vec<Value>> {
    eventually(LONG, &format!("{count} Deployments with the image {wanted}"), async || {
        let deployments = env.namespace.list("Deployment").await?;
        let have = deployments.iter().filter(|deployment| image(deployment) == wanted).count();
        Ok(if have == count {
            Look::Found(deployments)
        } else {
            Look::NotYet(format!("{have} of {}", deployments.len()))
        })
    })
    .await
}

async fn edit(env: &TestEnv, tag: usize) -> Result<String> {
    let image = format!("your-registry/gpt-small:edit-{tag}");
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"image": image}})).await?;
    Ok(image)
}

async fn a_burst_of_edits_converges_without_a_needless_write(env: &mut TestEnv) -> Result<()> {
    start(env, FEW).await?;
    let mut last = String::new();
    for tag in 0..EDITS {
        last = edit(env, tag).await?;
    }
    let deployments = all_have(env, FEW, &last).await?;
    env.metrics_at_rest().await?;
    // The first generation is that of the creation; each later one is an edit that arrived.
    let generations: Vec<_> =
        deployments.iter().filter_map(|deployment| deployment["metadata"]["generation"].as_i64()).collect();
    let most = EDITS as i64 + 1;
    ensure!(generations.iter().all(|generation| (2..=most).contains(generation)), "{generations:?}");

    // The model is deleted and made anew as it was: nothing differs, so no Deployment is written.
    let before = applies_of_deployments(env).await?;
    env.namespace.delete(MODEL, "gpt-small").await?;
    all_say(env, "False").await?;
    env.namespace.apply(model("gpt-small", json!({"image": last}))).await?;
    all_say(env, "True").await?;
    env.metrics_at_rest().await?;
    let after = applies_of_deployments(env).await?;
    ensure!(after == before, "{} Deployments were written needlessly", after - before);
    Ok(())
}

/// Waits until the condition `ModelResolved` of all deployments has this status.
async fn all_say(env: &TestEnv, status: &str) -> Result<()> {
    eventually(LONG, &format!("ModelResolved={status}"), async || {
        let objects = env.namespace.list("LLMDeployment").await?;
        let says = |object: &&Value| pilothouse_tests::cluster::condition(object, "ModelResolved")["status"] == status;
        let count = objects.iter().filter(says).count();
        Ok(Look::of(count == objects.len(), count))
    })
    .await
}

/// How often the host has written a Deployment.
async fn applies_of_deployments(env: &TestEnv) -> Result<usize> {
    Ok(env.host_writes().await?.iter().filter(|write| write.starts_with("patch deployments/ ")).count())
}

async fn an_edit_reaches_a_thousand_deployments(env: &mut TestEnv) -> Result<()> {
    start(env, MANY).await?;
    let edited = Instant::now();
    let image = edit(env, 0).await?;
    all_have(env, MANY, &image).await?;
    // Told and not judged: how long it takes says as much of the machine as of the host.
    eprintln!("an edit reached {MANY} deployments after {:?}", edited.elapsed());
    Ok(())
}
