//! Admission by a ValidatingAdmissionPolicy, as an administrator writes it: what is refused, and in which form.

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;
use pilothouse_simulation::api_server::{Admission, Admitted, ApiServer, Catalog, Denial};
use pilothouse_tests::wait::{Look, eventually};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    script::Step,
    side::{Real, Server},
};

/// Where policies are.
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// Where it is said what they are about.
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Runs all requests with one form of denial.
///
/// # Errors
/// If the servers answer differently.
pub async fn run(client: Client, denial: Denial) -> Result<()> {
    let name = format!("policy-{denial:?}").to_lowercase();
    let mut real = Real(client.clone());
    for (path, body) in [(POLICIES, policy(&name, denial)), (BINDINGS, binding(&name))] {
        let answer = real
            .send(http::Request::post(path).header("content-type", "application/json").body(body.to_string().into())?);
        let answer = answer.await?;
        anyhow::ensure!(answer.code == 201, "{}", answer.body);
    }
    let mut server = ApiServer::new(Arc::new(Catalog::new()?));
    let policy = name.clone();
    server.set_admission(Some(Admission::new(move |write: &mut Admitted<'_>| {
        let denies = write.kind.names.plural.as_ref() == "configmaps" && write.namespace == policy && is_denied(write);
        if denies { Err(denial.of(write, &policy)) } else { Ok(()) }
    })));
    let mut both = Both::new(client, server);
    both.ask(&Step::with("POST", "/api/v1/namespaces", json!({"metadata": {"name": name}})), Compared::Outcome).await?;
    until_active(&mut real, &name).await?;
    for step in steps(&name) {
        both.ask(&step, Compared::Whole).await.with_context(|| format!("{denial:?}"))?;
    }
    Ok(())
}

/// What the policy denies: to write objects with a label, and to delete them.
fn is_denied(write: &Admitted<'_>) -> bool {
    write.object["metadata"]["labels"]["denied"] == "yes"
}

fn policy(name: &str, denial: Denial) -> Value {
    let has_label = |object: &str| {
        format!(
            "has({object}.metadata.labels) && 'denied' in {object}.metadata.labels && {object}.metadata.labels.denied == 'yes'"
        )
    };
    let expression =
        format!("request.operation == 'DELETE' ? !({}) : !({})", has_label("oldObject"), has_label("object"));
    let mut validation = json!({"expression": expression, "message": "it is denied"});
    if let Some(reason) = denial.reason() {
        validation["reason"] = reason.into();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail", "validations": [validation],
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
            }]},
        },
    })
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
        },
    })
}

/// Waits until the policy is obeyed.
async fn until_active(real: &mut Real, namespace: &str) -> Result<()> {
    let uri = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let body = json!({"metadata": {"name": "probe", "labels": {"denied": "yes"}}}).to_string();
    eventually(std::time::Duration::from_secs(30), "the policy to be obeyed", async || {
        let request = http::Request::post(&uri).header("content-type", "application/json").body(body.clone().into())?;
        let answer = real.send(request).await?;
        Ok(Look::of(answer.code >= 400, answer.code))
    })
    .await
}

fn steps(namespace: &str) -> Vec<Step> {
    let all = format!("/api/v1/namespaces/{namespace}/configmaps");
    let one = format!("{all}/a");
    let whole = |labels: Value, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}, "data": {"a": value}});
    let (denied, allowed) = (json!({"denied": "yes"}), json!({"denied": "no"}));
    let apply = |body: Value| {
        let mut step = Step::with("PATCH", &format!("{one}?fieldManager=one&force=true"), body);
        step.content_type = "application/apply-patch+yaml";
        step
    };
    let merge = |body: Value| {
        let mut step = Step::with("PATCH", &one, body);
        step.content_type = "application/merge-patch+json";
        step
    };
    let options = |policy: &str| json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
    let steps = vec![
        Step::with("POST", &all, whole(denied.clone(), "1")),
        apply(whole(denied.clone(), "1")),
        Step::with("POST", &format!("{all}?dryRun=All"), whole(denied.clone(), "1")),
        apply(whole(allowed.clone(), "1")),
        apply(whole(denied.clone(), "2")),
        merge(json!({"metadata": {"labels": denied}})),
        merge(json!({"metadata": {"labels": denied, "resourceVersion": "1"}})),
        Step::with("PUT", &one, whole(denied, "3")),
        merge(json!({"data": {"a": "4"}})),
        Step::with("DELETE", &one, options("Background")),
        Step::with("DELETE", &one, options("Background")),
    ];
    steps.into_iter().map(|step| step.about("configmaps", "a")).collect()
}
