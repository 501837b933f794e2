//! A job in a queue of the real Kueue: it waits for quota, starts, gives its place to another one, and starts again.

use anyhow::{Result, ensure};
use pilothouse_control_plane::LOST;
use pilothouse_tests::{
    cluster::{Cluster, condition},
    kueue::{Kueue, queue},
    needs,
    third_party::KUEUE,
};
use serde_json::{Value, json};

use super::words::{
    JOB, annotate, clear, exit, has, has_events, is_replaced, name_is_taken, named, only_pods, pods, runs, suspend,
    text, waits,
};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        needs::program(&KUEUE, "make third-party"),
        a_job_waits_in_its_queue_and_gives_its_place_to_a_more_urgent_one,
    );
}

const WORKLOAD: &str = "trainingjob-mnist";

/// A job with two workers of one CPU each, in the queue.
fn queued(name: &str, more: Value) -> Value {
    let mut job = named(name, json!({"workers": 2, "resources": {"requests": {"cpu": "1"}}}));
    let mut labels = json!({"kueue.x-k8s.io/queue-name": "research"});
    if let (Some(all), Value::Object(more)) = (labels.as_object_mut(), more) {
        all.extend(more);
    }
    job["metadata"]["labels"] = labels;
    job
}

async fn a_job_waits_in_its_queue_and_gives_its_place_to_a_more_urgent_one(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    env.start(&["training-job"]).await?;
    env.namespace.apply(queued(JOB, json!({}))).await?;
    waits(env, JOB, "QueueNotInstalled").await?;
    let _kueue = Kueue::start(&env.cluster).await?;
    waits(env, JOB, "WaitingForQuota").await?;
    only_pods(env, &[]).await?;

    queue(&env.cluster, &env.namespace.name, "research", 3).await?;
    runs(env, JOB).await?;
    let first = pods(env).await?;
    for pod in first.values() {
        ensure!(pod["spec"]["nodeSelector"]["kubernetes.io/os"] == "linux", "not on the nodes of the flavor: {pod}");
        ensure!(pod["metadata"]["labels"].get("kueue.x-k8s.io/queue-name").is_none(), "it would wait twice: {pod}");
    }
    let workload = env.namespace.get("Workload", WORKLOAD).await?.unwrap_or_default();
    ensure!(workload["spec"]["podSets"][0]["count"] == 2 && workload["spec"]["queueName"] == "research", "{workload}");
    // Kueue's webhooks are at work.
    let others = json!([{"name": "others", "count": 3, "template": workload["spec"]["podSets"][0]["template"]}]);
    let changed = env.namespace.patch("Workload", WORKLOAD, json!({"spec": {"podSets": others}})).await;
    ensure!(
        changed.is_err_and(|error| format!("{error:#}").contains("denied the request")),
        "it can change once admitted"
    );

    // A failure keeps the place.
    exit(env, "mnist-worker-1", 1).await?;
    let anew = |pod: &Value| pod["metadata"]["uid"] != first["mnist-worker-0"]["metadata"]["uid"];
    env.namespace.until("Pod", "mnist-worker-0", "to be made anew", anew).await?;
    let running = runs(env, JOB).await?;
    ensure!(running["status"]["restartCount"] == 1, "{}", running["status"]);
    let same = env.namespace.get("Workload", WORKLOAD).await?.unwrap_or_default();
    ensure!(same["metadata"]["uid"] == workload["metadata"]["uid"], "it has asked for quota anew");

    // There is room for one of them, and the other one is more urgent.
    env.namespace.apply(queued("urgent", json!({"kueue.x-k8s.io/priority-class": "urgent"}))).await?;
    runs(env, "urgent").await?;
    let waiting = waits(env, JOB, "WaitingForQuota").await?;
    only_pods(env, &["urgent-worker-0", "urgent-worker-1"]).await?;
    let status = &waiting["status"];
    ensure!(status["restartCount"] == 1, "it has cost a restart: {status}");
    ensure!(status.get("startTime").is_none() && status["active"] == 0, "its deadline goes on: {status}");
    ensure!(condition(&waiting, "Restarting")["reason"] == "QuotaLost", "{}", waiting["status"]);
    let why = text(&condition(&waiting, "Restarting")["message"])?;
    ensure!(why.contains("Preempted"), "{why}");
    has_events(env, JOB, "TrainingJobRestarting", 2).await?;

    for pod in ["urgent-worker-0", "urgent-worker-1"] {
        exit(env, pod, 0).await?;
    }
    has(env, "urgent", "Succeeded", "TrainingJobSucceeded").await?;
    let again = runs(env, JOB).await?;
    ensure!(again["status"]["startTime"].is_string(), "{}", again["status"]);

    // Without its queue it runs without quota, and with other Pods.
    let before = pods(env).await?["mnist-worker-0"].clone();
    let leave = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}});
    env.namespace.patch("TrainingJob", JOB, leave).await?;
    is_replaced(env, "mnist-worker-0", &before).await?;
    env.namespace.until_gone("Workload", WORKLOAD).await?;
    let alone = runs(env, JOB).await?;
    ensure!(alone["status"]["restartCount"] == 1, "it has cost a restart: {}", alone["status"]);

    // With its queue it waits for quota, and gets it.
    let before = pods(env).await?["mnist-worker-0"].clone();
    let enter = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "research"}}});
    env.namespace.patch("TrainingJob", JOB, enter).await?;
    is_replaced(env, "mnist-worker-0", &before).await?;
    env.namespace.until("Workload", WORKLOAD, "to be there", |_| true).await?;
    runs(env, JOB).await?;

    // Suspended, it keeps its quota until its last Pod is gone.
    annotate(env, "mnist-worker-0", LOST, "").await?;
    suspend(env, true).await?;
    env.namespace.until_gone("Pod", "mnist-worker-1").await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    let kept = env.namespace.get("Workload", WORKLOAD).await?.unwrap_or_default();
    ensure!(kept["metadata"].get("deletionTimestamp").is_none() && kept["status"].is_object(), "it is free: {kept}");
    clear(env, "mnist-worker-0", LOST).await?;
    env.namespace.until_gone("Workload", WORKLOAD).await?;
    only_pods(env, &["urgent-worker-0", "urgent-worker-1"]).await?;
    suspend(env, false).await?;
    runs(env, JOB).await?;
    for pod in ["mnist-worker-0", "mnist-worker-1"] {
        exit(env, pod, 0).await?;
    }
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    // What has ended holds no quota.
    env.namespace.until_gone("Workload", WORKLOAD).await?;
    gives_its_quota_back_when_its_last_pod_is_gone(env).await
}

/// A job is deleted, and one of its Pods stays: whoever waits for its quota goes on waiting.
async fn gives_its_quota_back_when_its_last_pod_is_gone(env: &TestEnv) -> Result<()> {
    env.namespace.apply(queued("deleted", json!({}))).await?;
    runs(env, "deleted").await?;
    env.namespace.apply(queued("next", json!({}))).await?;
    waits(env, "next", "WaitingForQuota").await?;
    annotate(env, "deleted-worker-0", LOST, "").await?;
    env.namespace.delete("TrainingJob", "deleted").await?;
    env.namespace.until_gone("Pod", "deleted-worker-1").await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", "deleted", "seen").await).await?;
    let kept = env.namespace.get("Workload", "trainingjob-deleted").await?.unwrap_or_default();
    ensure!(kept["metadata"].get("deletionTimestamp").is_none() && kept["status"].is_object(), "it is free: {kept}");
    waits(env, "next", "WaitingForQuota").await?;
    clear(env, "deleted-worker-0", LOST).await?;
    env.namespace.until_gone("TrainingJob", "deleted").await?;
    env.namespace.until_gone("Workload", "trainingjob-deleted").await?;
    runs(env, "next").await?;
    for pod in ["next-worker-0", "next-worker-1"] {
        exit(env, pod, 0).await?;
    }
    has(env, "next", "Succeeded", "TrainingJobSucceeded").await?;
    takes_no_quota_of_somebody_else(env).await
}

/// Somebody has copied the Workload of a job under another one's name, and Kueue admits it.
async fn takes_no_quota_of_somebody_else(env: &TestEnv) -> Result<()> {
    const TAKEN: &str = "trainingjob-taken";
    const ASKS_FOR: &str = "ml.example.com/asks-for";
    env.namespace.apply(queued("taken", json!({}))).await?;
    runs(env, "taken").await?;
    let own = env.namespace.get("Workload", TAKEN).await?.unwrap_or_default();
    env.namespace.delete("TrainingJob", "taken").await?;
    env.namespace.until_gone("TrainingJob", "taken").await?;
    env.namespace.until_gone("Workload", TAKEN).await?;
    let metadata = json!({"name": TAKEN, "annotations": {ASKS_FOR: own["metadata"]["annotations"][ASKS_FOR]}});
    let copy = json!({
        "apiVersion": own["apiVersion"], "kind": own["kind"], "metadata": metadata, "spec": own["spec"],
    });
    env.namespace.apply(copy).await?;
    let is_admitted = |workload: &Value| condition(workload, "Admitted")["status"] == "True";
    let their = env.namespace.until("Workload", TAKEN, "to be admitted", is_admitted).await?;
    env.namespace.apply(queued("taken", json!({}))).await?;
    name_is_taken(env, "taken", &their).await?;
    let made = pods(env).await?;
    ensure!(
        !made.keys().any(|pod| pod.starts_with("taken-")),
        "it runs with the quota of somebody else: {:?}",
        made.keys()
    );
    // Kueue writes the rest.
    let now = env.namespace.get("Workload", TAKEN).await?.unwrap_or_default();
    let of_users = |workload: &Value| {
        let metadata = &workload["metadata"];
        (
            metadata["uid"].clone(),
            metadata["ownerReferences"].clone(),
            metadata["labels"].clone(),
            workload["spec"].clone(),
        )
    };
    ensure!(of_users(&now) == of_users(&their), "{their} became {now}");
    env.namespace.delete("Workload", TAKEN).await?;
    runs(env, "taken").await.map(drop)
}
