//! Records the host's writes in the order of their arrival and holds one of them, to simulate a crash at that point. From the
//! held write on nothing passes, so the API server has exactly the state that a crash would leave behind.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use axum::{http::StatusCode, response::Response};
use futures::{FutureExt, future::BoxFuture};
use tokio::sync::oneshot;

use super::request::Target;
use crate::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};

/// The point at which a write is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before it reaches the API server. It never does, unless the write is released.
    Before,
    /// After the API server's answer, before that reaches the host. It never does, unless the answer is released.
    After,
}

/// The writes since the last start of counting.
#[derive(Default)]
pub struct Writes {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    seen: Vec<String>,
    /// When the last one arrived, also before the counting.
    last: Option<Instant>,
    /// The writes without an answer yet, and their maximum so far.
    under_way: usize,
    most: usize,
    hold: Option<(usize, Moment)>,
    /// The write that is held before the API server sees it.
    held: Option<BoxFuture<'static, Result<Response>>>,
    /// Releases the held answer.
    release_answer: Option<oneshot::Sender<()>>,
}

/// What to do with a write.
enum Course {
    Free,
    HeldBefore,
    HeldAfter,
}

impl Writes {
    /// Starts counting again at 1 and holds no further write. A write that is held already stays held.
    pub fn count(&self) {
        let mut inner = self.inner();
        inner.seen.clear();
        inner.hold = None;
    }

    /// Starts counting again and holds write `number` (the first is 1) and all later ones.
    pub fn hold(&self, number: usize, moment: Moment) {
        let mut inner = self.inner();
        inner.seen.clear();
        (inner.hold, inner.held) = (Some((number, moment)), None);
    }

    /// Sends the held write to the API server, like a request that was delayed in the network. Only the caller gets
    /// the answer.
    ///
    /// # Errors
    /// If none was held, or the API server does not answer.
    pub async fn release(&self) -> Result<StatusCode> {
        let held = self.inner().held.take();
        Ok(held.context("no write was held")?.await?.status())
    }

    /// Sends the held answer to the host and lets all further writes pass.
    ///
    /// # Errors
    /// If none was held, or the host no longer waits for it.
    pub fn release_answer(&self) -> Result<()> {
        let mut inner = self.inner();
        inner.hold = None;
        let released = inner.release_answer.take().context("no answer was held")?.send(());
        released.map_err(|()| anyhow!("the host no longer waits for the answer"))
    }

    /// All writes so far, such as `PATCH configmaps web`.
    pub fn seen(&self) -> Vec<String> {
        self.inner().seen.clone()
    }

    /// Waits until no write has arrived for so long, as a status that is held back may yet come.
    ///
    /// # Errors
    /// If writes do not end in time.
    pub async fn until_none_for(&self, quiet: Duration) -> Result<()> {
        let since_last = || self.inner().last.map(|last| last.elapsed());
        let is_quiet = |since: Option<Duration>| since.is_none_or(|since| since >= quiet);
        eventually(PATIENCE, &format!("no write for {quiet:?}"), async || {
            let since = since_last();
            Ok(Look::of(is_quiet(since), (since, self.seen())))
        })
        .await
    }

    /// The maximum number of concurrent writes.
    pub fn most_at_once(&self) -> usize {
        self.inner().most
    }

    /// Whether the write to hold has arrived and all earlier ones are answered.
    pub fn is_held(&self) -> bool {
        let inner = self.inner();
        inner.hold.is_some_and(|(number, _)| inner.seen.len() >= number) && inner.under_way == 0
    }

    /// Waits until [`Writes::is_held`].
    ///
    /// # Errors
    /// If no write is held in time.
    pub async fn until_held(&self) -> Result<()> {
        eventually(PATIENCE, "a write to be held", async || Ok(Look::of(self.is_held(), self.seen()))).await
    }

    pub(super) async fn pass(
        &self,
        target: &Target,
        forward: impl Future<Output = Result<Response>> + Send + 'static,
    ) -> Result<Response> {
        let course = self.arrived(target);
        if let Course::HeldBefore = course {
            self.inner().held.get_or_insert_with(|| forward.boxed());
            return pending().await;
        }
        let under_way = UnderWay(self);
        let answer = forward.await;
        // The order matters: a test that sees the write as held may release its answer at once.
        let released = matches!(course, Course::HeldAfter).then(|| {
            let (sender, released) = oneshot::channel();
            self.inner().release_answer = Some(sender);
            released
        });
        drop(under_way);
        if let Some(released) = released
            && released.await.is_err()
        {
            return pending().await;
        }
        answer
    }

    fn arrived(&self, target: &Target) -> Course {
        let mut inner = self.inner();
        inner.seen.push(target.to_string());
        inner.last = Some(Instant::now());
        let number = inner.seen.len();
        let course = match inner.hold {
            Some((held, Moment::After)) if number == held => Course::HeldAfter,
            Some((held, _)) if number >= held => Course::HeldBefore,
            _ => Course::Free,
        };
        if !matches!(course, Course::HeldBefore) {
            inner.under_way += 1;
            inner.most = inner.most.max(inner.under_way);
        }
        course
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write in progress. Ends with the answer, or when the host stops waiting for it.
struct UnderWay<'a>(&'a Writes);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.inner().under_way -= 1;
    }
}
