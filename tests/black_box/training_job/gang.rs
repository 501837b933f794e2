//! Gang scheduling, with the schedulers' own kinds: a missing kind is reported, and a job waits until its scheduler admits its group. One
//! test for each scheduler, because it installs a kind for all tests.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{condition, install_crd},
    third_party::{COSCHEDULING_POD_GROUP, File, VOLCANO_POD_GROUP},
};
use serde_json::{Value, json};

use super::words::{JOB, exit, is_left_alone, job, name_is_taken, named, only_pods, pods, runs, uids, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_gang_waits_for_its_scheduler_and_then_for_admission,
        a_gang_of_scheduler_plugins_starts_with_its_group,
    );
}

/// The simulated node only knows the default scheduler, so the job names that instead of Volcano's.
async fn a_gang_waits_for_its_scheduler_and_then_for_admission(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let gang = json!({"scheduler": "volcano", "schedulerName": "default-scheduler", "queue": "research"});
    let resources = json!({"requests": {"cpu": "500m"}});
    env.namespace.apply(job(json!({"workers": 3, "gangScheduling": &gang, "resources": resources}))).await?;
    is_installed_late(env, "scheduling.volcano.sh/v1beta1 PodGroup", &VOLCANO_POD_GROUP).await?;
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
    no_pods(env).await?;

    // A group of somebody else that has been let in lets no Pods of the job in.
    let their = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "taken"},
        "spec": {"minMember": 7}, "status": {"phase": "Running"},
    });
    waits_for_its_own(env, gang, "PodGroup", their).await?;
    env.namespace.until("PodGroup", "taken", "to be the job's", |group| group["spec"]["minMember"] == 2).await?;
    no_pods(env).await?;
    env.namespace.patch("PodGroup", "taken", json!({"status": {"phase": "Inqueue"}})).await?;
    runs(env, "taken").await.map(drop)
}

/// The coscheduling plugin decides about Pods that exist, so nothing waits.
async fn a_gang_of_scheduler_plugins_starts_with_its_group(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let gang = json!({
        "scheduler": "scheduler-plugins", "schedulerName": "default-scheduler", "minMember": 2, "scheduleTimeoutSeconds": 60,
    });
    let resources = json!({"requests": {"cpu": "500m"}});
    env.namespace.apply(job(json!({"workers": 3, "gangScheduling": &gang, "resources": resources}))).await?;
    is_installed_late(env, "scheduling.x-k8s.io/v1alpha1 PodGroup", &COSCHEDULING_POD_GROUP).await?;
    runs(env, JOB).await?;
    for pod in pods(env).await?.values() {
        ensure!(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == JOB, "{pod}");
    }
    let group = env.namespace.get("PodGroup.scheduling.x-k8s.io", JOB).await?.unwrap_or_default();
    let asked = json!({"minMember": 2, "minResources": {"cpu": "1000m"}, "scheduleTimeoutSeconds": 60});
    ensure!(group["spec"] == asked, "{group}");

    // Another size of the gang is the scheduler's affair, and restarts nothing.
    let before = uids(&pods(env).await?);
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"gangScheduling": {"minMember": 3}}})).await?;
    let asks = |group: &Value| group["spec"]["minMember"] == 3;
    env.namespace.until("PodGroup.scheduling.x-k8s.io", JOB, "to ask for all", asks).await?;
    runs(env, JOB).await?;
    ensure!(uids(&pods(env).await?) == before, "Pods were replaced");

    // Pods in a group of somebody else would count there.
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    let their = json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "taken"}, "spec": {"minMember": 7},
    });
    waits_for_its_own(env, gang, "PodGroup.scheduling.x-k8s.io", their).await?;
    runs(env, "taken").await.map(drop)
}

/// A job makes no Pods while somebody else has a group of its name, and leaves that alone until it goes.
async fn waits_for_its_own(env: &TestEnv, gang: Value, kind: &str, their: Value) -> Result<()> {
    let their = env.namespace.apply(their).await?;
    env.namespace.apply(named("taken", json!({"gangScheduling": gang}))).await?;
    name_is_taken(env, "taken", &their).await?;
    no_pods(env).await?;
    is_left_alone(env, kind, &their).await?;
    env.namespace.delete(kind, "taken").await
}

/// The job says what is missing and makes nothing before it is there.
async fn is_installed_late(env: &TestEnv, kind: &str, crd: &File) -> Result<()> {
    let reported = waits(env, JOB, "GangSchedulerNotInstalled").await?;
    let message = condition(&reported, "Ready")["message"].to_string();
    ensure!(message.contains(kind), "{message}");
    ensure!(env.namespace.list("Service").await?.is_empty(), "a Service was made");
    no_pods(env).await?;
    install_crd(&env.namespace.client(), &crd.fetch().await?).await
}

async fn no_pods(env: &TestEnv) -> Result<()> {
    let pods = pods(env).await?;
    ensure!(pods.is_empty(), "there are Pods: {:?}", pods.keys());
    Ok(())
}

/// Sets the phase of the group, as Volcano does: its kind has no subresource for the status.
async fn phase(env: &TestEnv, phase: &str) -> Result<()> {
    env.namespace.patch("PodGroup", JOB, json!({"status": {"phase": phase}})).await?;
    Ok(())
}
