//! The examples of `docs/training-job.md`, each applied as it is, and its commands.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use super::words::{JOB, annotate, claim, pods, runs, start_running, text, uids};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        each_example_is_taken_and_gets_its_pods,
        an_elastic_job_is_scaled_as_the_guide_does_it,
        progress_is_told_as_the_guide_tells_it,
    );
}

/// The API server takes each of them and all of their Pods. Most ask for more GPUs than there are here, so they do not stay.
async fn each_example_is_taken_and_gets_its_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for name in ["imagenet", "checkpoints"] {
        claim(env, name).await?;
    }
    let guide = guide()?;
    let examples = examples(&guide)?;
    ensure!(examples.len() == 7, "{} examples", examples.len());
    let mut made = BTreeMap::new();
    for job in examples {
        let name = text(&job["metadata"]["name"])?;
        env.namespace.apply(job).await?;
        let all_exist = |job: &Value| job["status"]["startTime"].is_string();
        env.namespace.until("TrainingJob", &name, "to have all its Pods", all_exist).await?;
        made.extend(pods(env).await?);
        env.namespace.delete("TrainingJob", &name).await?;
        env.namespace.until_gone("TrainingJob", &name).await?;
    }
    for pod in [
        "resnet-worker-3",
        "bert-worker-0",
        "resnet-tf-worker-1",
        "wide-deep-chief-0",
        "wide-deep-evaluator-0",
        "gemma-worker-3",
        "ocean-launcher-0",
    ] {
        ensure!(made.contains_key(pod), "{pod} is not among {:?}", made.keys());
    }
    let container = &made["llama-worker-0"]["spec"]["containers"][0];
    ensure!(container["securityContext"]["capabilities"]["add"][0] == "IPC_LOCK", "{container}");
    Ok(())
}

/// `kubectl scale` patches the subresource `scale`.
async fn an_elastic_job_is_scaled_as_the_guide_does_it(env: &mut TestEnv) -> Result<()> {
    let guide = guide()?;
    let (_, scale) = guide.split_once("`kubectl scale tj bert --replicas=").context("it scales otherwise")?;
    let replicas: u64 = scale.split('`').next().unwrap_or_default().parse()?;
    let bert = examples(&guide)?.into_iter().find(|job| job["metadata"]["name"] == "bert").context("no such job")?;
    env.start(&["training-job"]).await?;
    env.namespace.apply(bert).await?;
    let before = runs(env, "bert").await?;
    ensure!(before["spec"]["workers"].as_u64().is_some_and(|workers| workers < replicas), "{}", before["spec"]);
    let uids_before = uids(&pods(env).await?);
    let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    env.namespace.api("TrainingJob")?.patch_scale("bert", &PatchParams::default(), &scale).await?;
    let job = runs(env, "bert").await?;
    let uids = uids(&pods(env).await?);
    ensure!(uids.len() as u64 == replicas && uids.is_superset(&uids_before), "workers were made anew");
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

async fn progress_is_told_as_the_guide_tells_it(env: &mut TestEnv) -> Result<()> {
    let guide = guide()?;
    let (_, annotated) = guide.split_once("'ml.example.com/progress=").context("it annotates otherwise")?;
    let progress = annotated.split('\'').next().unwrap_or_default();
    let (_, shown) = guide.split_once("`kubectl get tj` then shows `").context("it shows otherwise")?;
    let shown = shown.split('`').next().unwrap_or_default();
    start_running(env, json!({})).await?;
    annotate(env, "mnist-worker-0", "ml.example.com/progress", progress).await?;
    let is_shown = |job: &Value| job["status"]["progress"]["summary"] == shown;
    env.namespace.until("TrainingJob", JOB, &format!("to show {shown}"), is_shown).await?;
    Ok(())
}

fn guide() -> Result<String> {
    Ok(std::fs::read_to_string(artifacts::repository().join("docs/training-job.md"))?)
}

/// The jobs in the guide.
fn examples(guide: &str) -> Result<Vec<Value>> {
    let texts = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    texts.map(|text| serde_saphyr::from_str(text).with_context(|| text.to_owned())).collect()
}
