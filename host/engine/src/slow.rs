//! The threads for slow calls. A call that does not end within its first slice continues here, so that it does not delay anything
//! else. An ordinary call takes microseconds and never leaves its thread. Knows nothing about what is called.

use std::{panic::resume_unwind, sync::OnceLock, task::Poll, thread};

use futures::future::BoxFuture;
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinError, JoinHandle},
};

/// The number of threads for slow calls: half of the processors, so that everything else has the other half.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1))
}

/// The threads, started when the first slow call needs them.
#[derive(Default)]
pub(crate) struct SlowLane(OnceLock<Option<Runtime>>);

impl SlowLane {
    /// Runs a call: the first slice on this thread, the rest on a slow thread. A cancelled call ends with its slice.
    pub(crate) async fn run<T: Send + 'static>(&self, mut call: BoxFuture<'static, T>) -> T {
        if let Poll::Ready(done) = futures::poll!(&mut call) {
            return done;
        }
        let Some(threads) = self.threads() else { return call.await };
        let mut task = AbortOnDrop(threads.spawn(call));
        match (&mut task.0).await.map_err(JoinError::try_into_panic) {
            Ok(done) => done,
            // As if the call had panicked on this thread: the caller's handling of panics must see it.
            Err(Ok(panic)) => resume_unwind(panic),
            // The task was aborted, which happens only when the process ends.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// The threads; none if the system cannot start any. Calls continue on the present thread then.
    fn threads(&self) -> Option<&Runtime> {
        let start = || match Builder::new_multi_thread()
            .worker_threads(threads())
            .thread_name("slow-call")
            .enable_time()
            .build()
        {
            Ok(runtime) => Some(runtime),
            Err(error) => {
                tracing::warn!("slow calls share their thread with everything else: {error}");
                None
            }
        };
        self.0.get_or_init(start).as_ref()
    }
}

/// Aborts a task when nobody waits for its result any more.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for SlowLane {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take().flatten() {
            // To drop a runtime waits for its threads, which panics in async code.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a guest with WASI does that computes and then sleeps.
    #[tokio::test]
    async fn a_slow_call_may_sleep() {
        let lane = SlowLane::default();
        let call = Box::pin(async {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            "slept"
        });
        assert_eq!(lane.run(call).await, "slept");
    }

    #[tokio::test]
    async fn a_quick_call_stays_and_a_slow_one_goes_on_elsewhere() {
        let (lane, here) = (SlowLane::default(), thread::current().id());
        let quick = lane.run(Box::pin(async { thread::current().id() })).await;
        assert_eq!(quick, here);
        let slow = lane.run(Box::pin(async {
            tokio::task::yield_now().await;
            thread::current().id()
        }));
        assert_ne!(slow.await, here);
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_ends() {
        let lane = SlowLane::default();
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let endless = lane.run(Box::pin(async move {
            let _alive = alive;
            loop {
                tokio::task::yield_now().await;
            }
        }));
        let given_up: Result<(), _> = tokio::time::timeout(std::time::Duration::from_millis(1), endless).await;
        assert!(given_up.is_err());
        assert!(ended.await.is_err(), "what the call held is dropped");
    }
}
