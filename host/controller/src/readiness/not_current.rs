//! The results of rules that find an object not current.

use pilothouse_engine::contract::{Readiness, ReadinessStatus};

pub(super) fn in_progress(reason: &str, message: &str) -> Readiness {
    not_current(ReadinessStatus::InProgress, reason, message)
}

pub(super) fn failed(reason: &str, message: &str) -> Readiness {
    not_current(ReadinessStatus::Failed, reason, message)
}

pub(super) fn not_current(status: ReadinessStatus, reason: &str, message: &str) -> Readiness {
    Readiness { status, reason: reason.to_owned(), message: message.to_owned() }
}
