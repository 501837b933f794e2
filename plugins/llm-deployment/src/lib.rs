//! The reference plugin `llm-deployment`: an `LLMDeployment` becomes a Deployment of servers of the model that it refers to, and a
//! Service in front of them. While the model is missing, everything stays as it is. The plugin writes and deletes nothing itself: it
//! returns the children that should exist, and the host applies them.

pub mod api;
#[cfg(feature = "crd")]
pub mod crd;
mod model_ref;
mod reconcile;

pub use reconcile::reconcile;

pilothouse_sdk::plugin! {
    name: "llm-deployment",
    reconciles: "llm.example.com/v1alpha1" "LLMDeployment",
    children: [
        "apps/v1" "Deployment" reads ["/status"],
        "v1" "Service" reads ["/metadata/uid"],
        "policy/v1" "PodDisruptionBudget" reads [],
        "networking.k8s.io/v1" "NetworkPolicy" reads [],
        "networking.k8s.io/v1" "Ingress" reads [],
        "gateway.networking.k8s.io/v1" "HTTPRoute" reads [],
        "inference.networking.k8s.io/v1" "InferencePool" reads ["/metadata/uid"],
        "monitoring.coreos.com/v1" "ServiceMonitor" reads [],
        "monitoring.coreos.com/v1" "PodMonitor" reads [],
        "resource.k8s.io/v1" "ResourceClaimTemplate" reads [],
    ],
    lookups: [
        "llm.example.com/v1alpha1" "LLMModel",
        "v1" "Pod",
        "apps/v1" "ReplicaSet" metadata_only label_selector "app.kubernetes.io/component=llmdeployment",
        "v1" "PersistentVolumeClaim",
        "gateway.networking.k8s.io/v1" "HTTPRoute",
        "inference.networking.k8s.io/v1" "InferencePool",
        "monitoring.coreos.com/v1" "ServiceMonitor",
        "monitoring.coreos.com/v1" "PodMonitor",
        "resource.k8s.io/v1" "ResourceClaimTemplate",
    ],
    reads: ["/spec", "/status"],
    reconcile: reconcile,
}
