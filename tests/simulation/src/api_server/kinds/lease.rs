//! Leases.

use super::{Strategy, edit::at};

/// Leases.
pub(super) static LEASE: Strategy = Strategy {
    unconditional_update: false,
    knows_finalizers: false,
    create_on_update: true,
    validate: |object, _, causes| {
        let seconds = at(object, &["spec", "leaseDurationSeconds"]);
        if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
            causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
        }
        let transitions = at(object, &["spec", "leaseTransitions"]);
        if transitions.as_i64().is_some_and(|transitions| transitions < 0) {
            causes.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0");
        }
    },
    ..Strategy::USUAL
};
