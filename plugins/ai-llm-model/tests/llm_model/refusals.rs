//! Invalid models: they are refused with a sentence that says what to do, and nothing changes.

use crate::case::{case, run};
use llm_serving::testing::refusal;
use pilothouse_sdk::Error;

/// The rest of the spec, and the sentence.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("replicas: -1", "spec.replicas is -1; give 0 to 10000"),
    ("gpuCount: 65", "spec.gpuCount is 65; give 0 to 64"),
    ("port: 70000", "spec.port is 70000; give 1 to 65535"),
    ("port: 0", "spec.port is 0; give 1 to 65535"),
    ("gpuMemory: much", "spec.gpuMemory 'much' is no quantity such as 80G"),
    ("env: [{name: PORT, value: '1'}]", "spec.env sets PORT, which the server gets from other fields; remove it"),
    ("env: [{name: A}, {name: A}]", "spec.env sets A twice; keep one"),
    ("loraAdapters: [{name: llama, path: /a}]",
        "spec.loraAdapters has the name 'llama' that the model or another adapter has; give it another one"),
    ("loraAdapters: [{name: a, path: /a}, {name: a, path: /b}]",
        "spec.loraAdapters has the name 'a' that the model or another adapter has; give it another one"),
    ("engine: container, image: 'a:1', loraAdapters: [{name: a, path: /a}]",
        "spec.loraAdapters needs an engine that is told of adapters, and 'container' is not; remove them, add arguments to the engine \
         in the plugin's configuration, or give a command of your own"),
    ("gpuCount: 1, resources: {limits: {nvidia.com/gpu: 1}}",
        "spec.resources and spec.gpuCount both give nvidia.com/gpu; keep spec.gpuCount"),
    ("modelPath: /models/../etc", "spec.modelPath '/models/../etc' must be an absolute path without '.' and '..'"),
    ("modelPath: models", "spec.modelPath 'models' must be an absolute path without '.' and '..'"),
    ("modelPath: /dev/shm, modelSource: {uri: 'hf://a/b'}",
        "spec.modelPath is /dev/shm, so spec.modelSource would be mounted at /dev/shm, where the server has another volume; give \
         spec.modelPath another path"),
    ("modelPath: /dev/shm/tiny.gguf, modelSource: {uri: 'hf://a/b'}",
        "spec.modelPath is /dev/shm/tiny.gguf, so spec.modelSource would be mounted at /dev/shm, where the server has another \
         volume; give spec.modelPath another path"),
    ("modelSource: {uri: 'gs://a/b'}",
        "spec.modelSource.uri 'gs://a/b' begins with none of pvc://, hostpath:///, hf://, s3:// and oci://"),
    ("engine: container", "spec.image is missing; the engine 'container' has no image of its own"),
    ("drainSeconds: 60, terminationGracePeriodSeconds: 60",
        "spec.drainSeconds is 60, and spec.terminationGracePeriodSeconds only 60; requests need time after the drain"),
    ("replicas: 4, rollout: {maxSurge: 0, maxUnavailable: 0}",
        "no Pod could be replaced, for the rollout lets none be missing and none be added; set spec.rollout.maxSurge, or let \
         spec.rollout.maxUnavailable and spec.disruptionBudget miss one"),
    ("replicas: 4, rollout: {maxUnavailable: 3}, disruptionBudget: {minAvailable: 2}",
        "spec.rollout.maxUnavailable lets 3 Pods be missing, and spec.disruptionBudget only 2; a rollout must keep to the budget"),
    ("disruptionBudget: {}", "spec.disruptionBudget has one of maxUnavailable and minAvailable"),
    ("gpuCount: -1", "the object does not fit this plugin: spec.gpuCount: invalid value: integer `-1`, expected u32"),
];

#[test]
fn an_invalid_model_is_refused_with_the_mistake_and_changes_nothing() -> Result<(), Error> {
    for (spec, sentence) in REFUSED {
        let answer = run(case(spec)?)?;
        assert_eq!(refusal(&answer), Some(*sentence), "{spec}");
        assert_eq!(answer.response.children, None, "{spec}: the children stay");
    }
    Ok(())
}
