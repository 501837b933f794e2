//! Fault injection for requests: a test makes them fail, arrive late, or get no answer.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::{Method, StatusCode};

use super::request::Target;

/// The faults to inject; none at first. Resources are named like `configmaps` or `sextets/status`. Watches are not affected.
#[derive(Default)]
pub struct Faults {
    wrong: Mutex<Vec<(Method, String, Fault)>>,
}

/// The fault for a request.
#[derive(Clone, Copy)]
enum Fault {
    /// It fails before it reaches the API server.
    Fail(StatusCode),
    /// The same, but only once.
    FailOnce(StatusCode),
    /// It reaches the API server after this delay.
    Delay(Duration),
    /// It never reaches the API server and is never answered.
    Swallow,
}

impl Faults {
    /// Makes all requests of a method to a resource fail with a status.
    pub fn fail(&self, method: Method, resource: &str, status: StatusCode) {
        self.go_wrong(method, resource, Fault::Fail(status));
    }

    /// Makes the next request of a method to a resource fail with a status.
    pub fn fail_once(&self, method: Method, resource: &str, status: StatusCode) {
        self.go_wrong(method, resource, Fault::FailOnce(status));
    }

    /// Delays all requests of a method to a resource.
    pub fn delay(&self, method: Method, resource: &str, by: Duration) {
        self.go_wrong(method, resource, Fault::Delay(by));
    }

    /// Swallows all requests of a method to a resource: they are never answered.
    pub fn swallow(&self, method: Method, resource: &str) {
        self.go_wrong(method, resource, Fault::Swallow);
    }

    /// Removes all faults. A request that was swallowed stays without an answer.
    pub fn heal(&self) {
        self.wrong().clear();
    }

    /// Applies the fault for a request, if there is one. Returns the response of one that fails.
    pub(super) async fn pass(&self, target: &Target) -> Result<(), StatusCode> {
        match self.take(target) {
            None => Ok(()),
            Some(Fault::Fail(status) | Fault::FailOnce(status)) => Err(status),
            Some(Fault::Swallow) => pending().await,
            Some(Fault::Delay(by)) => {
                tokio::time::sleep(by).await;
                Ok(())
            }
        }
    }

    /// The fault for a request. A fault that applies once is removed.
    fn take(&self, target: &Target) -> Option<Fault> {
        let mut wrong = self.wrong();
        let is_meant = |(method, resource, _): &(Method, String, Fault)| {
            target.method == *method && target.resource == *resource && !target.is_watch()
        };
        let place = wrong.iter().position(is_meant)?;
        let (_, _, fault) = wrong[place];
        if let Fault::FailOnce(_) = fault {
            wrong.remove(place);
        }
        Some(fault)
    }

    fn go_wrong(&self, method: Method, resource: &str, fault: Fault) {
        self.wrong().push((method, resource.to_owned(), fault));
    }

    fn wrong(&self) -> MutexGuard<'_, Vec<(Method, String, Fault)>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
