//! Names and labels by which a job finds what is its own, when somebody else has them or takes them off.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::{Awaited, PATIENCE, condition};
use serde_json::{Value, json};

use super::{NAME, PODS, runs, sample, start};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::{exit, is_left_alone, only_pods, pods},
};

/// Where the plugin keeps what it knows of the job.
const STATE: &str = "mnist-pytorchjob-state";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        no_pod_is_made_while_somebody_else_has_the_name_of_the_state,
        a_label_that_somebody_takes_off_a_pod_comes_back,
        a_failure_while_somebody_else_has_the_name_of_the_state_is_counted_once_it_can_be_remembered,
    );
}

async fn no_pod_is_made_while_somebody_else_has_the_name_of_the_state(env: &mut TestEnv) -> Result<()> {
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": STATE}, "data": {"a": "7"}});
    let theirs = env.namespace.apply(theirs).await?;
    start(env, sample(&json!({}), "OnFailure")?).await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        let message = ready["message"].to_string();
        ready["reason"] == "NameConflict" && message.contains(STATE) && message.contains("somebody else")
    };
    env.namespace.until("PyTorchJob", NAME, "to say whose the name is", told).await?;
    for name in PODS {
        env.namespace.until("Service", name, "to be made", |_| true).await?;
    }
    for turn in 0..3 {
        env.reconciled_after("pytorch-job", async || env.touch("PyTorchJob", NAME, turn).await).await?;
    }
    only_pods(env, &[]).await?;
    is_left_alone(env, "ConfigMap", &theirs).await?;
    env.namespace.delete("ConfigMap", STATE).await?;
    let awaited = Awaited { kind: "PyTorchJob", name: NAME, what: "to run" };
    env.namespace.until_within(PATIENCE * 3, &awaited, |job| condition(job, "Running")["status"] == "True").await?;
    runs(env).await?;
    only_pods(env, &PODS).await
}

async fn a_label_that_somebody_takes_off_a_pod_comes_back(env: &mut TestEnv) -> Result<()> {
    const LABEL: &str = "training.kubeflow.org/replica-index";
    start(env, sample(&json!({}), "OnFailure")?).await?;
    runs(env).await?;
    let old = pods(env).await?;
    env.namespace.patch("Pod", PODS[2], json!({"metadata": {"labels": {LABEL: null}}})).await?;
    let has_it = |pod: &Value| pod["metadata"]["labels"][LABEL] == "1";
    let pod = env.namespace.until("Pod", PODS[2], "to have its label again", has_it).await?;
    let was = &old[PODS[2]];
    ensure!(pod["metadata"]["uid"] == was["metadata"]["uid"] && pod["spec"] == was["spec"], "{was} became {pod}");
    runs(env).await?;
    Ok(())
}

/// Until then nothing is told or counted, and the Pods stay as they are: whatever is decided would be forgotten.
async fn a_failure_while_somebody_else_has_the_name_of_the_state_is_counted_once_it_can_be_remembered(
    env: &mut TestEnv,
) -> Result<()> {
    start(env, sample(&json!({"backoffLimit": 3}), "ExitCode")?).await?;
    runs(env).await?;
    let old = pods(env).await?;
    env.host.stop().await?;
    env.namespace.delete("ConfigMap", STATE).await?;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": STATE}, "data": {"a": "7"}});
    let theirs = env.namespace.apply(theirs).await?;
    env.host.resume().await?;
    let told = |job: &Value| condition(job, "Ready")["reason"] == "NameConflict";
    env.namespace.until("PyTorchJob", NAME, "to say whose the name is", told).await?;
    exit(env, PODS[2], 137).await?;
    let failed = |pod: &Value| pod["status"]["phase"] == "Failed";
    env.namespace.until("Pod", PODS[2], "to have failed", failed).await?;
    for turn in 0..3 {
        env.reconciled_after("pytorch-job", async || env.touch("PyTorchJob", NAME, turn).await).await?;
    }
    let restarted = async || {
        Ok::<_, anyhow::Error>(env.metrics_at_rest().await?.sum("training_operator_jobs_restarted_total", &[]))
    };
    ensure!(restarted().await? == 0.0, "a restart is counted that nobody can remember");
    let now = pods(env).await?;
    ensure!(now.keys().eq(old.keys()) && now[PODS[2]]["metadata"]["uid"] == old[PODS[2]]["metadata"]["uid"], "{now:?}");
    is_left_alone(env, "ConfigMap", &theirs).await?;
    env.namespace.delete("ConfigMap", STATE).await?;
    let uid = old[PODS[2]]["metadata"]["uid"].clone();
    let awaited = Awaited { kind: "Pod", name: PODS[2], what: "to be made anew" };
    env.namespace.until_within(PATIENCE * 3, &awaited, |pod| pod["metadata"]["uid"] != uid).await?;
    runs(env).await?;
    ensure!(restarted().await? == 1.0, "{} restarts are counted", restarted().await?);
    Ok(())
}
