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
