//! The examples of `docs/training-job.md`, each applied as it is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::Value;

use super::words::{claim, pods, text};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, each_example_is_taken_and_gets_its_pods);
}

/// The API server takes each of them and all of their Pods. Most ask for more GPUs than there are here, so they do not stay.
async fn each_example_is_taken_and_gets_its_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for name in ["imagenet", "checkpoints"] {
        claim(env, name).await?;
    }
    let guide = std::fs::read_to_string(artifacts::repository().join("docs/training-job.md"))?;
    let examples: Vec<_> = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    ensure!(examples.len() == 7, "{} examples", examples.len());
    let mut made = BTreeMap::new();
    for example in examples {
        let job: Value = serde_saphyr::from_str(example).with_context(|| example.to_owned())?;
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
