//! The allocator of the program, and when it gives memory back. What it keeps for the next request it gives back only while others ask it for
//! some: an idle host would keep it for ever. Allocates nothing itself, and is the only unsafe module of this program.
#![allow(unsafe_code, reason = "the allocator is C")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// mimalloc returns memory to the system sooner than the default allocator, which matters for an idle operator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often is looked whether the process is at rest.
const INTERVAL: Duration = Duration::from_secs(10);

/// A process that used less of the processor in one interval is at rest: some renewals of Leases and watches, and a scrape.
const AT_REST: Duration = Duration::from_millis(50);

/// Gives back what is free, once for each time that the process comes to rest. To be run by the thread that allocates most. Never returns.
pub async fn give_back_at_rest() {
    let (mut before, mut given_back) = (processor_time(), Duration::ZERO);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = processor_time();
        if now.saturating_sub(before) < AT_REST && now.saturating_sub(given_back) >= AT_REST {
            give_back();
            given_back = processor_time();
        }
        before = now;
    }
}

fn give_back() {
    // SAFETY: it may be called at any time, by any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// What all threads of this process have used of the processors.
fn processor_time() -> Duration {
    // Never negative.
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
