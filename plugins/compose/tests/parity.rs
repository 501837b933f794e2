//! The compositions in `examples/compose` against the plugins that they are of: for the same object, the same children, field by field.

use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Verdict, raw};
use serde_json::{Value, json};

/// The documents of an example.
fn documents(file: &str) -> Result<Vec<Value>, Error> {
    let path = format!("{}/../../examples/compose/{file}", env!("CARGO_MANIFEST_DIR"));
    let wrong = |error: &dyn std::fmt::Display| Error::Test(format!("{path}: {error}"));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    serde_saphyr::from_multiple(&text).map_err(|error| wrong(&error))
}

/// The composition of an example.
fn composition(file: &str) -> Result<Value, Error> {
    let documents = documents(file)?;
    let plugin = documents.iter().find(|document| document["kind"] == "Plugin");
    plugin.map(|plugin| plugin["spec"]["config"].clone()).ok_or_else(|| Error::Test(format!("{file} has no Plugin")))
}

/// The children as JSON, in the order of their kinds and names; none if they stay as they are.
fn children(answer: &Answer) -> Result<Option<Vec<Value>>, Error> {
    let Some(children) = &answer.response.children else { return Ok(None) };
    let read = |child: &raw::Child| {
        assert_eq!((child.handling, child.unmanaged_fields.len()), (raw::Handling::Apply, 0));
        serde_json::from_str::<Value>(&child.object).map_err(|error| Error::Test(error.to_string()))
    };
    let mut children = children.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    children.sort_by_key(|child| format!("{} {}", child["kind"], child["metadata"]["name"]));
    Ok(Some(children))
}

/// The answers of a plugin, and of the composition that is made of it.
fn both(
    case: impl Fn() -> Case,
    plugin: fn(raw::Request) -> raw::Response,
    composition: &Value,
) -> Result<(Answer, Answer), Error> {
    Ok((case().run_raw(plugin)?, case().config(composition).run_raw(compose::reconcile_raw)?))
}

fn app_service(spec: &Value) -> Value {
    json!({
        "apiVersion": "apps.example.com/v1", "kind": "AppService",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1}, "spec": spec,
    })
}

#[test]
fn an_app_service_has_the_same_children_and_status() -> Result<(), Error> {
    let composition = composition("app-service.yaml")?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 2},
        "status": {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "readyReplicas": 4, "availableReplicas": 4},
    });
    for spec in [
        json!({"replicas": 3, "image": "nginx:1.27"}),
        json!({"replicas": 2, "image": "nginx:1.27", "port": 3000}),
        json!({"replicas": 12, "image": "registry.example.com/team/web@sha256:ab", "port": 80}),
    ] {
        for children_there in [vec![], vec![deployment.clone()]] {
            let case = || children_there.iter().fold(Case::of(app_service(&spec)), Case::child);
            let (plugin, composed) = both(case, app_service::reconcile_raw, &composition)?;
            assert_eq!(composed.verdict(), &Verdict::Done, "{spec}");
            assert_eq!(children(&composed)?, children(&plugin)?, "{spec}");
            assert_eq!(composed.status::<Value>()?, plugin.status::<Value>()?, "{spec}");
            for name in ["Ready", "Available"] {
                let status = |answer: &Answer| answer.condition(name).map(|it| (it.status, it.message.clone()));
                assert_eq!(status(&composed), status(&plugin), "{name} {spec}");
            }
        }
    }
    Ok(())
}

#[test]
fn an_app_service_installs_the_same_definition() -> Result<(), Error> {
    let definition = documents("app-service.yaml")?.into_iter().find(|it| it["kind"] == "CustomResourceDefinition");
    assert_eq!(definition, Some(app_service::crd::crd()));
    Ok(())
}

fn llm_deployment(spec: &Value) -> Value {
    json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment",
        "metadata": {"name": "chat-service", "namespace": "ml", "uid": "u", "generation": 1}, "spec": spec,
    })
}

fn model(spec: &Value) -> Value {
    json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMModel",
        "metadata": {"name": "gpt-small", "namespace": "ml", "uid": "model", "generation": 3}, "spec": spec,
    })
}

#[test]
fn an_llm_deployment_has_the_same_children_and_status() -> Result<(), Error> {
    let composition = composition("llm-deployment.yaml")?;
    let models = [
        json!({"modelName": "GPT-Small", "image": "your-registry/gpt-small:v1", "resources": {"cpu": "2", "memory": "4Gi"}}),
        json!({"modelName": "GPT-Small", "image": "your-registry/gpt-small:v1"}),
        json!({"modelName": "a.b_c", "image": "x:1", "resources": {"cpu": 2}, "args": ["--verbose"]}),
        json!({"modelName": "m", "image": "x:1", "resources": {"memory": "4Gi"}, "env": [{"name": "A", "value": "$(B)"}]}),
    ];
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat-service", "namespace": "ml", "uid": "d", "generation": 1},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat-service", "namespace": "ml", "uid": "s"}});
    for of_model in &models {
        for spec in [
            json!({"modelRef": "gpt-small", "replicas": 2, "port": 8080}),
            json!({"modelRef": "gpt-small", "replicas": 2}),
            json!({"modelRef": "gpt-small", "replicas": 1, "port": 9000}),
            json!({"modelRef": "gpt-small", "replicas": 9}),
        ] {
            for there in [vec![], vec![deployment.clone(), service.clone()]] {
                let case = || there.iter().fold(Case::of(llm_deployment(&spec)).found(model(of_model)), Case::child);
                let (plugin, composed) = both(case, llm_deployment::reconcile_raw, &composition)?;
                assert_eq!(composed.verdict(), &Verdict::Done, "{spec} {of_model}");
                assert_eq!(children(&composed)?, children(&plugin)?, "{spec} {of_model}");
                assert_eq!(composed.status::<Value>()?, plugin.status::<Value>()?, "{spec} {of_model}");
                for name in ["ModelResolved", "Available"] {
                    assert_eq!(composed.condition(name), plugin.condition(name), "{name} {spec}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_missing_model_is_waited_for_in_the_same_words_and_changes_no_child() -> Result<(), Error> {
    let composition = composition("llm-deployment.yaml")?;
    let case = || Case::of(llm_deployment(&json!({"modelRef": "gpt-small", "replicas": 2})));
    let (plugin, composed) = both(case, llm_deployment::reconcile_raw, &composition)?;
    assert_eq!(composed.verdict(), plugin.verdict());
    assert_eq!((children(&composed)?, children(&plugin)?), (None, None));
    let said = |answer: &Answer| answer.condition("ModelResolved").map(|it| (it.status, it.reason.clone()));
    assert_eq!(said(&composed), said(&plugin));
    assert_eq!(composed.condition("Ready"), None, "the host says it, for it knows why");
    Ok(())
}

/// The manifest asks for what the composition names, and reads what its expressions read.
#[test]
fn the_manifests_ask_for_no_more_than_the_compositions_name() -> Result<(), Error> {
    let manifest = |file: &str| -> Result<Value, Error> {
        let text = compose::configure(&composition(file)?.to_string()).map_err(|all| Error::Test(all.join("\n")))?;
        serde_json::from_str(&text).map_err(|error| Error::Test(error.to_string()))
    };
    let app_service = manifest("app-service.yaml")?;
    assert_eq!(
        app_service,
        json!({
            "name": "app-service",
            "reconciles": {"apiVersion": "apps.example.com/v1", "kind": "AppService"},
            "children": [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "Service"}],
            "lookups": [],
            "reads": ["/metadata/name", "/metadata/namespace", "/spec/image", "/spec/port", "/spec/replicas"],
            "childReads": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "fields": [
                    "/metadata/generation", "/metadata/uid", "/status/availableReplicas", "/status/observedGeneration",
                    "/status/readyReplicas", "/status/replicas", "/status/updatedReplicas",
                ]},
                {"apiVersion": "v1", "kind": "Service", "fields": ["/metadata/uid"]},
            ],
        })
    );
    let llm_deployment = manifest("llm-deployment.yaml")?;
    assert_eq!(llm_deployment["lookups"], json!([{"apiVersion": "llm.example.com/v1alpha1", "kind": "LLMModel"}]));
    let kinds = llm_deployment["children"].as_array().into_iter().flatten().map(|kind| &kind["kind"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["Deployment", "Service", "PodDisruptionBudget"]);
    Ok(())
}
