//! Admission that changes what is written, by a MutatingAdmissionPolicy as an administrator writes it: what comes of each write, and to whom
//! the fields belong that admission has set. The simulated server admits as the simulation does.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use http::Request;
use kube::Client;
use pilothouse_simulation::{
    api_server::{Admission, Admitted, ApiServer, Catalog},
    cluster::add_to,
};
use pilothouse_tests::wait::{Look, eventually};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    script::Step,
    side::{Real, Server},
};

/// Where policies and their bindings are.
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1beta1";

/// The namespace that they are about.
const NAMESPACE: &str = "admitted";

/// The annotation that they add.
const ANNOTATION: &str = r#"annotations: {"example.com/admitted": "yes"}"#;

/// Runs all requests.
///
/// # Errors
/// If the servers answer differently.
pub async fn run(client: Client) -> Result<()> {
    let mut real = Real(client.clone());
    for (name, group, expression) in [
        ("configmaps", "", format!("Object{{metadata: Object.metadata{{{ANNOTATION}}}}}")),
        ("deployments", "apps", of_deployment()),
    ] {
        for (path, body) in [
            ("mutatingadmissionpolicies", policy(name, group, &expression)),
            ("mutatingadmissionpolicybindings", binding(name)),
        ] {
            let request = Request::post(format!("{ADMISSION}/{path}")).header("content-type", "application/json");
            let answer = real.send(request.body(body.to_string().into())?).await?;
            ensure!(answer.code == 201, "{}", answer.body);
        }
    }
    let mut server = ApiServer::new(Arc::new(Catalog::new()?));
    server.set_admission(Some(Admission::new(|write: &mut Admitted<'_>| {
        if write.namespace == NAMESPACE && write.verb != "delete" {
            add_to(write);
        }
        Ok(())
    })));
    let mut both = Both::new(client, server);
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    both.ask(&Step::with("POST", "/api/v1/namespaces", namespace), Compared::Outcome).await?;
    for (path, body) in [(configmaps(), configmap("probe", "1")), (deployments(), deployment("probe", 1))] {
        until_active(&mut real, &path, &body).await?;
    }
    for step in steps() {
        both.ask(&step, Compared::Whole).await?;
    }
    Ok(())
}

fn of_deployment() -> String {
    let template = format!("Object.spec.template{{metadata: Object.spec.template.metadata{{{ANNOTATION}}}}}");
    format!(
        "Object{{metadata: Object.metadata{{{ANNOTATION}}}, spec: Object.spec{{revisionHistoryLimit: 3, template: {template}}}}}"
    )
}

fn policy(name: &str, group: &str, expression: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [name],
            }]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        },
    })
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}},
        },
    })
}

/// Waits until the policy changes what is written.
async fn until_active(real: &mut Real, path: &str, body: &Value) -> Result<()> {
    let what = format!("the policy for {path} to be obeyed");
    eventually(Duration::from_secs(60), &what, async || {
        let request = Request::post(format!("{path}?dryRun=All")).header("content-type", "application/json");
        let answer = real.send(request.body(body.to_string().into())?).await?;
        let found = answer.body["metadata"]["annotations"]["example.com/admitted"].clone();
        Ok(Look::of(found == "yes", answer.body))
    })
    .await
}

fn configmaps() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

fn deployments() -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
}

fn configmap(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}})
}

fn deployment(name: &str, replicas: u8) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "example.com/main"}]},
            },
        },
    })
}

fn steps() -> Vec<Step> {
    let (mut steps, annotations) = (Vec::new(), json!({"metadata": {"annotations": {"example.com/admitted": "no"}}}));
    for (all, plural, change) in [
        (configmaps(), "configmaps", json!({"data": {"a": "3"}})),
        (deployments(), "deployments", json!({"spec": {"revisionHistoryLimit": 7}})),
    ] {
        let body = |name: &str, number: u8| match plural {
            "configmaps" => configmap(name, &number.to_string()),
            _ => deployment(name, number),
        };
        let patch = |content_type, uri: String, body| Step { content_type, ..Step::with("PATCH", &uri, body) };
        let merge = |name: &str, body| patch("application/merge-patch+json", format!("{all}/{name}"), body);
        let apply = |name: &str, manager: &str, body| {
            let uri = format!("{all}/{name}?fieldManager={manager}&force=true");
            patch("application/apply-patch+yaml", uri, body)
        };
        let mut annotated = body("b", 2);
        annotated["metadata"]["annotations"] = annotations["metadata"]["annotations"].clone();
        let of = |name: &'static str, step: Step| step.about(plural, name);
        steps.extend([
            of("a", Step::with("POST", &format!("{all}?dryRun=All"), body("a", 1))),
            of("a", Step::with("POST", &all, body("a", 1))),
            of("a", merge("a", change.clone())),
            of("a", merge("a", annotations.clone())),
            of("a", Step::with("PUT", &format!("{all}/a"), body("a", 2))),
            of("b", apply("b", "one", body("b", 1))),
            of("b", apply("b", "one", body("b", 1))),
            of("b", apply("b", "two", annotated)),
            of("b", apply("b", "one", body("b", 3))),
            of("b", merge("b", json!({"metadata": {"annotations": null}}))),
            of("a", Step::with("GET", &all, Value::Null)),
        ]);
    }
    steps
}
