//! A `PyTorchJob` beside what schedules and scales it, with the real kinds: Volcano's and scheduler-plugins' PodGroups, and the controller of
//! HorizontalPodAutoscalers. On control planes of their own, for they install kinds.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{Awaited, Cluster, condition, install_crd},
    metrics_api::MetricsApi,
    third_party::{COSCHEDULING_POD_GROUP, File, PYTORCH_JOB, VOLCANO_POD_GROUP},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{NAME, runs, sample};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
    training_job::words::{only_pods, pods},
};

/// The metric that the autoscaler reads.
const BACKLOG: &str = "training_backlog";

/// The time limit for several rounds of an autoscaler.
const LONG: std::time::Duration = std::time::Duration::from_secs(90);

pub fn register(suite: &mut Suite) {
    heavy!(
        suite,
        a_gang_of_volcano_waits_for_admission,
        a_gang_of_scheduler_plugins_starts_with_its_group,
        an_elastic_job_follows_its_autoscaler,
    );
}

/// Starts a control plane with these kinds, and a host with this configuration of the plugin, which is in the returned file.
async fn start_on_own(env: &mut TestEnv, crds: &[File], config: &Value) -> Result<NamedTempFile> {
    env.move_to(Cluster::start().await?).await?;
    for crd in [&PYTORCH_JOB].into_iter().chain(crds) {
        install_crd(&env.namespace.client(), &crd.fetch().await?).await?;
    }
    let file = NamedTempFile::new()?;
    std::fs::write(file.path(), config.to_string())?;
    env.set_up_host(|setup| setup.arguments = vec![format!("--config=pytorch-job={}", file.path().display())])?;
    env.start(&["pytorch-job"]).await?;
    Ok(file)
}

/// The sample as a gang. The simulated node only knows the default scheduler, so the templates name that.
fn gang(policy: &Value) -> Result<Value> {
    let mut job = sample(&json!({"schedulingPolicy": policy}), "OnFailure")?;
    for replicas in ["Master", "Worker"] {
        job["spec"]["pytorchReplicaSpecs"][replicas]["template"]["spec"]["schedulerName"] = json!("default-scheduler");
    }
    Ok(job)
}

async fn a_gang_of_volcano_waits_for_admission(env: &mut TestEnv) -> Result<()> {
    let _config = start_on_own(env, &[VOLCANO_POD_GROUP], &json!({"gangScheduler": "volcano"})).await?;
    env.namespace.apply(gang(&json!({"minAvailable": 2, "queue": "research", "minResources": {"cpu": "3"}}))?).await?;
    let asks =
        |group: &Value| group["spec"] == json!({"minMember": 2, "minResources": {"cpu": "3"}, "queue": "research"});
    env.namespace.until("PodGroup", NAME, "to ask for what the policy says", asks).await?;
    let waits = |job: &Value| condition(job, "Ready")["reason"] == "WaitingForPodGroup";
    env.namespace.until("PyTorchJob", NAME, "to wait for its group", waits).await?;
    only_pods(env, &[]).await?;
    env.namespace.patch("PodGroup", NAME, json!({"status": {"phase": "Inqueue"}})).await?;
    runs(env).await?;
    let moved = json!({"spec": {"runPolicy": {"schedulingPolicy": {"queue": "production"}}}});
    let refused = env.namespace.patch("PyTorchJob", NAME, moved).await;
    ensure!(refused.is_err_and(|error| format!("{error:#}").contains("immutable")), "the queue can change");
    for pod in pods(env).await?.values() {
        ensure!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == NAME, "{pod}");
    }
    let suspend = json!({"spec": {"runPolicy": {"suspend": true}}});
    env.namespace.patch("PyTorchJob", NAME, suspend).await?;
    env.namespace.until_gone("PodGroup", NAME).await?;
    only_pods(env, &[]).await
}

async fn a_gang_of_scheduler_plugins_starts_with_its_group(env: &mut TestEnv) -> Result<()> {
    let _config = start_on_own(env, &[COSCHEDULING_POD_GROUP], &json!({"gangScheduler": "scheduler-plugins"})).await?;
    env.namespace.apply(gang(&json!({"minAvailable": 2, "scheduleTimeoutSeconds": 60}))?).await?;
    runs(env).await?;
    for pod in pods(env).await?.values() {
        ensure!(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == NAME, "{pod}");
    }
    let group = env.namespace.get("PodGroup.scheduling.x-k8s.io", NAME).await?.unwrap_or_default();
    let asked = |field: &str| group["spec"][field].clone();
    ensure!(asked("minMember") == 2 && asked("scheduleTimeoutSeconds") == 60, "{group}");
    Ok(())
}

async fn an_elastic_job_follows_its_autoscaler(env: &mut TestEnv) -> Result<()> {
    let _config = start_on_own(env, &[], &json!({})).await?;
    let metrics = MetricsApi::start(&env.namespace.client()).await?;
    metrics.set(BACKLOG, "1");
    let external = json!({"metric": {"name": BACKLOG}, "target": {"type": "AverageValue", "averageValue": "1"}});
    let mut job = sample(&json!({}), "OnFailure")?;
    job["spec"]["elasticPolicy"] =
        json!({"minReplicas": 1, "maxReplicas": 3, "metrics": [{"type": "External", "external": external}]});
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = json!(1);
    if let Some(replicas) = job["spec"]["pytorchReplicaSpecs"].as_object_mut() {
        replicas.remove("Master");
    }
    env.namespace.apply(job).await?;
    has_workers(env, 1).await?;
    let first = pods(env).await?;
    metrics.set(BACKLOG, "3");
    has_workers(env, 3).await?;
    let after = pods(env).await?;
    let uid = "mnist-worker-0";
    ensure!(first[uid]["metadata"]["uid"] == after[uid]["metadata"]["uid"], "the first worker was made anew");
    env.namespace.patch("PyTorchJob", NAME, json!({"spec": {"runPolicy": {"suspend": true}}})).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", NAME).await?;
    only_pods(env, &[]).await
}

/// Waits until so many workers run.
async fn has_workers(env: &TestEnv, workers: i64) -> Result<()> {
    let what = format!("to run {workers} workers");
    let awaited = Awaited { kind: "PyTorchJob", name: NAME, what: &what };
    let runs = |job: &Value| job["status"]["replicaStatuses"]["Worker"]["active"] == workers;
    env.namespace.until_within(LONG, &awaited, runs).await?;
    Ok(())
}
