//! The scopes of kinds, without an API server to ask. Kinds that the table does not name count as namespaced, because nearly all are.

use pilothouse_controller::{pipeline::check::KnownKinds, schema::Schema};
use pilothouse_engine::contract::KindRef;

/// The kinds of Kubernetes that live outside of namespaces, by group.
const CLUSTER_SCOPED: [(&str, &[&str]); 9] = [
    ("", &["Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["IngressClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
];

/// Whether objects of a kind live in namespaces.
pub(crate) fn is_namespaced(kind: &KindRef) -> bool {
    let is_listed = |(group, kinds): &(&str, &[&str])| *group == kind.group() && kinds.contains(&kind.kind.as_str());
    !CLUSTER_SCOPED.iter().any(is_listed)
}

/// All kinds, as installed.
pub(crate) struct AllKinds;

impl KnownKinds for AllKinds {
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool> {
        Some(is_namespaced(kind))
    }

    fn schema(&self, _: &KindRef) -> Option<&Schema> {
        None
    }
}
