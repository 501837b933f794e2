//! What is written: objects as the host writes them for an AppService, and their changes. Sends nothing.

use serde_json::{Value, json};

use crate::way::Way;

/// What is written.
pub struct Subject {
    /// What it is called in the table.
    pub title: &'static str,
    /// Its group and version in a path, such as `apis/apps/v1`.
    pub path: &'static str,
    /// Its resource.
    pub resource: &'static str,
    /// Whether the status is written.
    pub is_status: bool,
    /// Whether the API server takes it in protobuf.
    pub has_protobuf: bool,
    /// The fields of its spec in protobuf that the API server chooses for each object.
    pub allocated: &'static [u64],
    /// The object with this name, before it is changed.
    pub object: fn(name: &str) -> Value,
    /// What a change makes of it, as a merge patch.
    pub change: fn(name: &str, number: usize) -> Value,
    /// The texts that a change writes, of the same lengths for each number; none if it writes more than texts.
    pub texts: fn(number: usize) -> Vec<String>,
}

/// Everything that is measured.
pub const SUBJECTS: [Subject; 4] = [
    Subject {
        title: "a Deployment",
        path: "apis/apps/v1",
        resource: "deployments",
        is_status: false,
        has_protobuf: true,
        allocated: &[],
        object: deployment,
        change: |_, number| {
            let container = container(number);
            json!({"metadata": {"annotations": applied(number)}, "spec": {"template": {"spec": {"containers": [container]}}}})
        },
        texts: |number| vec![image(number), fingerprint(number)],
    },
    Subject {
        title: "a Service",
        path: "api/v1",
        resource: "services",
        is_status: false,
        has_protobuf: true,
        // `clusterIP` and `clusterIPs`.
        allocated: &[3, 18],
        object: service,
        change: |_, number| json!({"metadata": {"annotations": applied(number)}, "spec": {"ports": [port(number)]}}),
        texts: |number| vec![target_port(number), fingerprint(number)],
    },
    Subject {
        title: "an AppService",
        path: "apis/apps.example.com/v1",
        resource: "appservices",
        is_status: false,
        has_protobuf: false,
        allocated: &[],
        object: app_service,
        change: |_, number| json!({"metadata": {"annotations": applied(number)}, "spec": {"image": image(number)}}),
        texts: |_| Vec::new(),
    },
    Subject {
        title: "the status of an AppService",
        path: "apis/apps.example.com/v1",
        resource: "appservices",
        is_status: true,
        has_protobuf: false,
        allocated: &[],
        object: app_service,
        change: |name, number| json!({"status": status(name, number)}),
        texts: |_| Vec::new(),
    },
];

impl Subject {
    /// A namespace for one way.
    pub fn namespace(&self, work: &str, way: Way) -> String {
        let status = if self.is_status { "-status" } else { "" };
        format!("{work}-{}{status}-{}", self.resource, way.slug())
    }
}

/// A fingerprint that is another with each change, as the host writes one.
fn applied(number: usize) -> Value {
    json!({"pilothouse.dev/applied": fingerprint(number)})
}

fn fingerprint(number: usize) -> String {
    format!("fingerprint-{number:06}")
}

fn image(number: usize) -> String {
    format!("registry.example.com/web:1.{number:06}")
}

fn metadata(name: &str) -> Value {
    let mut annotations = applied(0);
    annotations["pilothouse.dev/identity"] = json!(format!("Deployment.apps/namespace/{name}"));
    annotations["pilothouse.dev/plugin-version"] = json!("app-service 0.1.0 sha256:0123456789ab");
    json!({
        "name": name,
        "labels": {
            "app.kubernetes.io/name": name, "app.kubernetes.io/component": "web", "app.kubernetes.io/managed-by": "pilothouse",
            "pilothouse.dev/plugin": "app-service", "pilothouse.dev/owner-uid": "11111111-2222-3333-4444-555555555555",
        },
        "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": "apps.example.com/v1", "kind": "AppService", "name": name, "uid": "11111111-2222-3333-4444-555555555555",
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

fn container(number: usize) -> Value {
    json!({
        "name": "app",
        "image": image(number),
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": "http"}},
    })
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/component": "web"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(0)]}},
        },
    })
}

fn target_port(number: usize) -> String {
    format!("port-{number:06}")
}

fn port(number: usize) -> Value {
    json!({"name": "http", "port": 80, "targetPort": target_port(number), "protocol": "TCP"})
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
        "spec": {"type": "ClusterIP", "selector": {"app.kubernetes.io/name": name}, "ports": [port(0)]},
    })
}

fn app_service(name: &str) -> Value {
    let spec = json!({"replicas": 2, "image": image(0), "port": 8080});
    json!({"apiVersion": "apps.example.com/v1", "kind": "AppService", "metadata": metadata(name), "spec": spec})
}

fn status(name: &str, number: usize) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "DeploymentProgressing", "message": format!("{} of 2 replicas are ready", number % 2),
            "observedGeneration": 1_000 + number, "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = [
        ("Ready", "False"),
        ("Progressing", "True"),
        ("Available", "False"),
        ("Degraded", "False"),
        ("Applied", "True"),
    ];
    json!({
        "observedGeneration": 1_000 + number, "replicas": 2, "readyReplicas": number % 2,
        "selector": format!("app.kubernetes.io/component=web,app.kubernetes.io/name={name}"),
        "url": format!("http://{name}.namespace.svc"),
        "conditions": conditions.map(|(kind, status)| condition(kind, status)),
    })
}
