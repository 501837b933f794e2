//! Test guest: counts the calls that its instance has answered, of any object, and misbehaves as `spec.act` says. A plugin should not remember
//! anything; this one shows what becomes of it where its manifest allows it.

#![allow(clippy::panic, reason = "a trap is what the test asks for")]

use std::cell::{Cell, RefCell};

use pilothouse_sdk::{Object, Request, Response, clock, log};
use serde::Deserialize;
use serde_json::json;

pilothouse_sdk::plugin! {
    name: "tally",
    reconciles: "test.pilothouse.dev/v1" "Tally",
    children: [],
    reads: ["/spec"],
    calls_per_instance: 5,
    reconcile: reconcile,
}

/// What the object says.
#[derive(Debug, Deserialize)]
pub struct TallySpec {
    /// What to do besides counting.
    #[serde(default)]
    pub act: Act,
    /// Makes the request long.
    #[serde(default)]
    pub padding: String,
}

/// What a call does besides counting.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Nothing.
    #[default]
    Count,
    /// It needs so many MiB and gives them back.
    Need(usize),
    /// It answers with so many KiB.
    Say(usize),
    /// The same after more than a slice of computing time.
    SayLate(usize),
    /// It keeps so many MiB for good.
    Keep(usize),
    /// It traps.
    Trap,
    /// It traps, unless this is the first call of its instance.
    TrapAgain,
    /// It never ends.
    Loop,
    /// It says what time it is.
    TellTime,
    /// It writes a line into the log.
    Log,
    /// The same after more than a slice of computing time.
    LogLate,
}

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Counts the call.
///
/// # Panics
/// Where the object asks for it.
pub fn reconcile(request: &Request<Object<TallySpec>>) -> Response {
    CALLS.set(CALLS.get() + 1);
    let (mut time, mut said) = (None, None);
    match request.object.spec.act {
        Act::Count => {}
        Act::Need(mebibytes) => drop(std::hint::black_box(vec![1_u8; mebibytes << 20])),
        Act::Say(kibibytes) => said = Some("x".repeat(kibibytes << 10)),
        Act::SayLate(kibibytes) => {
            compute();
            said = Some("x".repeat(kibibytes << 10));
        }
        Act::Keep(mebibytes) => KEPT.with_borrow_mut(|kept| kept.push(vec![1; mebibytes << 20])),
        Act::TrapAgain if CALLS.get() == 1 => {}
        Act::TrapAgain => panic!("it remembers"),
        Act::Trap => panic!("as the object wants it"),
        Act::Loop => loop {
            std::hint::spin_loop();
        },
        Act::TellTime => time = Some(clock::now_text()),
        Act::Log => log::info(format!("log: call {}", CALLS.get())),
        Act::LogLate => {
            compute();
            log::info(format!("log-late: call {}", CALLS.get()));
        }
    }
    Response::done().status(json!({"calls": CALLS.get(), "time": time, "said": said}))
}

/// Several slices, also on a quick machine.
fn compute() {
    for number in 0..200_000_000_u64 {
        std::hint::black_box(number);
    }
}
