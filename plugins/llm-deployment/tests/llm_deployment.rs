//! Checks the plugin without a cluster: what an `LLMDeployment` makes of its model, and what happens while there is none.

use llm_serving::testing::{Children, condition, events, refusal, settled, waits_for};
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::{Answer, Case};
use serde_json::{Value, json};

/// The seed's example.
const DEPLOYMENT: &str = "{modelRef: gpt-small, replicas: 2, port: 8080}";

/// The seed's example of a model.
const MODEL: &str = "{modelName: GPT-Small, image: 'your-registry/gpt-small:v1', resources: {cpu: '2', memory: 4Gi}}";

/// The Service as the cluster has it.
const SERVICE: &str = "{apiVersion: v1, kind: Service, metadata: {name: chat-service, uid: service}}";

fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}

/// An `LLMDeployment` `chat-service` in namespace `ml`.
fn case(spec: &str) -> Result<Case, Error> {
    Ok(Case::of(json!({
        "apiVersion": "llm.example.com/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": { "name": "chat-service", "namespace": "ml", "uid": "deployment", "generation": 1 },
        "spec": parse(spec)?,
    })))
}

/// The model `gpt-small`.
fn model(spec: &str) -> Result<Value, Error> {
    Ok(json!({
        "apiVersion": "llm.example.com/v1alpha1",
        "kind": "LLMModel",
        "metadata": { "name": "gpt-small", "namespace": "ml", "uid": "model", "generation": 3 },
        "spec": parse(spec)?,
    }))
}

fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(llm_deployment::reconcile_raw)
}

/// The children of an `LLMDeployment` of a model.
fn children(deployment: &str, of_model: &str) -> Result<Children, Error> {
    Children::of(&settled(|| Ok(case(deployment)?.found(model(of_model)?)), llm_deployment::reconcile_raw)?)
}

/// The server's container.
fn container(deployment: &str, of_model: &str) -> Result<Value, Error> {
    Ok(children(deployment, of_model)?.only("Deployment")?["spec"]["template"]["spec"]["containers"][0].clone())
}

#[test]
fn the_seeds_example_is_a_deployment_and_a_service() -> Result<(), Error> {
    let children = children(DEPLOYMENT, MODEL)?;
    let names = ["Deployment chat-service", "PodDisruptionBudget chat-service", "Service chat-service"];
    assert_eq!(children.names(), names);
    let container = container(DEPLOYMENT, MODEL)?;
    assert_eq!(container["image"], "your-registry/gpt-small:v1");
    assert_eq!(container.get("args"), None, "nobody knows what this image takes");
    let env = json!([{ "name": "MODEL_NAME", "value": "GPT-Small" }, { "name": "PORT", "value": "8080" }]);
    assert_eq!(container["env"], env);
    let resources = json!({ "requests": { "cpu": "2", "memory": "4Gi" }, "limits": { "memory": "4Gi" } });
    assert_eq!(container["resources"], resources);
    let port = &children.only("Service")?["spec"]["ports"][0];
    assert_eq!((&port["port"], &port["targetPort"]), (&json!(8080), &json!("http")));
    Ok(())
}

#[test]
fn the_port_is_8080_unless_it_is_given() -> Result<(), Error> {
    let port =
        |spec: &str| -> Result<Value, Error> { Ok(container(spec, MODEL)?["ports"][0]["containerPort"].clone()) };
    assert_eq!(port("{modelRef: gpt-small, replicas: 1}")?, 8080);
    assert_eq!(port("{modelRef: gpt-small, replicas: 1, port: 9000}")?, 9000);
    Ok(())
}

#[test]
fn an_engine_is_known_by_its_image() -> Result<(), Error> {
    let vllm = container(DEPLOYMENT, "{modelName: llama, image: 'mirror/vllm-openai:v0.11.0', gpuCount: 4}")?;
    assert_eq!(vllm["args"], json!(["--model", "llama", "--tensor-parallel-size", "4", "--port", "8080"]));
    let named = container(DEPLOYMENT, "{modelName: llama, image: 'mirror/my-build:1', engine: vllm}")?;
    assert_eq!(named["args"], json!(["--model", "llama", "--port", "8080"]));
    Ok(())
}

/// A Service `vllm` would set `VLLM_PORT` in each Pod of the namespace that takes such variables, and vLLM ends on it.
#[test]
fn a_server_named_as_its_engine_gets_no_variables_of_services() -> Result<(), Error> {
    let named = || -> Result<Case, Error> {
        let object = json!({
            "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment",
            "metadata": { "name": "vllm", "namespace": "ml", "uid": "deployment", "generation": 1 },
            "spec": parse(DEPLOYMENT)?,
        });
        Ok(Case::of(object).found(model("{modelName: llama, image: 'mirror/vllm-openai:v0.11.0'}")?))
    };
    let children = Children::of(&settled(named, llm_deployment::reconcile_raw)?)?;
    assert_eq!(children.only("Service")?["metadata"]["name"], "vllm");
    assert_eq!(children.only("Deployment")?["spec"]["template"]["spec"]["enableServiceLinks"], false);
    Ok(())
}

#[test]
fn the_status_says_which_model_it_is_about() -> Result<(), Error> {
    let answer = run(case(DEPLOYMENT)?.found(model(MODEL)?).child_yaml(SERVICE))?;
    let status: Value = answer.status()?;
    assert_eq!(status["observedModel"], json!({ "name": "gpt-small", "uid": "model", "generation": 3 }));
    assert_eq!(status["url"], "http://chat-service.ml.svc:8080");
    assert_eq!(condition(&answer, "ModelResolved"), "True ModelFound");
    Ok(())
}

#[test]
fn a_missing_model_is_waited_for_and_changes_no_child() -> Result<(), Error> {
    let answer = run(case(DEPLOYMENT)?)?;
    assert_eq!((waits_for(&answer), answer.response.children.is_none()), (Some("ModelNotFound"), true));
    assert_eq!(condition(&answer, "ModelResolved"), "False ModelNotFound");
    let message = answer.condition("ModelResolved").map(|condition| condition.message.as_str());
    let expected = "spec.modelRef names the LLMModel 'gpt-small' of llm.example.com, which namespace 'ml' does not have; create it. Until then \
                    everything stays as it is";
    assert_eq!(message, Some(expected));
    assert_eq!(events(&answer), ["Warning ModelNotFound"]);
    Ok(())
}

#[test]
fn a_server_whose_model_is_gone_is_counted_on() -> Result<(), Error> {
    let old = json!({
        "replicas": 1, "readyReplicas": 1, "selector": "a=b", "url": "http://x",
        "observedModel": { "name": "gpt-small", "uid": "model", "generation": 3 },
        "conditions": [{ "type": "ModelResolved", "status": "True", "reason": "ModelFound", "message": "" }],
    });
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: chat-service, generation: 1}, status: \
                      {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}";
    let answer = run(case(DEPLOYMENT)?.status(old).child_yaml(deployment).child_yaml(SERVICE))?;
    let status: Value = answer.status()?;
    assert_eq!((&status["readyReplicas"], &status["url"]), (&json!(2), &json!("http://x")));
    assert_eq!(status["observedModel"]["generation"], 3, "the server is still made of it");
    assert_eq!(condition(&answer, "Available"), "True ReplicasAvailable");
    assert_eq!(events(&answer), ["Warning ModelNotFound"]);
    Ok(())
}

/// The `LLMDeployment`, its model, and the sentence of the refusal.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str)] = &[
    ("{modelRef: other/model, replicas: 1}", MODEL,
        "spec.modelRef 'other/model' is not the name of an object; name an LLMModel"),
    ("{modelRef: '', replicas: 1}", MODEL, "spec.modelRef '' is not the name of an object; name an LLMModel"),
    ("{modelRef: gpt-small, replicas: -1}", MODEL, "spec.replicas is -1; give 0 to 10000"),
    (DEPLOYMENT, "{modelName: llama, image: 'a:1', engine: teapot}",
        "spec.engine 'teapot' is not known; give one of container, llama-cpp, sglang, vllm, or add it to the plugin's \
         configuration"),
];

#[test]
fn an_invalid_pair_is_refused_and_changes_nothing() -> Result<(), Error> {
    for (deployment, of_model, sentence) in REFUSED {
        let old = json!({ "replicas": 2, "readyReplicas": 2, "url": "http://x" });
        let answer = run(case(deployment)?.found(model(of_model)?).status(old))?;
        let status: Value = answer.status()?;
        let counts = (&status["replicas"], &status["readyReplicas"], &status["url"]);
        assert_eq!(counts, (&json!(0), &json!(0), &json!("")), "the Pods and the Service are gone: {deployment}");
        assert_eq!((refusal(&answer), answer.response.children.is_none()), (Some(*sentence), true), "{deployment}");
    }
    Ok(())
}
