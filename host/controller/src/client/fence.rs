//! Fencing: lets writes to the API server through only while this process may write. A leader that was suspended or cut off must
//! not write once another host may have taken over, so every write is checked just before it is sent. Reads always pass. A request
//! may have a fence of its own beside that of its client ([`fenced`](super::fenced)): hosts that share the work may write for some plugins.
//!
//! ```
//! use http::Request;
//! use pilothouse_controller::client::fence::Fence;
//!
//! let (read, write) = (|| Request::get("/"), || Request::delete("/"));
//! let fence = Fence::closed();
//! assert!(fence.admit(read().body(())?).is_ok());
//! assert!(fence.admit(write().body(())?).is_err());
//! assert!(Fence::open().admit(write().body(())?).is_ok());
//! # Ok::<(), http::Error>(())
//! ```

use std::sync::Arc;

use http::Request;
use tokio::time::Instant;

use super::request::is_write;
use crate::observable::Observable;

/// Decides whether this process may write. Clones share the decision.
#[derive(Clone, Debug)]
pub struct Fence {
    permit: Arc<Observable<Permit>>,
    /// The fence around this one, which has to be open as well.
    around: Option<Arc<Fence>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permit {
    Always,
    Until(Instant),
    Never,
}

/// A write by a process that is not the leader.
#[derive(Debug, thiserror::Error)]
#[error("this host is not the leader, so it does not write")]
pub struct NotLeading;

impl Fence {
    /// A fence that is always open, for a host without leader election.
    pub fn open() -> Self {
        Self::with(Permit::Always, None)
    }

    /// A fence that is closed until this host becomes the leader.
    pub fn closed() -> Self {
        Self::with(Permit::Never, None)
    }

    /// A closed fence within this one: it lets a write through only while both are open.
    #[must_use]
    pub fn within(&self) -> Self {
        Self::with(Permit::Never, Some(Arc::new(self.clone())))
    }

    fn with(permit: Permit, around: Option<Arc<Self>>) -> Self {
        Self { permit: Arc::new(Observable::new(permit)), around }
    }

    /// Returns the request if it may be sent now.
    ///
    /// # Errors
    /// [`NotLeading`] for a write while the fence is closed.
    pub fn admit<B>(&self, request: Request<B>) -> Result<Request<B>, NotLeading> {
        let has_its_own_permit = request.extensions().get::<Self>().is_none_or(Self::is_open);
        let may_pass = !is_write(&request) || (self.is_open() && has_its_own_permit);
        if may_pass { Ok(request) } else { Err(NotLeading) }
    }

    /// Whether writes are permitted now.
    pub fn is_open(&self) -> bool {
        self.permits(Instant::now())
    }

    /// Waits until writes are permitted.
    pub async fn until_open(&self) {
        while !self.is_open() {
            self.until_permitted().await;
            if let Some(around) = &self.around {
                around.until_permitted().await;
            }
        }
    }

    async fn until_permitted(&self) {
        self.permit.wait_for(|permit| permit.permits(Instant::now())).await;
    }

    /// Permits writes until this time. The permit expires by itself, even if this process is suspended.
    pub(crate) fn open_until(&self, end: Instant) {
        self.permit.set(Permit::Until(end));
    }

    /// Permits writes as long as the fence around this one does.
    pub(crate) fn open_within(&self) {
        self.permit.set(Permit::Always);
    }

    /// Permits no more writes.
    pub(crate) fn close(&self) {
        self.permit.set(Permit::Never);
    }

    fn permits(&self, now: Instant) -> bool {
        self.permit.get().permits(now) && self.around.as_ref().is_none_or(|around| around.permits(now))
    }
}

impl Permit {
    fn permits(self, now: Instant) -> bool {
        match self {
            Self::Always => true,
            Self::Until(end) => now < end,
            Self::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::*;

    #[test]
    fn a_permit_to_write_ends_by_itself() {
        let (fence, now) = (Fence::closed(), Instant::now());
        assert!(!fence.permits(now));
        fence.open_until(now + Duration::from_secs(10));
        assert!(fence.permits(now + Duration::from_secs(9)));
        assert!(!fence.permits(now + Duration::from_secs(10)));
        fence.close();
        assert!(!fence.permits(now));
        assert!(Fence::open().permits(now));
    }

    #[test]
    fn a_fence_within_another_one_is_open_only_while_both_are() {
        let (host, now) = (Fence::closed(), Instant::now());
        let inner = host.within();
        inner.open_within();
        assert!(!inner.permits(now), "the one around it is closed");
        host.open_until(now + Duration::from_secs(10));
        assert!(inner.permits(now) && !inner.permits(now + Duration::from_secs(10)));
        inner.close();
        assert!(!inner.permits(now) && host.permits(now));
    }

    #[test]
    fn a_request_is_stopped_by_the_fence_that_it_has_itself() {
        let (client, plugins) = (Fence::open(), Fence::closed());
        let request = || {
            let mut request = Request::new(());
            *request.method_mut() = Method::PATCH;
            request.extensions_mut().insert(plugins.clone());
            request
        };
        assert!(client.admit(request()).is_err());
        plugins.open_within();
        assert!(client.admit(request()).is_ok());
        assert!(Fence::closed().admit(request()).is_err());
    }

    #[tokio::test]
    async fn what_waits_for_a_fence_goes_on_when_both_are_open() {
        let host = Fence::closed();
        let inner = host.within();
        let waiting = tokio::spawn({
            let inner = inner.clone();
            async move { inner.until_open().await }
        });
        inner.open_within();
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        host.open_until(Instant::now() + Duration::from_secs(10));
        assert!(waiting.await.is_ok());
    }

    #[test]
    fn a_closed_fence_stops_writes_alone() {
        for (method, passes) in [
            (Method::GET, true),
            (Method::PATCH, false),
            (Method::POST, false),
            (Method::PUT, false),
            (Method::DELETE, false),
        ] {
            let mut request = Request::new(());
            *request.method_mut() = method.clone();
            assert_eq!(Fence::closed().admit(request).is_ok(), passes, "{method}");
        }
    }
}
