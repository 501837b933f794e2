//! Test guest: does what `spec.act` of its object says, so that tests see how a host bears it. Nothing in here is an example
//! to follow.

mod act;
mod excess;
mod fields;
mod kinds;

use act::act;

pilothouse_sdk::plugin! {
    name: "misbehaver",
    reconciles: "test.pilothouse.dev/v1" "Misbehaver",
    children: ["v1" "ConfigMap", "v1" "Namespace"],
    lookups: ["v1" "ConfigMap", "absent.pilothouse.dev/v1" "Absent", "test.pilothouse.dev/v1" "Misbehaver"],
    measurements: [
        counter "misbehaver_calls_total" "Calls, by act." ["act"],
        gauge "misbehaver_value" "The value that the object asks for." [],
        counter "misbehaver_transitions_total" "Numbers that objects have had." [],
        histogram "misbehaver_seconds" "The numbers, as if they were times." [] [1, 10, 100],
    ],
    reconcile: act,
}
