//! The ScaledObject of KEDA: queries of a Prometheus on the engine's own metrics. KEDA makes a HorizontalPodAutoscaler of it, whose name
//! is given here, so that it can be found.

use crate::api::{Autoscaling, Keda};
use crate::autoscaler::{Bounds, QUEUE_LENGTH, behavior};
use crate::observed_scaled_object::ScaledObject;
use crate::placement::scale_target;
use crate::sla::Targets;
use llm_serving::labels;
use llm_serving::server::Server;
use pilothouse_pods::fields::set_unless_empty;
use pilothouse_sdk::Kind;
use serde_json::{Value, json};

/// The name that KEDA gives the metric of the first trigger.
pub const FIRST_METRIC: &str = "s0-prometheus";

/// The name of the HorizontalPodAutoscaler that KEDA makes. KEDA writes whatever has this name, so it is one that no other object's has:
/// the names of workloads have no dot.
pub fn hpa_name(workload: &str) -> String {
    format!("{workload}.keda")
}

/// The ScaledObject.
pub fn scaled_object(server: &Server<'_>, given: &Autoscaling, bounds: Bounds, targets: &Targets) -> Value {
    let keda = given.keda.clone().unwrap_or_default();
    let hpa = json!({ "name": hpa_name(server.workload()), "behavior": behavior(server, given) });
    let mut spec = json!({
        "scaleTargetRef": scale_target(server),
        "minReplicaCount": bounds.min,
        "maxReplicaCount": bounds.max,
        "advanced": { "horizontalPodAutoscalerConfig": hpa },
        "triggers": triggers(server, given, &keda, targets),
    });
    set_unless_empty(&mut spec, "pollingInterval", json!(keda.polling_interval_seconds));
    set_unless_empty(&mut spec, "cooldownPeriod", json!(keda.cooldown_seconds));
    json!({
        "apiVersion": ScaledObject::API_VERSION,
        "kind": ScaledObject::KIND,
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": spec,
    })
}

/// The latency by its value, the queue by its average, and the user's own.
fn triggers(server: &Server<'_>, given: &Autoscaling, keda: &Keda, targets: &Targets) -> Vec<Value> {
    let metrics = &server.engine.metrics;
    let selector = selector(server, given);
    let trigger = |metric_type: &str, query: String, threshold: String| {
        let metadata = json!({
            "serverAddress": keda.server_address,
            "query": query,
            "threshold": threshold,
            // Otherwise metrics that are gone would count as 0, and Pods would be removed.
            "ignoreNullValues": "false",
        });
        json!({ "type": "prometheus", "metricType": metric_type, "metadata": metadata })
    };
    let latency = targets.metric_of(metrics);
    let mut all = Vec::new();
    if let (Some(max), false) = (targets.max_latency, latency.is_empty()) {
        all.push(trigger("Value", latency_query(latency, &metrics.queue_length, &selector), seconds(max)));
    }
    if !metrics.queue_length.is_empty() {
        let length = given.queue_length.unwrap_or(QUEUE_LENGTH).to_string();
        all.push(trigger("AverageValue", format!("sum({}{{{selector}}})", metrics.queue_length), length));
    }
    all.extend(keda.triggers.iter().cloned());
    all
}

/// The quantile of an idle server is no number, which is no latency at all; metrics that are gone are nothing. The second part tells the
/// two apart.
fn latency_query(latency: &str, gauge: &str, selector: &str) -> String {
    let quantile = format!("histogram_quantile(0.95, sum by (le) (rate({latency}_bucket{{{selector}}}[2m])))");
    if gauge.is_empty() { quantile } else { format!("({quantile} >= 0) or 0 * sum({gauge}{{{selector}}})") }
}

fn selector(server: &Server<'_>, given: &Autoscaling) -> String {
    let mut labels = vec![("namespace".to_owned(), server.spec.identity.namespace.to_owned())];
    match given.metric_labels.is_empty() {
        true => labels.push(("service".to_owned(), server.workload().to_owned())),
        false => labels.extend(given.metric_labels.clone()),
    }
    labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect::<Vec<_>>().join(",")
}

/// Milliseconds as a decimal number of seconds.
fn seconds(milliseconds: u64) -> String {
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn thresholds_are_decimal_seconds() {
        for (milliseconds, expected) in [(100, "0.1"), (1500, "1.5"), (2000, "2"), (1, "0.001")] {
            assert_eq!(seconds(milliseconds), expected);
        }
    }
}
