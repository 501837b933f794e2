//! What a cluster does to the Pods of a job: drains, evictions, restarts in place. Pods end as kubelets end them, with a phase before they
//! go. None of it is a success, and none of it is a failure of the program.

use anyhow::{Result, ensure};
use pilothouse_control_plane::LINGER;
use pilothouse_tests::{
    cluster::condition,
    nodes::{end_by_kubelet, set_pod_status},
};
use serde_json::{Value, json};

use super::words::{
    JOB, annotate, clear, ends_on_sigterm, events, evict, exit, has, is_replaced, metric, pods, runs, start_running,
    suspend, text, uids,
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_drained_worker_that_ends_with_0_has_not_succeeded,
        a_success_that_was_known_before_the_deletion_counts,
        a_drained_member_of_an_elastic_job_that_ends_with_0_has_not_succeeded,
        a_replaced_worker_that_ends_with_0_is_made_again,
        a_worker_that_ends_with_0_in_a_suspension_has_not_succeeded,
        a_worker_that_ends_with_0_in_a_scale_down_is_made_again,
        an_eviction_restarts_a_job_that_never_retries,
        a_drain_seen_together_with_the_failure_of_a_peer_is_the_cause,
        the_worker_that_failed_first_is_the_cause,
        an_incident_in_place_is_charged_once,
    );
}

/// The first worker.
const FIRST: &str = "mnist-worker-0";

/// The second worker.
const SECOND: &str = "mnist-worker-1";

async fn a_drained_worker_that_ends_with_0_has_not_succeeded(env: &mut TestEnv) -> Result<()> {
    is_drained_while_the_host_is_down(env, json!({"workers": 1})).await
}

/// The Pod stays for a while, as if its volumes took their time.
async fn a_success_that_was_known_before_the_deletion_counts(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2})).await?;
    annotate(env, FIRST, LINGER, "").await?;
    exit(env, FIRST, 0).await?;
    let known = |job: &Value| job["status"]["workerStatuses"][0]["status"] == "Succeeded";
    env.namespace.until("TrainingJob", JOB, "to know of the success", known).await?;
    env.namespace.delete("Pod", FIRST).await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    exit(env, SECOND, 0).await?;
    let job = has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

async fn a_drained_member_of_an_elastic_job_that_ends_with_0_has_not_succeeded(env: &mut TestEnv) -> Result<()> {
    let elastic = json!({"minWorkers": 1, "maxWorkers": 4});
    is_drained_while_the_host_is_down(env, json!({"workers": 3, "elastic": elastic})).await
}

async fn a_replaced_worker_that_ends_with_0_is_made_again(env: &mut TestEnv) -> Result<()> {
    let policy = json!({"restartPolicy": "Never", "restartScope": "Worker"});
    is_drained_while_the_host_is_down(env, json!({"workers": 2, "runPolicy": policy})).await
}

/// The host sees deletion and success at once, and then the Pod goes.
async fn is_drained_while_the_host_is_down(env: &mut TestEnv, spec: Value) -> Result<()> {
    start_running(env, spec).await?;
    let before = leaves_with_success(env, async |env| {
        env.host.stop().await?;
        evict(env, FIRST).await
    })
    .await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    clear(env, FIRST, LINGER).await?;
    is_replaced(env, FIRST, &before).await?;
    goes_on(env).await
}

async fn a_worker_that_ends_with_0_in_a_suspension_has_not_succeeded(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2, "elastic": {"minWorkers": 1, "maxWorkers": 2}})).await?;
    let before = leaves_with_success(env, async |env| suspend(env, true).await).await?;
    suspend(env, false).await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    clear(env, FIRST, LINGER).await?;
    is_replaced(env, FIRST, &before).await?;
    goes_on(env).await
}

async fn a_worker_that_ends_with_0_in_a_scale_down_is_made_again(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2, "elastic": {"minWorkers": 1, "maxWorkers": 2}})).await?;
    let before = pods(env).await?[SECOND].clone();
    ends_on_sigterm(env, SECOND, 0).await?;
    annotate(env, SECOND, LINGER, "").await?;
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"workers": 1}})).await?;
    env.namespace.until("Pod", SECOND, "to end with success", has_left_with_success).await?;
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"workers": 2}})).await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    clear(env, SECOND, LINGER).await?;
    is_replaced(env, SECOND, &before).await?;
    goes_on(env).await
}

/// Lets the first worker be deleted, end with 0 for it, and stay for a while. Returns it as it was.
async fn leaves_with_success(env: &mut TestEnv, delete: impl AsyncFnOnce(&mut TestEnv) -> Result<()>) -> Result<Value> {
    let before = pods(env).await?[FIRST].clone();
    ends_on_sigterm(env, FIRST, 0).await?;
    annotate(env, FIRST, LINGER, "").await?;
    delete(env).await?;
    env.namespace.until("Pod", FIRST, "to end with success", has_left_with_success).await?;
    Ok(before)
}

fn has_left_with_success(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded" && pod["metadata"]["deletionTimestamp"].is_string()
}

/// The job runs with all its workers, and nothing was counted.
async fn goes_on(env: &TestEnv) -> Result<()> {
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Succeeded").is_null() && condition(&job, "Failed").is_null(), "{}", job["status"]);
    ensure!(job["status"]["restartCount"] == 0 && job["status"]["succeeded"] == 0, "{}", job["status"]);
    Ok(())
}

/// The kubelet evicts a Pod under pressure; the program exits 1 for it.
async fn an_eviction_restarts_a_job_that_never_retries(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2, "runPolicy": {"restartPolicy": "Never", "backoffLimit": 0}})).await?;
    let before = pods(env).await?;
    end_by_kubelet(&env.namespace, SECOND, "Evicted", "The node was low on resource: memory.").await?;
    is_replaced(env, SECOND, &before[SECOND]).await?;
    goes_on(env).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["disruptionCount"] == 1, "{}", job["status"]);
    ensure!(uids(&before).is_disjoint(&uids(&pods(env).await?)), "its peer goes on alone");
    ensure!(metric(env, "training_jobs_restarted_total").await? == 0.0, "it is counted as a restart");
    Ok(())
}

/// The host sees both at once.
async fn a_drain_seen_together_with_the_failure_of_a_peer_is_the_cause(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2, "runPolicy": {"restartPolicy": "Never"}})).await?;
    let before = pods(env).await?;
    env.host.stop().await?;
    evict(env, SECOND).await?;
    env.namespace.until_gone("Pod", SECOND).await?;
    exit(env, FIRST, 1).await?;
    env.namespace.until("Pod", FIRST, "to fail", |pod| pod["status"]["phase"] == "Failed").await?;
    env.host.resume().await?;
    is_replaced(env, FIRST, &before[FIRST]).await?;
    goes_on(env).await
}

async fn the_worker_that_failed_first_is_the_cause(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 2, "runPolicy": {"restartPolicy": "ExitCode"}})).await?;
    let before = pods(env).await?;
    env.host.stop().await?;
    for (pod, code) in [(SECOND, 137), (FIRST, 1)] {
        exit(env, pod, code).await?;
        env.namespace.until("Pod", pod, "to fail", |pod| pod["status"]["phase"] == "Failed").await?;
    }
    env.host.resume().await?;
    is_replaced(env, FIRST, &before[FIRST]).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 1, "{}", job["status"]);
    Ok(())
}

/// The kubelet restarts the containers of all members, as after the loss of one of them.
async fn an_incident_in_place_is_charged_once(env: &mut TestEnv) -> Result<()> {
    let elastic = json!({"minWorkers": 1, "maxWorkers": 4});
    start_running(env, json!({"workers": 3, "elastic": elastic, "runPolicy": {"backoffLimit": 1}})).await?;
    for pod in pods(env).await?.values() {
        let name = text(&pod["metadata"]["name"])?;
        let now = jiff::Timestamp::now();
        // Before the incident, and not in its second: times of Pods are whole seconds, so who began in that one may have begun after it.
        let started = (now - jiff::SignedDuration::from_mins(1)).to_string();
        let ended = json!({"exitCode": 17, "reason": "Error", "startedAt": started, "finishedAt": now.to_string()});
        let container = json!({"name": "pytorch", "image": "i", "imageID": "", "ready": true, "restartCount": 1,
                               "state": {"running": {"startedAt": now.to_string()}}, "lastState": {"terminated": ended}});
        set_pod_status(&env.namespace, &name, json!({"containerStatuses": [container]})).await?;
        let known = |job: &Value| {
            let workers = job["status"]["workerStatuses"].as_array();
            workers.is_some_and(|all| all.iter().any(|worker| worker["podName"] == name && worker["exitCode"] == 17))
        };
        env.namespace.until("TrainingJob", JOB, "to know of it", known).await?;
    }
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 1, "{}", job["status"]);
    let events = events(env, JOB).await?;
    let told = |name: &str| {
        let message = format!("Pod {}.{name} exited with code 17 and runs again in its place", env.namespace.name);
        events.iter().any(|event| event.reason == "ExitedWithCode" && event.message == message)
    };
    ensure!(told(FIRST), "{events:?}");
    Ok(())
}
