//! The desired children of a `ModelDeployment`.

use crate::case::{children, parse};
use pilothouse_sdk::Error;
use serde_json::json;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model_deployment/children.yaml");

/// The seed's example, one that uses more fields, and one on several nodes.
const GOLDEN_SPECS: &[&str] = &[
    "replicas: 4, sla: {maxLatency: 100ms}",
    "replicas: 2, tensorParallelSize: 4, gpuType: H100, image: 'vllm/vllm-openai:v0.20.1', \
     sla: {maxLatency: 1.5s, latencyMetric: endToEndLatency, minThroughput: 50, throughputPerReplica: 10}, \
     autoscaling: {maxReplicas: 12, queueLength: 8, scaleUpPods: 1, metricLabels: {deployment: llama}}",
    "replicas: 2, tensorParallelSize: 8, pipelineParallelSize: 2, image: 'vllm/vllm-openai:v0.20.1'",
];

/// A change of the file replaces all Pods of all users when the plugin is upgraded. To write it: `WRITE=1 cargo test`.
#[test]
fn children_are_those_of_the_golden_file() -> Result<(), Error> {
    let mut text = String::new();
    for spec in GOLDEN_SPECS {
        for child in children(spec)?.iter() {
            let child = serde_saphyr::to_string(child).map_err(|error| Error::Test(error.to_string()))?;
            text.push_str(&format!("---\n{child}"));
        }
    }
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(GOLDEN, &text).map_err(|error| Error::Test(error.to_string()))?;
    }
    let golden = std::fs::read_to_string(GOLDEN).map_err(|error| Error::Test(error.to_string()))?;
    assert_eq!(text, golden, "new Pod templates roll all Pods of all users; if that must be, write the file again");
    Ok(())
}

#[test]
fn the_seeds_example_has_all_that_the_seed_draws() -> Result<(), Error> {
    let names = [
        "ConfigMap llama-3-70b-settings",
        "HorizontalPodAutoscaler llama-3-70b",
        "PodDisruptionBudget llama-3-70b",
        "Service llama-3-70b",
        "Service llama-3-70b-headless",
        "StatefulSet llama-3-70b",
    ];
    let children = children("replicas: 4, sla: {maxLatency: 100ms}")?;
    assert_eq!(children.names(), names);
    let stateful_set = &children.only("StatefulSet")?["spec"];
    assert_eq!((&stateful_set["replicas"], &stateful_set["serviceName"]), (&json!(4), &json!("llama-3-70b-headless")));
    assert_eq!(stateful_set["podManagementPolicy"], "Parallel", "a bad revision must not block its successor");
    Ok(())
}

#[test]
fn the_autoscaler_reads_latency_by_value_and_the_queue_by_average() -> Result<(), Error> {
    let children = children("replicas: 4, sla: {maxLatency: 100ms}")?;
    let hpa = &children.only("HorizontalPodAutoscaler")?["spec"];
    assert_eq!((&hpa["minReplicas"], &hpa["maxReplicas"]), (&json!(4), &json!(8)));
    let external = |name: &str, target| {
        let metric = json!({ "name": name, "selector": { "matchLabels": { "service": "llama-3-70b" } } });
        json!({ "type": "External", "external": { "metric": metric, "target": target } })
    };
    let expected = json!([
        external("vllm_time_to_first_token_seconds_p95", json!({ "type": "Value", "value": "100m" })),
        external("vllm_num_requests_waiting", json!({ "type": "AverageValue", "averageValue": "5" })),
    ]);
    assert_eq!(hpa["metrics"], expected);
    let policy = json!({ "type": "Pods", "value": 2, "periodSeconds": 600 });
    assert_eq!(
        hpa["behavior"]["scaleUp"]["policies"],
        json!([policy]),
        "bounded by the time that a Pod takes to start"
    );
    Ok(())
}

#[test]
fn a_change_of_the_sla_changes_no_pod_template() -> Result<(), Error> {
    let template = |spec: &str| -> Result<serde_json::Value, Error> {
        Ok(children(spec)?.only("StatefulSet")?["spec"]["template"].clone())
    };
    let before = template("sla: {maxLatency: 100ms}")?;
    assert_eq!(template("sla: {maxLatency: 2s}, replicas: 7, autoscaling: {maxReplicas: 20}")?, before);
    let settings = children("sla: {maxLatency: 2s}")?.only("ConfigMap")?["data"]["settings.json"].clone();
    let expected = json!({ "model": "llama-3-70b", "port": 8000, "sla": { "maxLatency": "2s" } });
    assert_eq!(parse(settings.as_str().unwrap_or_default())?, expected);
    Ok(())
}
