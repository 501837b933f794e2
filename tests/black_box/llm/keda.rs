//! KEDA's own operator and the real controller of HorizontalPodAutoscalers, with a Prometheus and a metrics API that the test serves.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{Awaited, Cluster, condition},
    keda::Keda,
    keda_webhook::KedaWebhook,
    metrics_api::MetricsApi,
    needs,
    prometheus::Prometheus,
    third_party::KEDA_OPERATOR,
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{LATENCY, QUEUE, model_deployment, says},
};
use crate::{
    suite::{Suite, heavy_with},
    test_env::{TestEnv, is_ready},
};

/// What a router tells of the requests that it has, also while no server runs.
const REQUESTS: &str = "router_requests_total";

/// The engine's latency and its queue: a word of KEDA's query, which that about the latency has of both, and the names that KEDA and an
/// autoscaler of ours give the metric.
const ENGINE: [(&str, [&str; 2]); 2] = [
    ("time_to_first_token_seconds_bucket", ["s0-prometheus", LATENCY]),
    ("num_requests_waiting", ["s1-prometheus", QUEUE]),
];

/// The time limit for several rounds of an autoscaler.
const LONG: std::time::Duration = std::time::Duration::from_secs(120);

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        needs::program(&KEDA_OPERATOR, "make keda"),
        keda_removes_the_last_server_and_brings_it_back,
        keda_and_an_autoscaler_of_ours_change_places,
        keda_takes_no_autoscaler_of_another_object,
        keda_that_its_user_pauses_leaves_the_number_to_them,
        what_keda_finds_wrong_is_told_until_it_is_mended,
    );
}

/// What KEDA and its autoscaler read.
struct Metrics {
    prometheus: Prometheus,
    api: MetricsApi,
}

impl Metrics {
    /// A quick engine, and a request each second at the router.
    async fn start(env: &TestEnv) -> Result<Self> {
        let metrics =
            Self { prometheus: Prometheus::start().await?, api: MetricsApi::start(&env.namespace.client()).await? };
        metrics.engine(0.05, 0.0);
        metrics.router(1.0);
        Ok(metrics)
    }

    /// So many seconds of latency and waiting requests.
    fn engine(&self, latency: f64, waiting: f64) {
        for ((word, names), value) in ENGINE.into_iter().zip([latency, waiting]) {
            self.prometheus.set(word, value);
            names.iter().for_each(|name| self.api.set(name, &format!("{}m", value * 1000.0)));
        }
    }

    /// The engine's metrics vanish with its Pods.
    fn no_engine(&self) {
        for (word, names) in ENGINE {
            self.prometheus.remove(word);
            names.iter().for_each(|name| self.api.remove(name));
        }
    }

    /// Requests for each second at the router.
    fn router(&self, requests: f64) {
        self.prometheus.set(REQUESTS, requests);
        self.api.set("s2-prometheus", &format!("{}m", requests * 1000.0));
    }
}

/// Scaled by KEDA, quickly, from so many servers on.
fn scaled(metrics: &Metrics, autoscaler: &str, min: i64) -> Value {
    let address = metrics.prometheus.address();
    let of_router = json!({
        "serverAddress": address, "query": format!("sum(rate({REQUESTS}[1m]))"), "threshold": "10",
    });
    json!({
        "autoscaler": autoscaler, "minReplicas": min, "maxReplicas": 6, "scaleUpPods": 2, "scaleUpPeriodSeconds": 2,
        "scaleDownStabilizationSeconds": 2,
        "keda": {
            "serverAddress": address, "pollingIntervalSeconds": 1, "cooldownSeconds": 3,
            "triggers": [{"type": "prometheus", "metadata": of_router}],
        },
    })
}

/// A cluster of its own with KEDA and what it reads, and a host.
async fn start(env: &mut TestEnv) -> Result<(Metrics, Keda)> {
    env.move_to(Cluster::start().await?).await?;
    let metrics = Metrics::start(env).await?;
    let keda = Keda::start(&env.cluster).await?;
    env.start(&["model-deployment"]).await?;
    Ok((metrics, keda))
}

async fn keda_removes_the_last_server_and_brings_it_back(env: &mut TestEnv) -> Result<()> {
    let (metrics, _keda) = start(env).await?;
    let asked = Seen::asked(env).await?;
    let spec = json!({"replicas": 1, "sla": {"maxLatency": "100ms"}, "autoscaling": scaled(&metrics, "keda", 0)});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    let shows = |object: &Value| is_ready(object) && object["status"]["observedLatency"] == "50ms";
    becomes(env, "to be ready and to show the latency that KEDA's autoscaler reads", shows).await?;
    keda_says(env, "Ready", "True").await?;
    keda_says(env, "Active", "True").await?;

    // The load grows: KEDA's autoscaler makes more servers, two at a time.
    metrics.engine(5.0, 0.0);
    becomes(env, "to have more servers", |object| object["status"]["replicas"] == 6).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("False", "LatencyAboveSLA")).await?;
    ensure!(asked.all() == [1, 3, 5, 6], "not two at a time: {:?}", asked.all());

    // Nobody asks any more: KEDA removes the last server, and it stays away although the spec asks for one.
    metrics.engine(0.0, 0.0);
    metrics.router(0.0);
    has_replicas(env, 0).await?;
    metrics.no_engine();
    keda_says(env, "Active", "False").await?;
    let none = |object: &Value| object["status"]["replicas"] == 0 && is_ready(object);
    becomes(env, "to be ready without a server", none).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("Unknown", "NoPodsReady")).await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", 1).await).await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", 2).await).await?;
    ensure!(asked.all().last() == Some(&0), "the last server was brought back: {:?}", asked.all());

    // The first request that a router sees brings the first server back, although the engine has no metrics.
    asked.forget();
    metrics.router(1.0);
    has_replicas(env, 1).await?;
    metrics.engine(0.05, 0.0);
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    becomes(env, "to be ready again", |object| is_ready(object) && object["status"]["readyReplicas"] == 1).await?;
    ensure!(asked.all() == [0, 1], "it jumps: {:?}", asked.all());
    env.namespace.delete("ModelDeployment", "chat").await?;
    for (kind, name) in [("ScaledObject", "chat"), ("HorizontalPodAutoscaler", OF_KEDA), ("StatefulSet", "chat")] {
        env.namespace.until_gone(kind, name).await?;
    }
    Ok(())
}

/// The name of the autoscaler that KEDA makes for `chat`.
const OF_KEDA: &str = "chat.keda";

async fn keda_and_an_autoscaler_of_ours_change_places(env: &mut TestEnv) -> Result<()> {
    let (metrics, keda) = start(env).await?;
    let _webhook = KedaWebhook::start(&env.namespace.client()).await?;
    metrics.engine(5.0, 0.0);
    let asked = Seen::asked(env).await?;
    let spec = json!({"replicas": 2, "sla": {"maxLatency": "100ms"}, "autoscaling": scaled(&metrics, "hpa", 2)});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    has_replicas(env, 6).await?;
    metrics.engine(0.09, 0.0);
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    asked.forget();
    for (autoscaler, comes, goes) in [("keda", OF_KEDA, "chat"), ("hpa", "chat", OF_KEDA), ("keda", OF_KEDA, "chat")] {
        change_to(env, autoscaler).await?;
        decides(env, comes).await?;
        let left = env.namespace.get("HorizontalPodAutoscaler", goes).await?;
        ensure!(left.is_none(), "two are in charge: {left:?}");
        says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
        let is_there = env.namespace.get("ScaledObject", "chat").await?.is_some();
        ensure!(is_there == (autoscaler == "keda"), "a ScaledObject is there: {is_there}");
    }

    // Without KEDA nobody takes its finalizer away. That is told, and nothing changes until somebody does.
    drop(keda);
    change_to(env, "hpa").await?;
    let object = ("ModelDeployment", "chat");
    let message = says(env, object, "OnlyOneAutoscaler", ("Unknown", "AwaitingRemoval")).await?;
    ensure!(message.contains("ScaledObject") && message.contains("finalizers"), "{message}");
    ensure!(env.namespace.get("HorizontalPodAutoscaler", "chat").await?.is_none(), "two are in charge");
    env.namespace.patch("ScaledObject", "chat", json!({"metadata": {"finalizers": null}})).await?;
    decides(env, "chat").await?;
    becomes(env, "to say nothing of it", |object| condition(object, "OnlyOneAutoscaler").is_null()).await?;
    ensure!(asked.all() == [6], "replicas jump: {:?}", asked.all());
    Ok(())
}

async fn change_to(env: &TestEnv, autoscaler: &str) -> Result<()> {
    let change = json!({"spec": {"autoscaling": {"autoscaler": autoscaler}}});
    env.namespace.patch("ModelDeployment", "chat", change).await?;
    Ok(())
}

/// Waits until the autoscaler of this name decides.
async fn decides(env: &TestEnv, name: &str) -> Result<()> {
    let decides = |hpa: &Value| condition(hpa, "ScalingActive")["status"] == "True";
    let awaited = Awaited { kind: "HorizontalPodAutoscaler", name, what: "to decide" };
    env.namespace.until_within(LONG, &awaited, decides).await?;
    Ok(())
}

/// KEDA writes the autoscaler of a ScaledObject whatever has its name, so its name is one that no object's own autoscaler has.
async fn keda_takes_no_autoscaler_of_another_object(env: &mut TestEnv) -> Result<()> {
    let (metrics, _keda) = start(env).await?;
    let names = ["chat-keda", "keda-hpa-chat"];
    for name in names {
        let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": {"maxReplicas": 9}});
        env.namespace.apply(model_deployment(name, spec)).await?;
        says(env, ("ModelDeployment", name), "SLAMet", ("True", "WithinSLA")).await?;
    }
    let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": scaled(&metrics, "keda", 1)});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    for name in names {
        let hpa = env.namespace.until("HorizontalPodAutoscaler", name, "to be there", |_| true).await?;
        let owner = &hpa["metadata"]["ownerReferences"][0];
        ensure!(owner["kind"] == "ModelDeployment" && owner["name"] == name, "KEDA has taken it: {hpa}");
        ensure!(hpa["spec"]["scaleTargetRef"]["name"] == name && hpa["spec"]["maxReplicas"] == 9, "{hpa}");
        says(env, ("ModelDeployment", name), "Ready", ("True", "Available")).await?;
    }
    Ok(())
}

/// Sets an annotation of the ScaledObject, as users do to pause KEDA, or takes it away.
async fn annotate(env: &TestEnv, name: &str, value: Value) -> Result<()> {
    let annotations = json!({format!("autoscaling.keda.sh/{name}"): value});
    env.namespace.patch("ScaledObject", "chat", json!({"metadata": {"annotations": annotations}})).await?;
    Ok(())
}

async fn keda_that_its_user_pauses_leaves_the_number_to_them(env: &mut TestEnv) -> Result<()> {
    let (metrics, _keda) = start(env).await?;
    let asked = Seen::asked(env).await?;
    let chat = ("ModelDeployment", "chat");
    let spec = json!({"replicas": 2, "sla": {"maxLatency": "100ms"}, "autoscaling": scaled(&metrics, "keda", 2)});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    says(env, chat, "SLAMet", ("True", "WithinSLA")).await?;

    // Without a server, although the spec asks for two, as long as the user likes.
    annotate(env, "paused-replicas", json!("0")).await?;
    has_replicas(env, 0).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", OF_KEDA).await?;
    let message = says(env, chat, "SLAMet", ("Unknown", "AutoscalerPaused")).await?;
    ensure!(message.contains("autoscaling.keda.sh/paused-replicas"), "{message}");
    keda_says(env, "Paused", "True").await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", 1).await).await?;
    let none = |object: &Value| object["status"]["replicas"] == 0 && is_ready(object);
    becomes(env, "to be ready without a server", none).await?;
    ensure!(asked.all() == [2, 0], "the servers were brought back: {:?}", asked.all());

    // KEDA goes on from the bounds.
    annotate(env, "paused-replicas", Value::Null).await?;
    has_replicas(env, 2).await?;
    says(env, chat, "SLAMet", ("True", "WithinSLA")).await?;
    keda_says(env, "Paused", "False").await?;

    // Paused as it is, it is deleted with all that belongs to it.
    annotate(env, "paused", json!("true")).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", OF_KEDA).await?;
    says(env, chat, "SLAMet", ("Unknown", "AutoscalerPaused")).await?;
    metrics.engine(5.0, 50.0);
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", 2).await).await?;
    ensure!(asked.all() == [2, 0, 2], "a paused KEDA scales: {:?}", asked.all());
    env.namespace.delete("ModelDeployment", "chat").await?;
    for (kind, name) in [("ScaledObject", "chat"), ("StatefulSet", "chat"), ("ModelDeployment", "chat")] {
        env.namespace.until_gone(kind, name).await?;
    }
    Ok(())
}

async fn what_keda_finds_wrong_is_told_until_it_is_mended(env: &mut TestEnv) -> Result<()> {
    let (metrics, _keda) = start(env).await?;
    let chat = ("ModelDeployment", "chat");
    let mut autoscaling = scaled(&metrics, "keda", 1);
    let whole = autoscaling["keda"]["triggers"].take();
    autoscaling["keda"]["triggers"] = json!([{"type": "prometheus", "metadata": {"query": REQUESTS}}]);
    let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": autoscaling});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    keda_says(env, "Ready", "False").await?;
    let message = says(env, chat, "SLAUnverified", ("True", "ScaledObjectNotReady")).await?;
    ensure!(message.contains("serverAddress"), "not what KEDA says: {message}");
    ensure!(env.namespace.get("HorizontalPodAutoscaler", OF_KEDA).await?.is_none(), "KEDA has made one");
    says(env, chat, "Available", ("True", "ReplicasAvailable")).await?;

    env.namespace
        .patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"keda": {"triggers": whole}}}}))
        .await?;
    says(env, chat, "SLAMet", ("True", "WithinSLA")).await?;
    keda_says(env, "Ready", "True").await?;
    Ok(())
}

async fn becomes(env: &TestEnv, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    env.namespace.until_within(LONG, &Awaited { kind: "ModelDeployment", name: "chat", what }, holds).await
}

/// Waits until the StatefulSet is asked for so many Pods.
async fn has_replicas(env: &TestEnv, replicas: i64) -> Result<()> {
    let what = format!("to be asked for {replicas} Pods");
    let awaited = Awaited { kind: "StatefulSet", name: "chat", what: &what };
    env.namespace.until_within(LONG, &awaited, |it| it["spec"]["replicas"] == replicas).await?;
    Ok(())
}

/// Waits until KEDA gives a condition of the ScaledObject this status.
async fn keda_says(env: &TestEnv, type_: &str, status: &str) -> Result<Value> {
    let is = |object: &Value| condition(object, type_)["status"] == status;
    let what = format!("to say {type_}={status}");
    let awaited = Awaited { kind: "ScaledObject", name: "chat", what: &what };
    env.namespace.until_within(LONG, &awaited, is).await
}
