//! The contract's own types as plain Rust values, with objects as JSON text. The typed modules are built on them, and a host
//! that links a plugin natively calls it with them. They have no behaviour of their own.

pub use crate::bindings::plain::pilothouse::plugin::log::Level;
pub use crate::bindings::plain::pilothouse::plugin::lookup::{LookupError, Scope};
pub use crate::bindings::plain::pilothouse::plugin::types::{
    Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, Json, KindRef, Label, LiveChild,
    Measurement, Readiness, ReadinessStatus, RefusedChild, RemovalPolicy, Request, Response, Verdict, Waiting,
};
