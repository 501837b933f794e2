//! Test guest: as `scripted`, for a cluster-scoped kind.

use scripted::reconcile;

pilothouse_sdk::plugin! {
    name: "scripted-cluster",
    reconciles: "test.pilothouse.dev/v1" "ClusterScripted",
    children: ["v1" "ConfigMap", "v1" "Secret", "v1" "Namespace", "test.pilothouse.dev/v1" "ScriptedChild"],
    lookups: ["v1" "ConfigMap" all_namespaces, "v1" "Secret"],
    orders_children: true,
    reconcile: reconcile,
}
