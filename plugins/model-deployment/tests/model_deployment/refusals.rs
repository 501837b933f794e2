//! Invalid `ModelDeployment`s: they are refused with a sentence that says what to do, and nothing changes.

use crate::case::{case, run, with_live};
use llm_serving::testing::refusal;
use pilothouse_sdk::Error;
use serde_json::{Value, json};

/// The rest of the spec, and the sentence.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("sla: {maxLatency: soon}", "spec.sla.maxLatency 'soon' is no latency such as 100ms or 1.5s"),
    ("sla: {maxLatency: 0ms}", "spec.sla.maxLatency '0ms' is no latency such as 100ms or 1.5s"),
    ("sla: {maxLatency: 1.5ms}",
        "spec.sla.maxLatency '1.5ms' is finer than a millisecond; give whole milliseconds, such as 2ms or 1.5s"),
    ("replicas: -1", "spec.replicas is -1; give 0 to 10000"),
    ("sla: {minThroughput: 1000000, throughputPerReplica: 1}",
        "spec.sla.minThroughput of 1000000 needs 1000000 replicas, and there are 10000 at most; ask for less, or correct \
         spec.sla.throughputPerReplica"),
    ("replicas: 3, disruptionBudget: {minAvailable: 3}, rollout: {maxSurge: 1, maxUnavailable: 0}",
        "the Pods of a StatefulSet are replaced one after the other, and spec.disruptionBudget lets none be missing; let it miss \
         one"),
    ("replicas: 4, sla: {maxLatency: 1s}, autoscaling: {maxReplicas: 3}",
        "spec.autoscaling.maxReplicas is 3, but at least 4 replicas are needed"),
    ("engine: container, image: 'a:1', autoscaling: {maxReplicas: 3}",
        "spec.autoscaling needs metrics, and none of the engine 'container' are known; add them to engines in the plugin's \
         configuration, or set spec.autoscaling.autoscaler to external or none"),
    ("autoscaling: {minReplicas: 0}",
        "spec.autoscaling.minReplicas is 0, which only KEDA can: set spec.autoscaling.autoscaler to keda, or give 1 or more"),
    ("autoscaling: {autoscaler: keda}",
        "spec.autoscaling.keda.serverAddress is missing; KEDA needs the address of the Prometheus that has the metrics"),
    ("autoscaling: {autoscaler: keda, minReplicas: 0, keda: {serverAddress: 'http://p'}}",
        "spec.autoscaling.minReplicas is 0, and the engine's metrics vanish with its Pods, so nothing would ask for the first one; \
         give a trigger in spec.autoscaling.keda.triggers, such as the requests that a router sees"),
    ("autoscaling: {autoscaler: keda, metricLabels: {app.kubernetes.io/name: chat}, keda: {serverAddress: 'http://p'}}",
        "spec.autoscaling.metricLabels has 'app.kubernetes.io/name', which is no label of a Prometheus; give letters, digits and '_', \
         such as app_kubernetes_io_name"),
    ("tensorParallelSize: 1, resources: {limits: {nvidia.com/gpu: 1}}",
        "spec.resources and spec.tensorParallelSize both give nvidia.com/gpu; keep spec.tensorParallelSize"),
    ("tensorParallelSize: 16, engine: llama-cpp",
        "16 GPUs need 2 nodes of 8, and the engine 'llama-cpp' runs on one; take fewer, say in spec.gpusPerNode that a node has so \
         many, or give a command of your own"),
    ("tensorParallelSize: 2, pipelineParallelSize: 2, engine: llama-cpp",
        "spec.pipelineParallelSize is 2, and the engine 'llama-cpp' has no stages; give 1"),
    ("podTemplate: {metadata: {labels: {app.kubernetes.io/instance: other}}}",
        "spec.podTemplate changes the label app.kubernetes.io/instance, by which the Pods are found; remove it"),
    ("modelPath: /etc/model-deployment, modelSource: {uri: 'hf://a/b'}",
        "spec.modelPath is /etc/model-deployment, so spec.modelSource would be mounted at /etc/model-deployment, where the server \
         has another volume; give spec.modelPath another path"),
    ("podTemplate: {spec: {subdomain: one}}", "spec.podTemplate sets subdomain, which tells Pods apart; remove it"),
];

#[test]
fn an_invalid_model_is_refused_with_the_mistake_and_changes_nothing() -> Result<(), Error> {
    for (spec, sentence) in REFUSED {
        let answer = run(case(spec)?)?;
        assert_eq!((refusal(&answer), answer.response.children.is_none()), (Some(*sentence), true), "{spec}");
    }
    Ok(())
}

/// What kubectl shows is what there is: of whichever workload runs.
#[test]
fn an_invalid_model_goes_on_to_be_counted() -> Result<(), Error> {
    let old =
        json!({ "replicas": 9, "readyReplicas": 9, "neededReplicas": 2, "observedLatency": "5ms", "selector": "a=b" });
    for (live, expected) in [(None, 0), (Some(2), 2)] {
        let case = case("sla: {maxLatency: soon}")?.status(&old);
        let case = match live {
            Some(live) => with_live(case, live),
            None => case,
        };
        let status: Value = run(case)?.status()?;
        let expected = json!({
            "replicas": expected, "readyReplicas": expected, "neededReplicas": 2, "selector": "a=b", "url": "",
        });
        assert_eq!(status, expected);
    }
    Ok(())
}
