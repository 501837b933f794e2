//! Whether the SLA is met: by what the autoscaler observed, and unverified where nobody did.

use crate::case::{case, run, with_hpa, with_live};
use llm_serving::testing::{condition, events};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

const ACTIVE: &str = "conditions: [{type: ScalingActive, status: 'True', reason: ValidMetricFound, message: m}]";

/// The status of a HorizontalPodAutoscaler that has read this latency.
fn latency(value: &str) -> String {
    format!(
        "{ACTIVE}, currentMetrics: [{{type: External, external: {{metric: {{name: vllm_time_to_first_token_seconds_p95}}, \
         current: {{value: {value}}}}}}}]"
    )
}

/// The status of the autoscaler, the conditions, and the latency in the status.
fn cases() -> Vec<(String, &'static str, &'static str, Option<&'static str>)> {
    let gone =
        "conditions: [{type: ScalingActive, status: 'False', reason: FailedGetExternalMetric, message: no metrics}]";
    vec![
        // As the guide's rules and KEDA's queries tell an idle server.
        (latency("'0'"), "True WithinSLA", "False Verified", Some("0ms")),
        (latency("'50m'"), "True WithinSLA", "False Verified", Some("50ms")),
        (latency("'100m'"), "True WithinSLA", "False Verified", Some("100ms")),
        (latency("'101m'"), "False LatencyAboveSLA", "False Verified", Some("101ms")),
        (latency("'5'"), "False LatencyAboveSLA", "False Verified", Some("5000ms")),
        (gone.to_owned(), "Unknown FailedGetExternalMetric", "True FailedGetExternalMetric", None),
        // What was read last is no observation any more.
        (
            latency("'50m'").replace(ACTIVE, gone),
            "Unknown FailedGetExternalMetric",
            "True FailedGetExternalMetric",
            None,
        ),
        (ACTIVE.to_owned(), "Unknown NotObservedYet", "True NotObservedYet", None),
        ("currentMetrics: null, conditions: null".to_owned(), "Unknown NotObservedYet", "True NotObservedYet", None),
    ]
}

#[test]
fn the_sla_is_judged_by_what_the_autoscaler_observed() -> Result<(), Error> {
    for (status, met, unverified, observed) in cases() {
        let answer = run(with_hpa(with_live(case("replicas: 2, sla: {maxLatency: 100ms}")?, 2), &status)?)?;
        assert_eq!([condition(&answer, "SLAMet"), condition(&answer, "SLAUnverified")], [met, unverified], "{status}");
        let reported: Value = answer.status()?;
        assert_eq!(reported.get("observedLatency").and_then(Value::as_str), observed, "{status}");
        assert_eq!(condition(&answer, "Ready"), "True Available", "the servers themselves are fine: {status}");
    }
    Ok(())
}

/// What was observed while Pods served says nothing of when none does.
#[test]
fn without_a_ready_pod_nobody_can_tell() -> Result<(), Error> {
    for ready in [0, 1] {
        let status = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready });
        let live = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "llama-3-70b", "uid": "set" },
            "spec": { "replicas": 2 }, "status": status,
        });
        let served = case("replicas: 2, sla: {maxLatency: 100ms}")?.child(live);
        let answer = run(with_hpa(served, &latency("'50m'"))?)?;
        let expected = match ready {
            0 => ["Unknown NoPodsReady", "True NoPodsReady"],
            _ => ["True WithinSLA", "False Verified"],
        };
        assert_eq!([condition(&answer, "SLAMet"), condition(&answer, "SLAUnverified")], expected);
        let observed = answer.status::<Value>()?["observedLatency"].clone();
        assert_eq!(observed.is_null(), ready == 0, "{observed}");
    }
    Ok(())
}

#[test]
fn a_missed_sla_is_told_once() -> Result<(), Error> {
    let run_after = |before: &str| {
        let old = json!({ "conditions": [
            { "type": "Ready", "status": "True", "reason": "Available", "message": "" },
            { "type": "SLAMet", "status": before, "reason": "WithinSLA", "message": "" },
        ] });
        run(with_hpa(with_live(case("replicas: 2, sla: {maxLatency: 100ms}")?, 2), &latency("'101m'"))?.status(old))
    };
    assert_eq!(events(&run_after("True")?), ["Warning SLAMissed"]);
    assert!(events(&run_after("False")?).is_empty());
    Ok(())
}

/// As in the seed's example of another operator: a latency and a throughput. The latency says nothing of the throughput.
#[test]
fn a_throughput_that_nobody_can_judge_is_unverified_beside_a_latency_that_is_met() -> Result<(), Error> {
    let conditions = |sla: &str| -> Result<[String; 2], Error> {
        let case = case(&format!("replicas: 2, sla: {{maxLatency: 100ms, {sla}}}"))?;
        let answer = run(with_hpa(with_live(case, 2), &latency("'50m'"))?)?;
        Ok(["SLAMet", "SLAUnverified"].map(|name| condition(&answer, name)))
    };
    assert_eq!(conditions("minThroughput: 50")?, ["True WithinSLA", "True CapacityUnknown"]);
    assert_eq!(conditions("minThroughput: 50, throughputPerReplica: 25")?, ["True WithinSLA", "False Verified"]);
    Ok(())
}

#[test]
fn what_nobody_measures_is_unverified() -> Result<(), Error> {
    let cases = [
        ("sla: {maxLatency: 1s}, engine: llama-cpp", "True NoLatencyMetric"),
        ("sla: {maxLatency: 1s}, engine: container, image: 'a:1'", "True NoLatencyMetric"),
        ("sla: {maxLatency: 1s}, autoscaling: {autoscaler: external}", "True NotObserved"),
        ("sla: {minThroughput: 50}", "True CapacityUnknown"),
        ("sla: {minThroughput: 50, throughputPerReplica: 5}", ""),
        ("replicas: 1", ""),
    ];
    for (spec, expected) in cases {
        assert_eq!(condition(&run(case(spec)?)?, "SLAUnverified"), expected, "{spec}");
    }
    Ok(())
}
