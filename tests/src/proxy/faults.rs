//! Requests that go wrong because a test wants it: failed, late, or never answered.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::{Method, StatusCode};

use super::request::Target;

/// Which requests go wrong; none at first. A resource is `configmaps` or `sextets/status`. Watches are no requests here.
#[derive(Default)]
pub struct Faults {
    wrong: Mutex<Vec<(Method, String, Fault)>>,
}

/// What becomes of a request.
#[derive(Clone, Copy)]
enum Fault {
    /// It fails; the API server never sees it.
    Fail(StatusCode),
    /// So does it, and the next one goes its way.
    FailOnce(StatusCode),
    /// It reaches the API server so much later.
    Delay(Duration),
    /// Nobody sees it, and nobody answers.
    Swallow,
}

impl Faults {
    /// Lets requests of a method to a resource fail with a status.
    pub fn fail(&self, method: Method, resource: &str, status: StatusCode) {
        self.go_wrong(method, resource, Fault::Fail(status));
    }

    /// Lets the next request of a method to a resource fail with a status.
    pub fn fail_once(&self, method: Method, resource: &str, status: StatusCode) {
        self.go_wrong(method, resource, Fault::FailOnce(status));
    }

    /// Lets requests of a method to a resource take longer.
    pub fn delay(&self, method: Method, resource: &str, by: Duration) {
        self.go_wrong(method, resource, Fault::Delay(by));
    }

    /// Lets requests of a method to a resource go nowhere: they are never answered.
    pub fn swallow(&self, method: Method, resource: &str) {
        self.go_wrong(method, resource, Fault::Swallow);
    }

    /// Lets no more request go wrong. One that was swallowed stays so.
    pub fn heal(&self) {
        self.wrong().clear();
    }

    /// Lets a request go its way, or tells how it fails.
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

    /// What becomes of a request. What is to happen once has happened then.
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
