//! Jobs that do not get on: they say why in the words of those who know, and have limits for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use pilothouse_control_plane::LOST;
use pilothouse_tests::{
    cluster::{Awaited, condition},
    nodes::set_pod_status,
};
use serde_json::{Value, json};

use super::words::{
    JOB, annotate, events, exit, has, has_events, is_replaced, is_running_with_all, job, named, only_pods, runs,
    start_running, waits,
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The longest time until a Pod that does not go is told of.
const TOLD: Duration = Duration::from_secs(100);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_is_not_ready_before_all_its_workers_run,
        a_job_that_a_quota_cuts_says_so_and_gives_up_in_time,
        a_job_whose_pods_are_refused_has_the_words_of_the_api_server,
        a_job_whose_pod_stays_on_a_lost_node_says_where,
        a_pod_that_stays_is_told_and_waited_for,
        a_pod_on_a_lost_node_is_forced_away_if_asked,
        a_pod_of_a_suspended_job_on_a_lost_node_is_forced_away_if_asked,
        a_pod_that_was_scaled_away_on_a_lost_node_is_forced_away_if_asked,
        a_pod_on_a_lost_node_does_not_keep_a_deleted_job_if_asked,
        the_pause_before_a_restart_is_no_part_of_the_start_deadline,
    );
}

/// No node takes the Pods, so the test sets one of them to running.
async fn a_job_is_not_ready_before_all_its_workers_run(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"workers": 3, "nodeSelector": {"no-node": "has-this"}}))).await?;
    let wait = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| workers.iter().all(|worker| worker["reason"] == "Unschedulable"))
    };
    env.namespace.until("TrainingJob", JOB, "to say that all its workers wait", wait).await?;
    set_pod_status(&env.namespace, "mnist-worker-0", json!({"phase": "Running", "conditions": []})).await?;
    has(env, JOB, "Running", "TrainingJobRunning").await?;
    let job = waits(env, JOB, "WorkersPending").await?;
    let message = condition(&job, "Ready")["message"].to_string();
    ensure!(message.contains("1 of 3 workers run; mnist-worker-1: Unschedulable"), "{message}");
    Ok(())
}

async fn a_job_that_a_quota_cuts_says_so_and_gives_up_in_time(env: &mut TestEnv) -> Result<()> {
    let hard = json!({"pods": "2"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard},
    });
    env.namespace.apply(quota).await?;
    let known = Patch::Merge(json!({"status": {"hard": hard, "used": {"pods": "0"}}}));
    env.namespace.api("ResourceQuota")?.patch_status("few", &PatchParams::default(), &known).await?;
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"workers": 3, "runPolicy": {"startDeadlineSeconds": 5}}))).await?;
    let told = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| {
            workers.iter().any(|worker| {
                worker["reason"] == "FailedCreatePod" && worker["message"].to_string().contains("exceeded quota")
            })
        })
    };
    env.namespace.until("TrainingJob", JOB, "to say what the API server said", told).await?;
    has_events(env, JOB, "FailedCreatePod", 1).await?;
    let failed = has(env, JOB, "Failed", "StartDeadlineExceeded").await?;
    ensure!(condition(&failed, "Failed")["message"].to_string().contains("exceeded quota"), "{}", failed["status"]);
    only_pods(env, &[]).await
}

async fn a_job_whose_pods_are_refused_has_the_words_of_the_api_server(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for (name, missing, words) in [
        ("account", json!({"serviceAccountName": "nobody"}), "serviceaccount \"nobody\" not found"),
        ("priority", json!({"priorityClassName": "nothing"}), "no PriorityClass with name nothing was found"),
    ] {
        env.namespace.apply(named(name, missing)).await?;
        let told = |job: &Value| {
            let worker = &job["status"]["workerStatuses"][0];
            let ready = condition(job, "Ready")["message"].as_str().unwrap_or_default().to_owned();
            worker["reason"] == "FailedCreatePod" && ready.contains(words)
        };
        env.namespace.until("TrainingJob", name, "to say what the API server said", told).await?;
        has_events(env, name, "FailedCreatePod", 1).await?;
    }
    only_pods(env, &[]).await
}

async fn a_job_whose_pod_stays_on_a_lost_node_says_where(env: &mut TestEnv) -> Result<()> {
    const LOST_POD: &str = "mnist-worker-1";
    let policy = json!({"terminationTimeoutSeconds": 2});
    start_running(env, json!({"terminationGracePeriodSeconds": 1, "runPolicy": policy})).await?;
    annotate(env, LOST_POD, LOST, "").await?;
    env.namespace.delete("Pod", LOST_POD).await?;
    let job = has(env, JOB, "Failed", "TerminationTimeoutExceeded").await?;
    let pod = env.namespace.get("Pod", LOST_POD).await?.unwrap_or_default();
    let message = condition(&job, "Failed")["message"].to_string();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
    for part in [LOST_POD, node, "s ago;", "--grace-period=0 --force"] {
        ensure!(message.contains(part), "{part} is not in {message}");
    }
    Ok(())
}

/// It is told a minute after it should have gone, so that slow volumes are no news.
async fn a_pod_that_stays_is_told_and_waited_for(env: &mut TestEnv) -> Result<()> {
    const LOST_POD: &str = "mnist-worker-1";
    start_running(env, json!({"terminationGracePeriodSeconds": 1})).await?;
    annotate(env, LOST_POD, LOST, "").await?;
    env.namespace.delete("Pod", LOST_POD).await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready")["message"].as_str().unwrap_or_default().to_owned();
        job["status"]["workerStatuses"][1]["reason"] == "FailedDeletePod"
            && ready.contains("on node 'node-0'")
            && ready.contains("more than 1m ago")
            && ready.contains("--grace-period=0 --force")
    };
    let awaited = Awaited { kind: "TrainingJob", name: JOB, what: "to tell of the Pod that stays" };
    env.namespace.until_within(TOLD, &awaited, told).await?;
    has_events(env, JOB, "FailedDeletePod", 1).await?;
    let forced = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    env.namespace.api("Pod")?.delete(LOST_POD, &forced).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

async fn a_pod_on_a_lost_node_is_forced_away_if_asked(env: &mut TestEnv) -> Result<()> {
    const LOST_POD: &str = "mnist-worker-1";
    let policy = json!({"terminationTimeoutSeconds": 2, "onTerminationTimeout": "ForceDelete"});
    start_running(env, json!({"terminationGracePeriodSeconds": 1, "runPolicy": policy})).await?;
    annotate(env, LOST_POD, LOST, "").await?;
    let lost = env.namespace.get("Pod", LOST_POD).await?.unwrap_or_default();
    env.namespace.delete("Pod", LOST_POD).await?;
    is_replaced(env, LOST_POD, &lost).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    has_events(env, JOB, "ForceDeletePod", 1).await?;
    let told = events(env, JOB).await?.into_iter().find(|event| event.reason == "ForceDeletePod");
    let message = told.map(|event| event.message).unwrap_or_default();
    ensure!(message.contains("on node 'node-0' should have been gone at"), "{message}");
    Ok(())
}

async fn a_pod_of_a_suspended_job_on_a_lost_node_is_forced_away_if_asked(env: &mut TestEnv) -> Result<()> {
    runs_with_a_pod_on_a_lost_node(env).await?;
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"runPolicy": {"suspend": true}}})).await?;
    has_events(env, JOB, "ForceDeletePod", 1).await?;
    only_pods(env, &[]).await?;
    let job = has(env, JOB, "Suspended", "TrainingJobSuspended").await?;
    let no_more = |job: &Value| job["status"].get("stuckPods").is_none();
    env.namespace.until("TrainingJob", JOB, "to have no Pod that stays", no_more).await?;
    ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
    Ok(())
}

async fn a_pod_that_was_scaled_away_on_a_lost_node_is_forced_away_if_asked(env: &mut TestEnv) -> Result<()> {
    const LOST_POD: &str = "mnist-worker-1";
    runs_with_a_pod_on_a_lost_node(env).await?;
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"workers": 1}})).await?;
    has_events(env, JOB, "ForceDeletePod", 1).await?;
    let told = events(env, JOB).await?.into_iter().find(|event| event.reason == "ForceDeletePod");
    let message = told.map(|event| event.message).unwrap_or_default();
    ensure!(message.contains(LOST_POD) && message.contains("on node 'node-0'"), "{message}");
    env.namespace.until_gone("Pod", LOST_POD).await?;
    let runs_without = |job: &Value| job["status"].get("stuckPods").is_none() && is_running_with_all(job);
    let job = env.namespace.until("TrainingJob", JOB, "to run without the Pod that stayed", runs_without).await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
    only_pods(env, &["mnist-worker-0"]).await
}

async fn a_pod_on_a_lost_node_does_not_keep_a_deleted_job_if_asked(env: &mut TestEnv) -> Result<()> {
    runs_with_a_pod_on_a_lost_node(env).await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    only_pods(env, &[]).await
}

/// A job that forces Pods away, with a Pod that does not go by itself.
async fn runs_with_a_pod_on_a_lost_node(env: &mut TestEnv) -> Result<()> {
    let policy = json!({"terminationTimeoutSeconds": 2, "onTerminationTimeout": "ForceDelete"});
    start_running(env, json!({"terminationGracePeriodSeconds": 1, "runPolicy": policy})).await?;
    annotate(env, "mnist-worker-1", LOST, "").await
}

/// The second restart of a row waits for longer than the job may take to start.
async fn the_pause_before_a_restart_is_no_part_of_the_start_deadline(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"runPolicy": {"startDeadlineSeconds": 8}})).await?;
    for (restarts, delay) in [(1, 0), (2, 10)] {
        exit(env, "mnist-worker-1", 1).await?;
        let counted = |job: &Value| job["status"]["restartCount"] == restarts;
        let job = env.namespace.until("TrainingJob", JOB, "to be restarted", counted).await?;
        ensure!(job["status"]["restartDelaySeconds"].as_u64().unwrap_or_default() == delay, "{}", job["status"]);
        let runs_again = |job: &Value| condition(job, "Restarting")["status"] == "False" && is_running_with_all(job);
        let job = env.namespace.until("TrainingJob", JOB, "to run again", runs_again).await?;
        ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
    }
    Ok(())
}
