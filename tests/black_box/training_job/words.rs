//! Helpers for the tests of the plugin: create jobs, end Pods, and wait for conditions and Events.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DynamicObject, EvictParams, Patch, PatchParams},
};
use pilothouse_control_plane::{EXIT, SIGTERM};
use pilothouse_tests::{
    cluster::{self, PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::test_env::TestEnv;

/// The name of the job in tests with a single job.
pub const JOB: &str = "mnist";

/// An Event on a job: its reason, its message and its count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventRecord {
    /// The CamelCase reason.
    pub reason: String,
    /// The message.
    pub message: String,
    /// How often it occurred.
    pub count: i64,
}

/// A job with two PyTorch workers. The fields of `spec` replace the defaults.
pub fn job(spec: Value) -> Value {
    named(JOB, spec)
}

/// A job with this name.
pub fn named(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "ml.example.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"framework": "pytorch", "workers": 2, "image": "example.com/train:1", "command": ["python", "train.py"]},
    });
    if let (Some(all), Value::Object(given)) = (object["spec"].as_object_mut(), spec) {
        all.extend(given);
    }
    object
}

/// Starts the host with the plugin, submits the test's job and waits until all its workers run.
pub async fn start_running(env: &mut TestEnv, spec: Value) -> Result<Value> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(spec)).await?;
    runs(env, JOB).await
}

/// Waits until all workers of a job run.
pub async fn runs(env: &TestEnv, name: &str) -> Result<Value> {
    env.namespace.until("TrainingJob", name, "to run with all its workers", is_running_with_all).await
}

/// Whether all workers of a job run.
pub fn is_running_with_all(job: &Value) -> bool {
    let status = &job["status"];
    status["phase"] == "Running"
        && status["active"] == job["spec"]["workers"]
        && condition(job, "Running")["status"] == "True"
        && is_current(job)
}

/// Waits until a job has a condition with a reason.
pub async fn has(env: &TestEnv, name: &str, condition_type: &str, reason: &str) -> Result<Value> {
    let holds = |job: &Value| {
        let found = condition(job, condition_type);
        found["status"] == "True" && found["reason"] == reason && is_current(job)
    };
    env.namespace.until("TrainingJob", name, &format!("to be {condition_type} for {reason}"), holds).await
}

/// Waits until a job is not ready for this reason.
pub async fn waits(env: &TestEnv, name: &str, reason: &str) -> Result<Value> {
    let holds = |job: &Value| {
        let ready = condition(job, "Ready");
        ready["status"] == "False" && ready["reason"] == reason && is_current(job)
    };
    env.namespace.until("TrainingJob", name, &format!("to wait for {reason}"), holds).await
}

/// Waits until a job says that somebody else has this object, whose name it needs.
pub async fn name_is_taken(env: &TestEnv, job: &str, their: &Value) -> Result<()> {
    let words = format!("{} '{}'", text(&their["kind"])?, text(&their["metadata"]["name"])?);
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        let message = ready["message"].to_string();
        let is_told = message.contains(&words) && message.contains("somebody else");
        ready["status"] == "False" && ready["reason"] == "NameConflict" && is_told
    };
    env.namespace.until("TrainingJob", job, &format!("to say that {words} is taken"), told).await.map(drop)
}

/// Checks that nobody has written an object of somebody else.
pub async fn is_left_alone(env: &TestEnv, kind: &str, their: &Value) -> Result<()> {
    let now = env.namespace.get(kind, &text(&their["metadata"]["name"])?).await?.unwrap_or_default();
    ensure!(now == *their, "{their} became {now}");
    Ok(())
}

/// Whether the status is about the present spec.
fn is_current(job: &Value) -> bool {
    job["status"]["observedGeneration"] == job["metadata"]["generation"]
}

/// All Pods of the namespace, by name.
pub async fn pods(env: &TestEnv) -> Result<BTreeMap<String, Value>> {
    let pods = env.namespace.list("Pod").await?;
    pods.into_iter().map(|pod| Ok((text(&pod["metadata"]["name"])?, pod))).collect()
}

/// Waits until exactly these Pods exist and none of them is being deleted.
pub async fn only_pods(env: &TestEnv, names: &[&str]) -> Result<()> {
    eventually(PATIENCE, &format!("only the Pods {names:?}"), async || {
        let pods = pods(env).await?;
        let stay = pods.values().all(|pod| pod["metadata"].get("deletionTimestamp").is_none());
        Ok(Look::of(stay && pods.keys().eq(names), pods.keys()))
    })
    .await
}

/// The UIDs of the Pods.
pub fn uids(pods: &BTreeMap<String, Value>) -> BTreeSet<String> {
    pods.values().map(|pod| pod["metadata"]["uid"].to_string()).collect()
}

/// The environment variables of a Pod's container that have a plain value.
pub fn environment(pod: &Value) -> BTreeMap<&str, &str> {
    let variables = pod["spec"]["containers"][0]["env"].as_array();
    let plain = variables.into_iter().flatten();
    plain.filter_map(|variable| variable["name"].as_str().zip(variable["value"].as_str())).collect()
}

/// Ends the container of a running Pod with this exit code.
pub async fn exit(env: &TestEnv, pod: &str, code: u8) -> Result<()> {
    env.namespace.patch("Pod", pod, json!({"metadata": {"annotations": {EXIT: code.to_string()}}})).await?;
    Ok(())
}

/// Says with which exit code a Pod's processes end when it is deleted.
pub async fn ends_on_sigterm(env: &TestEnv, pod: &str, code: u8) -> Result<()> {
    annotate(env, pod, SIGTERM, &code.to_string()).await
}

/// Sets an annotation of a Pod.
pub async fn annotate(env: &TestEnv, pod: &str, annotation: &str, value: &str) -> Result<()> {
    env.namespace.patch("Pod", pod, json!({"metadata": {"annotations": {annotation: value}}})).await?;
    Ok(())
}

/// Removes an annotation of a Pod.
pub async fn clear(env: &TestEnv, pod: &str, annotation: &str) -> Result<()> {
    env.namespace.patch("Pod", pod, json!({"metadata": {"annotations": {annotation: null}}})).await?;
    Ok(())
}

/// Evicts a Pod as `kubectl drain` does: the API server marks it as disrupted and deletes it.
pub async fn evict(env: &TestEnv, pod: &str) -> Result<()> {
    let pods = Api::<Pod>::namespaced(env.namespace.client(), &env.namespace.name);
    pods.evict(pod, &EvictParams::default()).await?;
    Ok(())
}

/// Waits until a Pod is another one than that of this UID.
pub async fn is_replaced(env: &TestEnv, pod: &str, before: &Value) -> Result<Value> {
    let uid = &before["metadata"]["uid"];
    env.namespace.until("Pod", pod, "to be made anew", |pod| pod["metadata"]["uid"] != *uid).await
}

/// Ends all Pods of the namespace with success.
pub async fn succeed(env: &TestEnv) -> Result<()> {
    for pod in pods(env).await?.keys() {
        exit(env, pod, 0).await?;
    }
    Ok(())
}

/// Suspends the test's job, or resumes it.
pub async fn suspend(env: &TestEnv, suspend: bool) -> Result<()> {
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"runPolicy": {"suspend": suspend}}})).await?;
    Ok(())
}

/// Creates a claim and the volume to which it is bound.
pub async fn claim(env: &TestEnv, name: &str) -> Result<()> {
    let volume = format!("{}-{name}", env.namespace.name);
    let (modes, size) = (json!(["ReadWriteMany"]), json!({"storage": "1Gi"}));
    let persistent = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
        "spec": {
            "accessModes": modes, "capacity": size, "hostPath": {"path": "/nowhere"}, "storageClassName": "",
            "claimRef": {"namespace": env.namespace.name, "name": name},
        },
    });
    let volumes: Api<DynamicObject> = cluster::api(&env.namespace.client(), "PersistentVolume", None)?;
    volumes.patch(&volume, &PatchParams::apply("user"), &Patch::Apply(persistent)).await?;
    // A claim whose volume is not known yet is retried only after 15 s.
    eventually(PATIENCE, "the volume to be known", async || {
        let phase = volumes.get(&volume).await?.data["status"]["phase"].clone();
        Ok(Look::of(phase == "Available", phase))
    })
    .await?;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": modes, "resources": {"requests": size}, "storageClassName": "", "volumeName": volume},
    });
    env.namespace.apply(claim).await?;
    Ok(())
}

/// The Events on a job, sorted.
pub async fn events(env: &TestEnv, name: &str) -> Result<Vec<EventRecord>> {
    let events = env.namespace.list("Event").await?;
    let of_job = events.iter().filter(|event| event["involvedObject"]["kind"] == "TrainingJob");
    let of_job = of_job.filter(|event| event["involvedObject"]["name"] == name);
    let mut events: Vec<_> = of_job
        .map(|event| {
            let (reason, message) = (text(&event["reason"])?, text(&event["message"])?);
            Ok(EventRecord { reason, message, count: event["count"].as_i64().unwrap_or_default() })
        })
        .collect::<Result<_>>()?;
    events.sort();
    Ok(events)
}

/// The number of Events by reason.
pub fn counts(events: &[EventRecord]) -> BTreeMap<&str, i64> {
    events.iter().fold(BTreeMap::new(), |mut counts, event| {
        *counts.entry(event.reason.as_str()).or_default() += event.count;
        counts
    })
}

/// Waits until the Events with this reason have this count. They are written after the status that belongs to them.
pub async fn has_events(env: &TestEnv, name: &str, reason: &str, times: i64) -> Result<()> {
    eventually(PATIENCE, &format!("{times} Events {reason}"), async || {
        let events = events(env, name).await?;
        Ok(Look::of(counts(&events).get(reason) == Some(&times), events))
    })
    .await
}

/// The value of a metric once the host is at rest.
pub async fn metric(env: &TestEnv, name: &str) -> Result<f64> {
    Ok(env.metrics_at_rest().await?.sum(name, &[]))
}

/// The string in a JSON value.
pub fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is not a text"))?.to_owned())
}
