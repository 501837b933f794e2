//! Who decides how many Pods there are, and that a change of that never makes the number jump.

use crate::case::{case, children, run, with_live};
use llm_serving::testing::Children;
use pilothouse_sdk::{Error, testing::Answer};
use serde_json::Value;

/// The number of Pods in the answer, and whether it is left to others.
fn replicas(answer: &Answer) -> Result<(i64, bool), Error> {
    let stateful_set = Children::of(answer)?.only("StatefulSet")?["spec"]["replicas"].as_i64().unwrap_or_default();
    let listed = answer.response.children.iter().flatten();
    let is_left = listed.flat_map(|child| &child.unmanaged_fields).any(|field| field == "/spec/replicas");
    Ok((stateful_set, is_left))
}

const SLA: &str = "replicas: 2, sla: {maxLatency: 100ms}";
const NONE: &str = "replicas: 2, sla: {maxLatency: 100ms}, autoscaling: {autoscaler: none}";
const EXTERNAL: &str = "replicas: 2, autoscaling: {autoscaler: external}";

/// The spec; the number of Pods that the StatefulSet is asked for, if it exists; the number in the answer, and whether it is left to
/// others.
#[rustfmt::skip]
const HANDOVERS: &[(&str, Option<i32>, (i64, bool))] = &[
    // A StatefulSet that does not exist would have one Pod if nobody said how many.
    (SLA, None, (2, false)),
    (SLA, Some(2), (2, true)),
    (SLA, Some(5), (5, true)),
    // No autoscaler scales what has no Pod.
    (SLA, Some(0), (2, false)),
    (EXTERNAL, None, (2, false)),
    (EXTERNAL, Some(7), (7, true)),
    (NONE, Some(5), (2, false)),
    ("replicas: 3", Some(5), (3, false)),
    ("replicas: 2, sla: {maxLatency: 100ms}, suspend: true", Some(5), (0, false)),
    ("replicas: 0, sla: {maxLatency: 100ms}", Some(5), (0, false)),
    ("replicas: 2, sla: {minThroughput: 50, throughputPerReplica: 10}", None, (5, false)),
];

#[test]
fn the_number_of_pods_is_handed_over_without_a_jump() -> Result<(), Error> {
    for (spec, live, expected) in HANDOVERS {
        let case = case(spec)?;
        let case = match live {
            Some(live) => with_live(case, *live),
            None => case,
        };
        assert_eq!(replicas(&run(case)?)?, *expected, "{spec}, live {live:?}");
    }
    Ok(())
}

#[test]
fn an_autoscaler_is_there_where_it_decides() -> Result<(), Error> {
    let cases = [
        (SLA, true),
        ("replicas: 2, autoscaling: {maxReplicas: 4}", true),
        (NONE, false),
        (EXTERNAL, false),
        ("replicas: 2", false),
        ("replicas: 2, sla: {maxLatency: 100ms}, suspend: true", false),
        ("replicas: 2, sla: {maxLatency: 100ms}, engine: container, image: 'a:1'", false),
    ];
    for (spec, expected) in cases {
        assert_eq!(children(spec)?.only("HorizontalPodAutoscaler").is_ok(), expected, "{spec}");
    }
    Ok(())
}

#[test]
fn bounds_follow_from_what_is_needed() -> Result<(), Error> {
    let bounds = |spec: &str| -> Result<[Value; 2], Error> {
        let children = children(spec)?;
        let hpa = &children.only("HorizontalPodAutoscaler")?["spec"];
        Ok(["minReplicas", "maxReplicas"].map(|field| hpa[field].clone()))
    };
    assert_eq!(bounds("replicas: 4, sla: {maxLatency: 1s}")?, [4, 8]);
    assert_eq!(bounds("sla: {maxLatency: 1s, minThroughput: 50, throughputPerReplica: 10}")?, [5, 10]);
    assert_eq!(bounds("replicas: 4, sla: {maxLatency: 1s}, autoscaling: {minReplicas: 1, maxReplicas: 3}")?, [1, 3]);
    Ok(())
}

/// llama.cpp measures no latency; the queue is all there is to scale by.
#[test]
fn an_engine_without_latency_is_scaled_by_its_queue() -> Result<(), Error> {
    let children = children("replicas: 2, engine: llama-cpp, sla: {maxLatency: 1s}")?;
    let metrics = children.only("HorizontalPodAutoscaler")?["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = metrics.iter().map(|metric| &metric["external"]["metric"]["name"]).collect();
    assert_eq!(names, ["llamacpp_requests_deferred"]);
    Ok(())
}

const KEDA: &str = "replicas: 2, sla: {maxLatency: 100ms}, autoscaling: {autoscaler: keda, keda: {serverAddress: 'http://prometheus:9090'}}";

/// A child that exists, of which only that matters.
fn existing(kind: &str, api_version: &str) -> Value {
    serde_json::json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": "llama-3-70b", "namespace": "ml", "uid": "u" },
    })
}

#[test]
fn keda_asks_a_prometheus_for_the_engines_own_metrics() -> Result<(), Error> {
    let children = children(KEDA)?;
    let spec = &children.only("ScaledObject")?["spec"];
    let selector = "namespace=\"ml\",service=\"llama-3-70b\"";
    let query = format!(
        "(histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{{{selector}}}[2m]))) >= 0) \
         or 0 * sum(vllm:num_requests_waiting{{{selector}}})"
    );
    let trigger = |metric_type: &str, query: &str, threshold: &str| {
        serde_json::json!({
            "type": "prometheus", "metricType": metric_type,
            "metadata": {
                "serverAddress": "http://prometheus:9090", "query": query, "threshold": threshold, "ignoreNullValues": "false",
            },
        })
    };
    let queue = format!("sum(vllm:num_requests_waiting{{{selector}}})");
    assert_eq!(
        spec["triggers"],
        serde_json::json!([trigger("Value", &query, "0.1"), trigger("AverageValue", &queue, "5")])
    );
    assert_eq!((&spec["minReplicaCount"], &spec["maxReplicaCount"]), (&2.into(), &4.into()));
    assert_eq!(spec["advanced"]["horizontalPodAutoscalerConfig"]["name"], "llama-3-70b-keda");
    assert!(children.only("HorizontalPodAutoscaler").is_err(), "only one is in charge");
    Ok(())
}

#[test]
fn the_old_autoscaler_goes_before_the_new_one_comes() -> Result<(), Error> {
    let kinds = |case: pilothouse_sdk::testing::Case| -> Result<[bool; 2], Error> {
        let children = Children::of(&run(with_live(case, 5))?)?;
        Ok(["HorizontalPodAutoscaler", "ScaledObject"].map(|kind| children.only(kind).is_ok()))
    };
    let hpa = existing("HorizontalPodAutoscaler", "autoscaling/v2");
    let scaled_object = existing("ScaledObject", "keda.sh/v1alpha1");
    let mut of_keda = hpa.clone();
    of_keda["metadata"]["name"] = "llama-3-70b-keda".into();
    assert_eq!(kinds(case(KEDA)?.child(hpa))?, [false, false]);
    assert_eq!(kinds(case(KEDA)?)?, [false, true]);
    assert_eq!(kinds(case(SLA)?.child(scaled_object))?, [false, false]);
    assert_eq!(kinds(case(SLA)?.found(of_keda))?, [false, false], "KEDA's own autoscaler is still there");
    assert_eq!(kinds(case(SLA)?)?, [true, false]);
    Ok(())
}

#[test]
fn keda_scales_to_nothing_and_back_by_a_trigger_that_does_not_vanish() -> Result<(), Error> {
    let spec = "sla: {maxLatency: 1s}, autoscaling: {autoscaler: keda, minReplicas: 0, keda: {serverAddress: 'http://p', \
                triggers: [{type: prometheus, metadata: {query: router}}]}}";
    assert_eq!(replicas(&run(with_live(case(spec)?, 0))?)?, (0, true), "what has no Pod is KEDA's affair");
    let children = children(spec)?;
    let triggers = children.only("ScaledObject")?["spec"]["triggers"].as_array().cloned().unwrap_or_default();
    assert_eq!((triggers.len(), &triggers[2]["metadata"]["query"]), (3, &"router".into()));
    Ok(())
}
