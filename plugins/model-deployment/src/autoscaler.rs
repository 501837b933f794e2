//! Who decides how many Pods there are, and what a HorizontalPodAutoscaler looks at. It scales on latency and on the queue, never on
//! processors: a server of a model is busy with one request already.

use crate::api::{Autoscaler, Autoscaling, ModelDeploymentSpec};
use crate::placement::scale_target;
use crate::sla::{Targets, needed_replicas};
use crate::sla_error::SlaError;
use llm_serving::labels;
use llm_serving::server::Server;
use serde_json::{Value, json};

/// How many requests may wait for each Pod, if nobody says.
pub const QUEUE_LENGTH: u32 = 5;

/// How many Pods are added at most in the time that one takes to start, if nobody says.
const SCALE_UP_PODS: i32 = 2;

/// The longest period that Kubernetes takes.
const MAX_PERIOD_SECONDS: u32 = 1800;

/// For how long fewer Pods must do before one is removed, if nobody says.
const STABILIZATION_SECONDS: u32 = 300;

/// The part of a second, in which quantities of latency are written.
const MILLI: &str = "m";

/// Who decides how many Pods there are.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaling {
    /// The spec: so many.
    Fixed(i32),
    /// A HorizontalPodAutoscaler of ours.
    Hpa(Bounds),
    /// A ScaledObject of KEDA.
    Keda(Bounds),
    /// Somebody else.
    External {
        /// Whether that one may remove the last Pod.
        from_zero: bool,
    },
}

impl Scaling {
    /// Who decides, in the word of the spec.
    pub fn autoscaler(&self) -> Autoscaler {
        match self {
            Self::Fixed(_) => Autoscaler::None,
            Self::Hpa(_) => Autoscaler::Hpa,
            Self::Keda(_) => Autoscaler::Keda,
            Self::External { .. } => Autoscaler::External,
        }
    }

    /// The most Pods that an autoscaler may make; as few as there can be if none decides.
    pub fn most(&self) -> i32 {
        match self {
            Self::Fixed(_) => 0,
            Self::Hpa(bounds) | Self::Keda(bounds) => bounds.max,
            Self::External { .. } => i32::MAX,
        }
    }
}

/// How many Pods an autoscaler may make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub min: i32,
    /// At most.
    pub max: i32,
}

/// The names of the metrics that an autoscaler reads. Each is empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricNames {
    /// The latency that 95 of 100 requests stay within, in seconds.
    pub latency: String,
    /// How many requests wait, on all Pods together.
    pub queue: String,
}

impl MetricNames {
    /// The names for a server: those of the engine's metrics, with what a metrics API does not take replaced, and with the quantile.
    pub fn of(server: &Server<'_>, targets: &Targets) -> Self {
        let metrics = &server.engine.metrics;
        let plain = |name: &str| name.replace(':', "_");
        let latency = targets.metric_of(metrics);
        let is_wanted = targets.max_latency.is_some() && !latency.is_empty();
        Self {
            latency: if is_wanted { format!("{}_p95", plain(latency)) } else { String::new() },
            queue: plain(&metrics.queue_length),
        }
    }
}

/// Who decides.
///
/// # Errors
/// The bounds exclude each other, or there is nothing to scale by.
pub fn scaling(spec: &ModelDeploymentSpec, names: &MetricNames, engine: &str) -> Result<Scaling, SlaError> {
    let needed = needed_replicas(spec);
    let is_suspended = spec.serving.suspend.unwrap_or_default() || spec.replicas == 0;
    let has_latency = spec.sla.as_ref().is_some_and(|sla| sla.max_latency.is_some());
    let asked = spec.autoscaling.as_ref().map(|given| given.autoscaler.unwrap_or(Autoscaler::Hpa));
    let has_metrics = !names.latency.is_empty() || !names.queue.is_empty();
    match asked {
        _ if is_suspended => Ok(Scaling::Fixed(0)),
        Some(Autoscaler::None) => Ok(Scaling::Fixed(needed)),
        Some(Autoscaler::External) => {
            let min = spec.autoscaling.as_ref().and_then(|given| given.min_replicas);
            Ok(Scaling::External { from_zero: min == Some(0) })
        }
        Some(Autoscaler::Hpa | Autoscaler::Keda) if !has_metrics => Err(SlaError::NoMetrics(engine.to_owned())),
        Some(Autoscaler::Keda) => keda_bounds(spec, needed).map(Scaling::Keda),
        // Nobody asked for an autoscaler in so many words: the condition about the SLA says what is missing.
        None if !has_latency || !has_metrics => Ok(Scaling::Fixed(needed)),
        Some(Autoscaler::Hpa) | None => match bounds(spec, needed)? {
            Bounds { min: 0, .. } => Err(SlaError::ZeroWithoutKeda),
            bounds => Ok(Scaling::Hpa(bounds)),
        },
    }
}

fn keda_bounds(spec: &ModelDeploymentSpec, needed: i32) -> Result<Bounds, SlaError> {
    let given = spec.autoscaling.as_ref();
    let keda = given.and_then(|given| given.keda.as_ref()).ok_or(SlaError::NoServerAddress)?;
    if let Some(label) = given.and_then(|given| given.metric_labels.keys().find(|label| !is_prometheus_label(label))) {
        return Err(SlaError::InvalidMetricLabel(label.clone()));
    }
    let bounds = bounds(spec, needed)?;
    if bounds.min == 0 && keda.triggers.is_empty() { Err(SlaError::NothingAsksForTheFirst) } else { Ok(bounds) }
}

/// Whether a query of a Prometheus can have this label.
fn is_prometheus_label(label: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    label.starts_with(is_letter) && label.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

fn bounds(spec: &ModelDeploymentSpec, needed: i32) -> Result<Bounds, SlaError> {
    let given = spec.autoscaling.clone().unwrap_or_default();
    let min = given.min_replicas.unwrap_or(needed);
    let max = given.max_replicas.unwrap_or(min.max(needed).saturating_mul(2));
    if max < min { Err(SlaError::InvalidBounds { max, min }) } else { Ok(Bounds { min, max }) }
}

/// The HorizontalPodAutoscaler.
pub fn hpa(server: &Server<'_>, given: Option<&Autoscaling>, bounds: Bounds, metrics: Vec<Value>) -> Value {
    let none = Autoscaling::default();
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "scaleTargetRef": scale_target(server),
            "minReplicas": bounds.min,
            "maxReplicas": bounds.max,
            "metrics": metrics,
            "behavior": behavior(server, given.unwrap_or(&none)),
        },
    })
}

/// What the HorizontalPodAutoscaler reads. The latency by its value: its average over Pods would fall with every Pod, whether requests
/// become faster or not. A ratio of latencies says nothing of the load, so the queue is read as well.
pub fn metrics(server: &Server<'_>, names: &MetricNames, targets: &Targets, given: Option<&Autoscaling>) -> Vec<Value> {
    let service = json!({ "service": server.workload() });
    let labels = given.map(|given| &given.metric_labels).filter(|labels| !labels.is_empty());
    let labels = labels.map_or(service, |labels| json!(labels));
    let external = |name: &str, target: Value| {
        json!({
            "type": "External",
            "external": { "metric": { "name": name, "selector": { "matchLabels": labels } }, "target": target },
        })
    };
    let mut all = Vec::new();
    if let (Some(max), false) = (targets.max_latency, names.latency.is_empty()) {
        all.push(external(&names.latency, json!({ "type": "Value", "value": seconds(max) })));
    }
    if !names.queue.is_empty() {
        let length = given.and_then(|given| given.queue_length).unwrap_or(QUEUE_LENGTH).to_string();
        all.push(external(&names.queue, json!({ "type": "AverageValue", "averageValue": length })));
    }
    all
}

/// Milliseconds as a quantity of seconds, in the form in which the API server stores it.
fn seconds(milliseconds: u64) -> String {
    match milliseconds % 1000 {
        0 => (milliseconds / 1000).to_string(),
        _ => format!("{milliseconds}{MILLI}"),
    }
}

/// How fast the number of Pods changes. A Pod that starts does not help yet, so only so many are added in the time that one takes.
pub fn behavior(server: &Server<'_>, given: &Autoscaling) -> Value {
    let pods = given.scale_up_pods.unwrap_or(SCALE_UP_PODS);
    let period = given.scale_up_period_seconds.unwrap_or_else(|| server.startup_seconds().min(MAX_PERIOD_SECONDS));
    let stabilization = given.scale_down_stabilization_seconds.unwrap_or(STABILIZATION_SECONDS);
    json!({
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [{ "type": "Pods", "value": pods, "periodSeconds": period }],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": stabilization,
            "selectPolicy": "Max",
            "policies": [{ "type": "Pods", "value": 1, "periodSeconds": stabilization.clamp(1, 60) }],
        },
    })
}
