//! The host's writes, in order of their arrival, and the one at which the host is to crash. From that one on, nothing
//! passes any more: what the API server has then is exactly what a crash at that point leaves behind.

use std::{
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
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

/// When a write is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the API server sees it. It never will, unless the write is released.
    Before,
    /// After the API server has answered, before the host hears of it. It never will, unless it is released.
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
    /// Writes that the API server has not answered yet, and the most that there ever were.
    under_way: usize,
    most: usize,
    hold: Option<(usize, Moment)>,
    /// The write that is held before the API server sees it.
    held: Option<BoxFuture<'static, Result<Response>>>,
    /// Lets the host hear the answer that is held.
    release_answer: Option<oneshot::Sender<()>>,
}

/// What becomes of a write.
enum Course {
    Free,
    HeldBefore,
    HeldAfter,
}

impl Writes {
    /// Counts anew, from the first; nothing is held any more, but what is held stays held.
    pub fn count(&self) {
        let mut inner = self.inner();
        inner.seen.clear();
        inner.hold = None;
    }

    /// Counts anew and holds write `number` (the first is 1), and all that come after it.
    pub fn hold(&self, number: usize, moment: Moment) {
        let mut inner = self.inner();
        inner.seen.clear();
        (inner.hold, inner.held) = (Some((number, moment)), None);
    }

    /// Sends the write that was held before the API server saw it, as if it had been under way for all that time. Nobody waits
    /// for the answer but the caller.
    ///
    /// # Errors
    /// Where none was held, or the API server does not answer.
    pub async fn release(&self) -> Result<StatusCode> {
        let held = self.inner().held.take();
        Ok(held.context("no write was held")?.await?.status())
    }

    /// Lets the host hear the answer that was held after the API server gave it, and all that is written from now on pass.
    ///
    /// # Errors
    /// Where none was held, or the host no longer waits for it.
    pub fn release_answer(&self) -> Result<()> {
        let mut inner = self.inner();
        inner.hold = None;
        let released = inner.release_answer.take().context("no answer was held")?.send(());
        released.map_err(|()| anyhow!("the host no longer waits for the answer"))
    }

    /// What has been written: `PATCH configmaps web`.
    pub fn seen(&self) -> Vec<String> {
        self.inner().seen.clone()
    }

    /// The most writes that were under way at the same time.
    pub fn most_at_once(&self) -> usize {
        self.inner().most
    }

    /// Whether the write to hold is there and every earlier one is answered.
    pub fn is_held(&self) -> bool {
        let inner = self.inner();
        inner.hold.is_some_and(|(number, _)| inner.seen.len() >= number) && inner.under_way == 0
    }

    /// Waits until [`Writes::is_held`].
    ///
    /// # Errors
    /// Where no write is held in time.
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
        // Who sees that it is held can release its answer.
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

/// A write that was let through. Ends with the answer, or when the host no longer waits for it.
struct UnderWay<'a>(&'a Writes);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.inner().under_way -= 1;
    }
}
