//! Gang scheduling: a missing kind of the scheduler is reported, and a job waits until the scheduler admits its group. One test
//! only, because it installs a kind for all tests.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{condition, install_crd},
};
use serde_json::{Value, json};

use super::words::{JOB, exit, job, only_pods, pods, runs, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_gang_waits_for_its_scheduler_and_then_for_admission);
}

/// The simulated node only knows the default scheduler, so the job names that instead of Volcano's.
async fn a_gang_waits_for_its_scheduler_and_then_for_admission(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let gang = json!({"scheduler": "volcano", "schedulerName": "default-scheduler", "queue": "research"});
    let resources = json!({"requests": {"cpu": "500m"}});
    env.namespace.apply(job(json!({"workers": 3, "gangScheduling": gang, "resources": resources}))).await?;
    let reported = waits(env, JOB, "GangSchedulerNotInstalled").await?;
    let message = condition(&reported, "Ready")["message"].to_string();
    ensure!(message.contains("scheduling.volcano.sh/v1beta1 PodGroup"), "{message}");
    ensure!(env.namespace.list("Service").await?.is_empty(), "a Service was made");
    no_pods(env).await?;

    let crd = artifacts::repository().join("tests/black_box/training_job/podgroups.yaml");
    install_crd(&env.namespace.client(), &crd).await?;
    let asks = |group: &Value| {
        let asked = json!({"minMember": 3, "minResources": {"cpu": "1500m"}, "queue": "research"});
        group["spec"] == asked
    };
    env.namespace.until("PodGroup", JOB, "to ask for all", asks).await?;
    waits(env, JOB, "WaitingForPodGroup").await?;
    no_pods(env).await?;
    phase(env, "Pending").await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "pending").await).await?;
    no_pods(env).await?;

    phase(env, "Inqueue").await?;
    runs(env, JOB).await?;
    for pod in pods(env).await?.values() {
        let group = &pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"];
        ensure!(*group == JOB && pod["spec"]["schedulerName"] == "default-scheduler", "{pod}");
    }
    // The place in the queue is asked for again before each start.
    phase(env, "Pending").await?;
    exit(env, "mnist-worker-1", 1).await?;
    waits(env, JOB, "WaitingForPodGroup").await?;
    only_pods(env, &[]).await?;
    phase(env, "Inqueue").await?;
    runs(env, JOB).await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    ensure!(env.namespace.get("PodGroup", JOB).await?.is_none(), "the PodGroup is left");
    no_pods(env).await
}

async fn no_pods(env: &TestEnv) -> Result<()> {
    let pods = pods(env).await?;
    ensure!(pods.is_empty(), "there are Pods: {:?}", pods.keys());
    Ok(())
}

/// Sets the phase of the group, as Volcano does.
async fn phase(env: &TestEnv, phase: &str) -> Result<()> {
    let status = Patch::Merge(json!({"status": {"phase": phase}}));
    env.namespace.api("PodGroup")?.patch_status(JOB, &PatchParams::default(), &status).await?;
    Ok(())
}
