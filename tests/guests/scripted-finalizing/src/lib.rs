//! Test guest: as `scripted` and of the same kind, with a finalizer: `spec.finalize` of its object is what it answers while the
//! object is being deleted.

use scripted::{finalize, reconcile};

pilothouse_sdk::plugin! {
    name: "scripted-finalizing",
    reconciles: "test.pilothouse.dev/v1" "Scripted",
    children: ["v1" "ConfigMap", "v1" "Secret", "v1" "Service"],
    lookups: ["v1" "ConfigMap", "v1" "Secret"],
    orders_children: true,
    reconcile: reconcile,
    finalize: finalize,
}
