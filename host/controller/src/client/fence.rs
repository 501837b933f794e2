//! Fencing: lets writes to the API server through only while this process may write. A leader that was suspended or cut off must
//! not write once another host may have taken over, so every write is checked just before it is sent. Reads always pass.
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
pub struct Fence(Arc<Observable<Permit>>);

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
        Self(Arc::new(Observable::new(Permit::Always)))
    }

    /// A fence that is closed until this host becomes the leader.
    pub fn closed() -> Self {
        Self(Arc::new(Observable::new(Permit::Never)))
    }

    /// Returns the request if it may be sent now.
    ///
    /// # Errors
    /// [`NotLeading`] for a write while the fence is closed.
    pub fn admit<B>(&self, request: Request<B>) -> Result<Request<B>, NotLeading> {
        if !is_write(&request) || self.is_open() { Ok(request) } else { Err(NotLeading) }
    }

    /// Whether writes are permitted now.
    pub fn is_open(&self) -> bool {
        self.permits(Instant::now())
    }

    /// Waits until writes are permitted.
    pub async fn until_open(&self) {
        self.0.wait_for(|permit| permit.permits(Instant::now())).await;
    }

    /// Permits writes until this time. The permit expires by itself, even if this process is suspended.
    pub(crate) fn open_until(&self, end: Instant) {
        self.0.set(Permit::Until(end));
    }

    /// Permits no more writes.
    pub(crate) fn close(&self) {
        self.0.set(Permit::Never);
    }

    fn permits(&self, now: Instant) -> bool {
        self.0.get().permits(now)
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
