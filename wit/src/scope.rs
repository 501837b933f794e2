//! Which kinds live outside of namespaces, for whoever has no API server to ask. Knows no kinds of anybody's own but the best known.

use crate::KindRef;

/// Kinds outside of namespaces, by group.
const CLUSTER_SCOPED: [(&str, &[&str]); 14] = [
    ("", &["Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("cert-manager.io", &["ClusterIssuer"]),
    ("certificates.k8s.io", &["CertificateSigningRequest"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("networking.k8s.io", &["IngressClass"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
];

impl KindRef {
    /// Whether objects of this kind are known to live outside of namespaces. Nearly all kinds live in them, so one that is not known does.
    pub fn is_known_cluster_scoped(&self) -> bool {
        CLUSTER_SCOPED.iter().any(|(group, kinds)| *group == self.group() && kinds.contains(&self.kind.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_outside_of_namespaces_are_known_in_each_version() {
        for (api_version, kind, expected) in [
            ("v1", "Namespace", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", true),
            ("gateway.networking.k8s.io/v1beta1", "GatewayClass", true),
            ("v1", "ConfigMap", false),
            ("example.com/v1", "Namespace", false),
            ("rbac.authorization.k8s.io/v1", "Role", false),
        ] {
            assert_eq!(KindRef::new(api_version, kind).is_known_cluster_scoped(), expected, "{api_version} {kind}");
        }
    }
}
