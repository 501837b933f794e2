//! Requests that fail because a test wants it. The API server never sees them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::{Method, StatusCode};

use super::request::Target;

/// Which requests fail; none at first.
#[derive(Default)]
pub struct Faults {
    failing: Mutex<Vec<(Method, String, StatusCode)>>,
}

impl Faults {
    /// Lets requests of a method to a resource (`configmaps`, `sextets/status`) fail with a status.
    pub fn fail(&self, method: Method, resource: &str, status: StatusCode) {
        self.failing().push((method, resource.to_owned(), status));
    }

    /// Lets no more request fail.
    pub fn heal(&self) {
        self.failing().clear();
    }

    /// How a request fails, if it does.
    pub(super) fn of(&self, target: &Target) -> Option<StatusCode> {
        let failing = self.failing();
        let found =
            failing.iter().find(|(method, resource, _)| target.method == method && target.resource == *resource);
        found.map(|(_, _, status)| *status)
    }

    fn failing(&self) -> MutexGuard<'_, Vec<(Method, String, StatusCode)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
