//! Checks what an `AppService` asks for and how it is reported, case by case, without a cluster.

use app_service::api::AppServiceStatus;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{ConditionStatus, Error, Verdict};
use serde_json::json;

const APP: &str = "
apiVersion: apps.example.com/v1
kind: AppService
metadata: {name: web, namespace: shop, generation: 1}
spec: {replicas: 3, image: 'nginx:1.27'}
";

fn case() -> Case {
    Case::yaml(APP)
}

fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(app_service::reconcile_raw)
}

#[test]
fn asks_for_a_deployment_and_a_service() -> Result<(), Error> {
    let answer = run(case())?;
    assert_eq!(answer.verdict(), &Verdict::Done);
    assert_eq!(answer.response.children.as_ref().map(Vec::len), Some(2));

    let deployment = answer.child::<Deployment>()?;
    let spec = deployment.spec.unwrap_or_default();
    let pod = spec.template.spec.unwrap_or_default();
    assert_eq!(deployment.metadata.name.as_deref(), Some("web"));
    assert_eq!(spec.replicas, Some(3));
    assert_eq!(spec.selector.match_labels, spec.template.metadata.unwrap_or_default().labels);
    assert_eq!(pod.containers.len(), 1);
    assert_eq!(pod.containers[0].name, "app");
    assert_eq!(pod.containers[0].image.as_deref(), Some("nginx:1.27"));

    let service = answer.child::<Service>()?.spec.unwrap_or_default();
    assert_eq!(service.selector, spec.selector.match_labels);
    assert_eq!(service.ports.unwrap_or_default()[0].port, 80);
    Ok(())
}

#[test]
fn the_port_reaches_the_container() -> Result<(), Error> {
    for (given, expected) in [("", 8080), (", port: 3000", 3000)] {
        let app = APP.replace("'nginx:1.27'", &format!("'nginx:1.27'{given}"));
        let pod = run(Case::yaml(&app))?.child::<Deployment>()?.spec.unwrap_or_default().template.spec;
        let ports = pod.unwrap_or_default().containers[0].ports.clone().unwrap_or_default();
        assert_eq!(ports[0].container_port, expected, "{given}");
    }
    Ok(())
}

#[test]
fn an_object_that_does_not_fit_is_invalid() -> Result<(), Error> {
    let cases = [
        ("replicas: 3", "replicas: many", "spec.replicas: invalid type: string \"many\", expected i32"),
        ("image: 'nginx:1.27'", "", "spec: missing field `image`"),
    ];
    for (from, to, expected) in cases {
        let answer = run(Case::yaml(&APP.replace(from, to)))?;
        let expected = format!("the object does not fit this plugin: {expected}");
        assert_eq!(answer.verdict(), &Verdict::Invalid(expected));
        assert_eq!(answer.response.children, None, "nothing is deleted");
    }
    Ok(())
}

/// A live Deployment's status, and what `Ready` says of it.
const HEALTH: &[(&str, bool, &str, &str)] = &[
    ("{}", false, "Progressing", "0 of 3 replicas ready"),
    (
        "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 2}",
        false,
        "Progressing",
        "2 of 3 replicas ready",
    ),
    (
        "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}",
        true,
        "Available",
        "3 of 3 replicas ready",
    ),
    (
        "{observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3}",
        false,
        "Progressing",
        "1 of 3 replicas updated",
    ),
    (
        "{observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}",
        false,
        "Progressing",
        "the Deployment's change is not rolled out yet",
    ),
    (
        "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 1, conditions: [
          {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too slow}]}",
        false,
        "ProgressDeadlineExceeded",
        "too slow",
    ),
    (
        "{observedGeneration: 2, conditions: [
          {type: Progressing, status: 'True', reason: NewReplicaSetCreated, message: m},
          {type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]}",
        false,
        "FailedCreate",
        "quota",
    ),
];

#[test]
fn ready_follows_the_deployment() -> Result<(), Error> {
    for (status, ready, reason, message) in HEALTH {
        let deployment = format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, generation: 2}}, status: {status}}}"
        );
        let answer = run(case().child_yaml(&deployment))?;
        let expected = if *ready { ConditionStatus::IsTrue } else { ConditionStatus::IsFalse };
        let found = answer.condition("Ready").map(|c| (c.status, &*c.reason, &*c.message));
        assert_eq!(found, Some((expected, *reason, *message)), "{status}");
        let progressing = answer.condition("Progressing").map(|c| c.status);
        assert_eq!(progressing == Some(ConditionStatus::IsTrue), *reason == "Progressing", "{status}");
        let degraded = answer.condition("Degraded").map(|c| c.status);
        let stuck = !ready && *reason != "Progressing";
        assert_eq!(degraded == Some(ConditionStatus::IsTrue), stuck, "{status}");
    }
    Ok(())
}

#[test]
fn the_status_counts_replicas_and_says_where_the_app_is() -> Result<(), Error> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "status": { "replicas": 3, "readyReplicas": 2 },
    });
    let other = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "other" },
        "status": { "replicas": 9, "readyReplicas": 9 },
    });
    let status = run(case().child(other).child(deployment))?.status::<AppServiceStatus>()?;
    assert_eq!((status.replicas, status.ready_replicas), (3, 2));
    assert_eq!(status.url, "http://web.shop.svc");
    assert_eq!(status.selector, "app.kubernetes.io/component=web,app.kubernetes.io/name=web");
    Ok(())
}

#[test]
fn the_manifest_is_json_with_the_crate_version() -> Result<(), serde_json::Error> {
    let manifest: serde_json::Value = serde_json::from_str(app_service::MANIFEST)?;
    assert_eq!(
        manifest,
        json!({
            "name": "app-service",
            "version": env!("CARGO_PKG_VERSION"),
            "contract": "0.1.0",
            "reconciles": { "apiVersion": "apps.example.com/v1", "kind": "AppService" },
            "children": [
                { "apiVersion": "apps/v1", "kind": "Deployment" },
                { "apiVersion": "v1", "kind": "Service" },
            ],
            "reads": ["/spec"],
            "childReads": [
                { "apiVersion": "apps/v1", "kind": "Deployment", "fields": ["/status"] },
                { "apiVersion": "v1", "kind": "Service", "fields": [] },
            ],
            "lookups": [],
            "measurements": [],
        })
    );
    Ok(())
}
