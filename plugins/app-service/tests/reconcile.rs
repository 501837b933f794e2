//! Checks the children and the status of an `AppService`, case by case, without a cluster.

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
    for (port_in_spec, expected) in [("", 8080), (", port: 3000", 3000)] {
        let app = APP.replace("'nginx:1.27'", &format!("'nginx:1.27'{port_in_spec}"));
        let pod = run(Case::yaml(&app))?.child::<Deployment>()?.spec.unwrap_or_default().template.spec;
        let ports = pod.unwrap_or_default().containers[0].ports.clone().unwrap_or_default();
        assert_eq!(ports[0].container_port, expected, "{port_in_spec}");
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

/// The status of an observed Deployment, and the condition `Ready` that follows from it.
struct Health {
    deployment_status: &'static str,
    is_ready: bool,
    reason: &'static str,
    message: &'static str,
}

const HEALTH: &[Health] = &[
    Health { deployment_status: "{}", is_ready: false, reason: "Progressing", message: "0 of 3 replicas ready" },
    Health {
        deployment_status: "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 2}",
        is_ready: false,
        reason: "Progressing",
        message: "2 of 3 replicas ready",
    },
    Health {
        deployment_status: "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 3}",
        is_ready: true,
        reason: "Available",
        message: "3 of 3 replicas ready",
    },
    Health {
        deployment_status: "{observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 3}",
        is_ready: false,
        reason: "Progressing",
        message: "1 of 3 replicas updated",
    },
    Health {
        deployment_status: "{observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 3}",
        is_ready: false,
        reason: "Progressing",
        message: "1 old replicas still run",
    },
    Health {
        deployment_status: "{observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3}",
        is_ready: false,
        reason: "Progressing",
        message: "the change is not rolled out yet",
    },
    Health {
        deployment_status: "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 1, conditions: [
          {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too slow}]}",
        is_ready: false,
        reason: "ProgressDeadlineExceeded",
        message: "too slow",
    },
    Health {
        deployment_status: "{observedGeneration: 2, conditions: [
          {type: Progressing, status: 'True', reason: NewReplicaSetCreated, message: m},
          {type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]}",
        is_ready: false,
        reason: "FailedCreate",
        message: "quota",
    },
];

/// Reconciles an `AppService` of three replicas whose Deployment has this status.
fn run_with_deployment(status: &str) -> Result<Answer, Error> {
    let deployment =
        format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, generation: 2}}, status: {status}}}");
    run(case().child_yaml(&deployment))
}

#[test]
fn ready_follows_the_deployment() -> Result<(), Error> {
    for Health { deployment_status, is_ready, reason, message } in HEALTH {
        let answer = run_with_deployment(deployment_status)?;
        let expected = if *is_ready { ConditionStatus::IsTrue } else { ConditionStatus::IsFalse };
        let ready = answer.condition("Ready").map(|ready| (ready.status, &*ready.reason, &*ready.message));
        assert_eq!(ready, Some((expected, *reason, *message)), "{deployment_status}");
        let is_true = |name| answer.condition(name).map(|found| found.status) == Some(ConditionStatus::IsTrue);
        assert_eq!(is_true("Progressing"), *reason == "Progressing", "{deployment_status}");
        let is_stuck = !is_ready && *reason != "Progressing";
        assert_eq!(is_true("Degraded"), is_stuck, "{deployment_status}");
    }
    Ok(())
}

/// Deployments of which more Pods are ready than desired: one with a surge Pod of the old revision at the end of a
/// rollout, and one that has just been scaled down.
const MORE_READY_THAN_DESIRED: &[&str] = &[
    "{observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4}",
    "{observedGeneration: 2, replicas: 4, updatedReplicas: 4, readyReplicas: 4, availableReplicas: 4}",
];

#[test]
fn no_more_replicas_are_ready_than_desired() -> Result<(), Error> {
    for deployment_status in MORE_READY_THAN_DESIRED {
        let answer = run_with_deployment(deployment_status)?;
        for condition in ["Ready", "Progressing", "Degraded"] {
            let message = answer.condition(condition).map(|found| found.message.as_str());
            assert_eq!(message, Some("3 of 3 replicas ready"), "{condition}: {deployment_status}");
        }
        let status = answer.status::<AppServiceStatus>()?;
        assert_eq!((status.replicas, status.ready_replicas), (4, 4), "the status counts what the Deployment counts");
    }
    Ok(())
}

#[test]
fn the_status_has_the_replica_counts_and_the_url() -> Result<(), Error> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "status": { "replicas": 3, "readyReplicas": 2 },
    });
    let unrelated = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "other" },
        "status": { "replicas": 9, "readyReplicas": 9 },
    });
    let status = run(case().child(unrelated).child(deployment))?.status::<AppServiceStatus>()?;
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
            "contract": "0.2.0",
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
