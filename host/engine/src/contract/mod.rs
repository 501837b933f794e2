//! The types of the contract, generated from the newest version in `wit/`. They can be compared, printed and serialised; they have no
//! other behaviour. Older versions are adapters to and from these types (`v0_1.rs`), so that nothing behind this module knows that there
//! are several.

// The generator writes one line of documentation per item only where the WIT has one.
#[allow(missing_docs)]
mod generated {
    wasmtime::component::bindgen!({
        path: "wit/0.2",
        world: "plugin",
        additional_derives: [PartialEq, Clone, serde::Serialize, serde::Deserialize],
    });
}

pub(crate) mod v0_1;

pub(crate) use generated::Plugin as Imports;
pub(crate) use generated::pilothouse::plugin::{clock, deletion, log, lookup, trap, types};
pub use lookup::LookupError;
pub use pilothouse_wit::KindRef;
pub use types::{
    Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, Label, LiveChild, Measurement,
    Readiness, ReadinessStatus, RefusedChild, RemovalPolicy, Request, Response, Verdict, Waiting,
};

impl From<types::KindRef> for KindRef {
    fn from(kind: types::KindRef) -> Self {
        Self { api_version: kind.api_version, kind: kind.kind }
    }
}

impl From<KindRef> for types::KindRef {
    fn from(kind: KindRef) -> Self {
        Self { api_version: kind.api_version, kind: kind.kind }
    }
}

impl Response {
    /// A response with only a verdict, which leaves children and status as they are.
    pub fn verdict(verdict: Verdict) -> Self {
        Self {
            verdict,
            children: None,
            removes_many: false,
            status: None,
            conditions: Vec::new(),
            events: Vec::new(),
            measurements: Vec::new(),
            requeue_after: None,
        }
    }
}

impl Child {
    /// A child that is applied as it is given, and deleted once it is not wanted. Nothing waits for it and it waits for nothing.
    pub fn applied(object: String) -> Self {
        Self {
            object,
            handling: Handling::Apply,
            after: Vec::new(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged_fields: Vec::new(),
        }
    }
}

impl Readiness {
    /// A child that is as its spec says.
    pub fn current() -> Self {
        Self { status: ReadinessStatus::Current, reason: String::new(), message: String::new() }
    }
}
