//! A request as the host makes it for a running AppService: the object with its status, a Deployment and a Service as an
//! API server serves them, managed fields left out.

use pilothouse_engine::contract::{LiveChild, Readiness, Request};
use serde_json::{Value, json};

/// An AppService with its two live children.
pub fn request() -> Request {
    Request {
        object: object().to_string(),
        children: [deployment(), service()].map(live).to_vec(),
        refused: Vec::new(),
        config: "null".to_owned(),
    }
}

fn live(object: Value) -> LiveChild {
    LiveChild { object: object.to_string(), readiness: Readiness::current() }
}

fn metadata(version: &str, generation: u32, owned: bool) -> Value {
    let mut metadata = json!({
        "name": "shop", "namespace": "default", "uid": "3f0c6c52-5a7e-4c7e-9d5f-0a4a5a1f6c01",
        "resourceVersion": version, "generation": generation, "creationTimestamp": "2026-11-21T10:00:00Z",
        "labels": {
            "app.kubernetes.io/component": "web", "app.kubernetes.io/managed-by": "pilothouse",
            "app.kubernetes.io/name": "shop", "pilothouse.dev/plugin": "app-service",
            "pilothouse.dev/owner-uid": "1a4f2a16-8a52-44f0-9b55-1f6a0e7c2d11",
        },
        "annotations": {"pilothouse.dev/applied": "0123456789abcdef", "deployment.kubernetes.io/revision": "3"},
    });
    if owned {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "apps.example.com/v1", "kind": "AppService", "name": "shop", "controller": true,
            "blockOwnerDeletion": true, "uid": "1a4f2a16-8a52-44f0-9b55-1f6a0e7c2d11",
        }]);
    }
    metadata
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Reconciled", "message": "3 of 3 replicas ready",
        "observedGeneration": 4, "lastTransitionTime": "2026-11-21T10:00:05Z",
    })
}

fn object() -> Value {
    let kinds = ["Ready", "Available", "Progressing", "Degraded"];
    json!({
        "apiVersion": "apps.example.com/v1", "kind": "AppService",
        "metadata": metadata("4711", 4, false),
        "spec": {"replicas": 3, "image": "registry.example.com/shop/web:1.27.3", "port": 8080},
        "status": {
            "conditions": kinds.map(|kind| condition(kind, "True")), "observedGeneration": 4, "readyReplicas": 3,
            "replicas": 3, "selector": "app.kubernetes.io/name=shop", "url": "http://shop.default.svc",
        },
    })
}

fn deployment() -> Value {
    let labels = json!({"app.kubernetes.io/component": "web", "app.kubernetes.io/name": "shop"});
    let progress = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "NewReplicaSetAvailable",
            "message": "ReplicaSet \"shop-7c5ddbdf54\" has successfully progressed.",
            "lastTransitionTime": "2026-11-21T10:00:05Z", "lastUpdateTime": "2026-11-21T10:00:05Z",
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata("4710", 4, true),
        "spec": {
            "replicas": 3, "selector": {"matchLabels": labels}, "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"creationTimestamp": null, "labels": labels},
                "spec": {
                    "containers": [{
                        "name": "app", "image": "registry.example.com/shop/web:1.27.3", "imagePullPolicy": "IfNotPresent",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}], "resources": {},
                        "readinessProbe": {
                            "tcpSocket": {"port": "http"}, "timeoutSeconds": 1, "periodSeconds": 10,
                            "successThreshold": 1, "failureThreshold": 3,
                        },
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    }],
                    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
                    "securityContext": {}, "schedulerName": "default-scheduler",
                },
            },
        },
        "status": {
            "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [progress("Available"), progress("Progressing")],
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata("4709", 1, true),
        "spec": {
            "clusterIP": "10.0.0.42", "clusterIPs": ["10.0.0.42"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
            "selector": {"app.kubernetes.io/component": "web", "app.kubernetes.io/name": "shop"},
        },
        "status": {"loadBalancer": {}},
    })
}
