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
}

/// What a call does besides counting.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Nothing.
    #[default]
    Count,
    /// It keeps four MiB for good.
    Leak,
    /// It needs so many MiB and gives them back.
    Need(usize),
    /// It traps.
    Trap,
    /// It never ends.
    Loop,
    /// It says what time it is.
    TellTime,
    /// It writes a line into the log.
    Log,
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
    let mut time = None;
    match request.object.spec.act {
        Act::Count => {}
        Act::Leak => KEPT.with_borrow_mut(|kept| kept.push(vec![1; 4 << 20])),
        Act::Need(mebibytes) => drop(std::hint::black_box(vec![1_u8; mebibytes << 20])),
        Act::Trap => panic!("as the object wants it"),
        Act::Loop => loop {
            std::hint::spin_loop();
        },
        Act::TellTime => time = Some(clock::now_text()),
        Act::Log => log::info(format!("call {}", CALLS.get())),
    }
    Response::done().status(json!({"calls": CALLS.get(), "time": time}))
}
