//! The table of the built-in kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Kind, Names, Reset, Scale, Strategy, apps, autoscaling, config, definition, event, fields, job, lease, namespace,
    network, pod, service, volume_claim,
};
use crate::api_server::{codec::empty_object, schema::Node};

/// One built-in kind.
pub(super) struct Row {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    scope: Scope,
    subresources: Subresources,
    /// The fields that cannot be written through the object itself, and through its status.
    reset: fn() -> (Value, Value),
    strategy: &'static Strategy,
}

/// Where objects live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Cluster,
    Namespace,
}

/// Which subresources a kind has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subresources {
    None,
    Status,
    StatusAndScale,
}

const fn core(kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Row {
    Row {
        group: "",
        version: "v1",
        kind,
        plural,
        short_names: short,
        scope: Scope::Namespace,
        subresources: Subresources::None,
        reset: || (json!({}), json!({})),
        strategy: &Strategy::USUAL,
    }
}

const fn of(group: &'static str, version: &'static str, row: Row) -> Row {
    Row { group, version, ..row }
}

/// Most kinds with a status: the object cannot write it, and the status cannot write the spec.
const fn with_status(row: Row, strategy: &'static Strategy) -> Row {
    Row {
        subresources: Subresources::Status,
        reset: || (json!({"f:status": {}}), json!({"f:spec": {}})),
        strategy,
        ..row
    }
}

const fn with(row: Row, strategy: &'static Strategy) -> Row {
    Row { strategy, ..row }
}

/// All built-in kinds.
pub(super) const KINDS: [Row; 19] = [
    Row { scope: Scope::Cluster, ..with_status(core("Namespace", "namespaces", &["ns"]), &namespace::NAMESPACE) },
    with(core("ConfigMap", "configmaps", &["cm"]), &config::CONFIG_MAP),
    with(core("Secret", "secrets", &[]), &config::SECRET),
    with(core("ServiceAccount", "serviceaccounts", &["sa"]), &config::SERVICE_ACCOUNT),
    with(core("Event", "events", &["ev"]), &event::EVENT),
    with_status(core("Service", "services", &["svc"]), &service::SERVICE),
    Row {
        reset: || {
            let status = json!({"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}});
            (json!({"f:status": {}}), status)
        },
        ..with_status(core("Pod", "pods", &["po"]), &pod::POD)
    },
    with_status(core("PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"]), &volume_claim::VOLUME_CLAIM),
    Row {
        subresources: Subresources::StatusAndScale,
        reset: || (json!({"f:status": {}}), json!({"f:spec": {}, "f:metadata": {"f:labels": {}}})),
        ..with_status(of("apps", "v1", core("Deployment", "deployments", &["deploy"])), &apps::DEPLOYMENT)
    },
    Row {
        subresources: Subresources::StatusAndScale,
        ..with_status(of("apps", "v1", core("StatefulSet", "statefulsets", &["sts"])), &apps::STATEFUL_SET)
    },
    Row {
        subresources: Subresources::StatusAndScale,
        ..with_status(of("apps", "v1", core("ReplicaSet", "replicasets", &["rs"])), &apps::REPLICA_SET)
    },
    with_status(of("batch", "v1", core("Job", "jobs", &[])), &job::JOB),
    with_status(
        of("autoscaling", "v2", core("HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"])),
        &autoscaling::AUTOSCALER,
    ),
    with_status(
        of("policy", "v1", core("PodDisruptionBudget", "poddisruptionbudgets", &["pdb"])),
        &network::DISRUPTION_BUDGET,
    ),
    with(
        of("networking.k8s.io", "v1", core("NetworkPolicy", "networkpolicies", &["netpol"])),
        &network::NETWORK_POLICY,
    ),
    with(of("coordination.k8s.io", "v1", core("Lease", "leases", &[])), &lease::LEASE),
    with(of("rbac.authorization.k8s.io", "v1", core("Role", "roles", &[])), &config::ROLE),
    with(of("rbac.authorization.k8s.io", "v1", core("RoleBinding", "rolebindings", &[])), &config::ROLE),
    Row {
        scope: Scope::Cluster,
        reset: || (json!({"f:status": {}}), json!({"f:metadata": {}, "f:spec": {}})),
        ..with_status(
            of(
                "apiextensions.k8s.io",
                "v1",
                core("CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"]),
            ),
            &definition::DEFINITION,
        )
    },
];

impl Row {
    /// The path of the OpenAPI document that has the kind.
    pub(super) fn document(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    /// The kind, once its schema is known.
    pub(super) fn build(&self, schema: Arc<Node>) -> Kind {
        let (main, status) = (self.reset)();
        let path = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let scale = Scale {
            spec: path(&["spec", "replicas"]),
            status: path(&["status", "replicas"]),
            selector: path(&["spec", "selector"]),
        };
        let api_version =
            if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) };
        let resource =
            if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) };
        Kind {
            names: Names {
                group: self.group.into(),
                version: self.version.into(),
                kind: self.kind.into(),
                list_kind: format!("{}List", self.kind).into(),
                plural: self.plural.into(),
                singular: self.kind.to_lowercase().into(),
                short_names: self.short_names.iter().map(|name| Arc::from(*name)).collect(),
            },
            api_version: api_version.into(),
            resource: resource.into(),
            namespaced: self.scope == Scope::Namespace,
            empty: empty_object(&schema),
            schema,
            has_status: self.subresources != Subresources::None,
            scale: (self.subresources == Subresources::StatusAndScale).then_some(scale),
            strategy: self.strategy,
            reset: Reset { main: fields(&main), status: fields(&status) },
            is_stored: true,
            published: Value::Null,
        }
    }
}
