//! The examples that other projects have for what their authors can say, on a real API server that no controller of Kubernetes works on: each step
//! of a rollout comes when the test says so.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};

use crate::{
    decorators::start_with,
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_cat_set_makes_and_takes_away_one_pod_at_a_time,
        a_cat_set_rolls_out_from_its_last_pod_on,
        a_cat_set_that_is_deleted_loses_its_last_pod_first,
        a_service_changes_over_once_the_other_colour_is_available,
        an_indexed_job_runs_so_many_pods_at_a_time,
        a_pod_gets_its_name_as_a_label,
    );
}

async fn a_cat_set_makes_and_takes_away_one_pod_at_a_time(env: &mut TestEnv) -> Result<()> {
    start(env, "cat-set").await?;
    for number in 0..3 {
        let pod = format!("backend-{number}");
        let found = env.namespace.until("Pod", &pod, "to be made", |_| true).await?;
        let claim = &found["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        ensure!(*claim == format!("www-{pod}") && found["spec"]["hostname"] == pod, "{found}");
        // The next one waits for it.
        env.metrics_at_rest().await?;
        ensure!(env.namespace.list("Pod").await?.len() == number + 1, "too many Pods beside {pod}");
        run(env, &pod).await?;
    }
    let object = env.namespace.until("CatSet", "backend", "to be ready", is_ready).await?;
    ensure!(object["status"]["replicas"] == 3 && object["status"]["readyReplicas"] == 3, "{object}");

    env.namespace.patch("CatSet", "backend", json!({"spec": {"replicas": 1}})).await?;
    env.namespace.until_gone("Pod", "backend-1").await?;
    let has_one = |object: &Value| is_ready(object) && object["status"]["replicas"] == 1;
    env.namespace.until("CatSet", "backend", "to have one Pod", has_one).await?;
    ensure!(deleted_pods(env).await? == ["backend-2", "backend-1"], "{:?}", deleted_pods(env).await?);
    ensure!(env.namespace.list("PersistentVolumeClaim").await?.len() == 3, "claims went with their Pods");
    Ok(())
}

async fn a_cat_set_rolls_out_from_its_last_pod_on(env: &mut TestEnv) -> Result<()> {
    start(env, "cat-set").await?;
    run_all(env, &["backend-0", "backend-1", "backend-2"]).await?;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    env.namespace.patch("CatSet", "backend", image).await?;
    let is_new = |pod: &Value| pod["spec"]["containers"][0]["image"] == "nginx:2";
    for pod in ["backend-2", "backend-1", "backend-0"] {
        env.namespace.until("Pod", pod, "to be made anew", is_new).await?;
        env.metrics_at_rest().await?;
        let deleted = deleted_pods(env).await?;
        ensure!(deleted.last().is_some_and(|last| last == pod), "the next one does not wait: {deleted:?}");
        run(env, pod).await?;
    }
    env.namespace.until("CatSet", "backend", "to be ready", is_ready).await?;
    ensure!(deleted_pods(env).await?.len() == 3, "{:?}", deleted_pods(env).await?);
    Ok(())
}

/// A finalizer of somebody else holds the last one, so that it shows that the others wait for it.
async fn a_cat_set_that_is_deleted_loses_its_last_pod_first(env: &mut TestEnv) -> Result<()> {
    start(env, "cat-set").await?;
    run_all(env, &["backend-0", "backend-1", "backend-2"]).await?;
    hold(env, json!(["tests.example.com/hold"])).await?;
    env.namespace.delete("CatSet", "backend").await?;
    let goes = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    env.namespace.until("Pod", "backend-2", "to be deleted", goes).await?;
    env.metrics_at_rest().await?;
    ensure!(deleted_pods(env).await? == ["backend-2"], "{:?}", deleted_pods(env).await?);
    hold(env, json!(null)).await?;
    env.namespace.until_gone("CatSet", "backend").await?;
    ensure!(deleted_pods(env).await? == ["backend-2", "backend-1", "backend-0"], "{:?}", deleted_pods(env).await?);
    Ok(())
}

async fn a_service_changes_over_once_the_other_colour_is_available(env: &mut TestEnv) -> Result<()> {
    start(env, "blue-green").await?;
    let has = |replicas: i64| move |set: &Value| set["spec"]["replicas"] == replicas;
    env.namespace.until("ReplicaSet", "web-blue", "to have two Pods", has(2)).await?;
    env.namespace.until("ReplicaSet", "web-green", "to have none", has(0)).await?;
    available(env, "web-blue", 2, 2).await?;
    env.namespace.until("BlueGreenDeployment", "web", "to be ready", is_ready).await?;

    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    env.namespace.patch("BlueGreenDeployment", "web", image).await?;
    let green = env.namespace.until("ReplicaSet", "web-green", "to have two Pods", has(2)).await?;
    ensure!(green["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2", "{green}");
    for available_pods in [0, 1] {
        available(env, "web-green", 2, available_pods).await?;
        let is_told =
            |object: &Value| object["status"]["inactive"]["availableReplicas"].as_i64().unwrap_or(0) == available_pods;
        env.namespace.until("BlueGreenDeployment", "web", "to say so", is_told).await?;
        env.metrics_at_rest().await?;
        ensure!(color(env).await? == "blue", "it changed over with {available_pods} Pods");
    }
    available(env, "web-green", 2, 2).await?;
    let is_green = |service: &Value| service["spec"]["selector"]["color"] == "green";
    env.namespace.until("Service", "front", "to change over", is_green).await?;
    env.namespace.until("ReplicaSet", "web-blue", "to have none", has(0)).await?;
    let object = env.namespace.until("BlueGreenDeployment", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["activeColor"] == "green", "{object}");
    let writes = env.host_writes().await?;
    ensure!(!writes.iter().any(|write| write.starts_with("delete ")), "{writes:?}");
    Ok(())
}

async fn an_indexed_job_runs_so_many_pods_at_a_time(env: &mut TestEnv) -> Result<()> {
    start(env, "indexed-job").await?;
    for pod in ["print-0", "print-1"] {
        env.namespace.until("Pod", pod, "to be made", |_| true).await?;
    }
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("Pod", "print-2").await?.is_none(), "there are three at a time");
    succeed(env, "print-1").await?;
    let third = env.namespace.until("Pod", "print-2", "to be made", |_| true).await?;
    ensure!(third["spec"]["containers"][0]["env"][0] == json!({"name": "JOB_INDEX", "value": "2"}), "{third}");
    succeed(env, "print-0").await?;
    succeed(env, "print-2").await?;
    let is_complete = |object: &Value| condition(object, "Complete")["status"] == "True";
    let job = env.namespace.until("IndexedJob", "print", "to be complete", is_complete).await?;
    ensure!(job["status"]["succeeded"] == 3 && job["status"]["active"] == 0, "{job}");

    // What is collected afterwards is not run again.
    env.reconciled_after("indexed-job", async || env.namespace.delete("Pod", "print-0").await).await?;
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("Pod", "print-0").await?.is_none(), "it ran again");
    let job = env.namespace.get("IndexedJob", "print").await?.context("it is gone")?;
    ensure!(job["status"]["succeeded"] == 3 && is_complete(&job), "{job}");
    Ok(())
}

/// The other half of the example with a Service for each Pod. What is a decorator's has tests of its own.
async fn a_pod_gets_its_name_as_a_label(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["pod-name-label"]).await?;
    let pod = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [{"name": "db", "image": "db:1"}]},
        })
    };
    env.namespace.apply(pod("plain", json!({}))).await?;
    env.namespace.apply(pod("db-0", json!({"pod-name-label": "pod-name"}))).await?;
    let is_labelled = |pod: &Value| pod["metadata"]["labels"]["pod-name"] == "db-0";
    env.namespace.until("Pod", "db-0", "to have its name as a label", is_labelled).await?;
    env.namespace.patch("Pod", "db-0", json!({"metadata": {"annotations": {"pod-name-label": null}}})).await?;
    let is_plain = |pod: &Value| pod["metadata"]["labels"]["pod-name"].is_null();
    env.namespace.until("Pod", "db-0", "to lose the label", is_plain).await?;
    let plain = env.namespace.get("Pod", "plain").await?.context("it is gone")?;
    ensure!(is_plain(&plain), "{plain}");
    Ok(())
}

/// A host with an example, and the example's object.
async fn start(env: &mut TestEnv, example: &str) -> Result<()> {
    env.move_to_api_server_with(&[&format!("examples/{example}/crd.yaml")]).await?;
    env.start(&[example]).await?;
    let object = artifacts::repository().join(format!("examples/{example}/{example}.yaml"));
    env.namespace.apply(serde_saphyr::from_str(&std::fs::read_to_string(object)?)?).await.map(drop)
}

/// What a node says of a Pod that runs.
async fn run(env: &TestEnv, pod: &str) -> Result<()> {
    set_status(env, "Pod", pod, json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})).await
}

/// Brings the object to rest, Pod by Pod.
async fn run_all(env: &TestEnv, pods: &[&str]) -> Result<()> {
    for pod in pods {
        env.namespace.until("Pod", pod, "to be made", |_| true).await?;
        run(env, pod).await?;
    }
    env.namespace.until("CatSet", "backend", "to be ready", is_ready).await.map(drop)
}

async fn succeed(env: &TestEnv, pod: &str) -> Result<()> {
    set_status(env, "Pod", pod, json!({"phase": "Succeeded"})).await
}

/// What its controller says of a ReplicaSet.
async fn available(env: &TestEnv, set: &str, replicas: i64, available: i64) -> Result<()> {
    let status = json!({"replicas": replicas, "readyReplicas": available, "availableReplicas": available});
    set_status(env, "ReplicaSet", set, status).await
}

async fn set_status(env: &TestEnv, kind: &str, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    env.namespace.api(kind)?.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn color(env: &TestEnv) -> Result<Value> {
    let service = env.namespace.get("Service", "front").await?.context("there is no Service")?;
    Ok(service["spec"]["selector"]["color"].clone())
}

async fn hold(env: &TestEnv, finalizers: Value) -> Result<()> {
    env.namespace.patch("Pod", "backend-2", json!({"metadata": {"finalizers": finalizers}})).await.map(drop)
}

/// The Pods that the host has deleted, in order.
async fn deleted_pods(env: &TestEnv) -> Result<Vec<String>> {
    let writes = env.host_writes().await?;
    let names = writes.iter().filter_map(|write| write.strip_prefix("delete pods/ ")?.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}
