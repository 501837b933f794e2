//! The reference plugin `ai-llm-model`: an `LLMModel` of `ai.example.com` becomes a Deployment of servers of that model, and a Service
//! in front of them. It writes and deletes nothing itself: it returns the children that should exist, and the host applies them.

pub mod api;
#[cfg(feature = "crd")]
pub mod crd;
mod reconcile;

pub use reconcile::reconcile;

pilothouse_sdk::plugin! {
    name: "ai-llm-model",
    reconciles: "ai.example.com/v1" "LLMModel",
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
        "v1" "Pod",
        "apps/v1" "ReplicaSet" metadata_only label_selector "app.kubernetes.io/component=llmmodel",
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
