//! The reference plugin `model-deployment`: a `ModelDeployment` becomes a StatefulSet of servers of a model, or a LeaderWorkerSet of
//! servers that span several nodes, Services in front of them, and a HorizontalPodAutoscaler that keeps them within a latency. It writes and deletes nothing itself: it returns the children that
//! should exist, and the host applies them.

pub mod api;
mod autoscaler;
mod autoscalers;
#[cfg(feature = "crd")]
pub mod crd;
mod group_names;
mod keda;
mod leader_worker_set;
mod live;
mod observed_hpa;
mod observed_scaled_object;
mod others;
mod owned;
mod placement;
mod progress;
mod reconcile;
mod replicas;
mod sla;
mod sla_conditions;
mod sla_error;
mod turn;
mod workload;

pub use reconcile::reconcile;

pilothouse_sdk::plugin! {
    name: "model-deployment",
    reconciles: "llm.example.com/v1alpha1" "ModelDeployment",
    children: [
        "apps/v1" "StatefulSet" reads ["/spec/replicas", "/status"],
        "leaderworkerset.x-k8s.io/v1" "LeaderWorkerSet" reads ["/spec/replicas", "/status"],
        "v1" "Service" reads ["/metadata/uid"],
        "v1" "ConfigMap" reads [],
        "autoscaling/v2" "HorizontalPodAutoscaler" reads ["/metadata/uid", "/status"],
        "keda.sh/v1alpha1" "ScaledObject" reads ["/metadata/annotations", "/status/conditions"],
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
        "v1" "Service" metadata_only,
        "apps/v1" "StatefulSet" metadata_only,
        "v1" "PersistentVolumeClaim",
        "autoscaling/v2" "HorizontalPodAutoscaler",
        "keda.sh/v1alpha1" "ScaledObject",
        "leaderworkerset.x-k8s.io/v1" "LeaderWorkerSet",
        "gateway.networking.k8s.io/v1" "HTTPRoute",
        "inference.networking.k8s.io/v1" "InferencePool",
        "monitoring.coreos.com/v1" "ServiceMonitor",
        "monitoring.coreos.com/v1" "PodMonitor",
        "resource.k8s.io/v1" "ResourceClaimTemplate",
    ],
    reads: ["/spec", "/status"],
    reconcile: reconcile,
}
