//! The types of the contract, generated from `wit/plugin.wit`. They can be compared, printed and serialised; they have no other
//! behaviour.

// The generator writes one line of documentation per item only where the WIT has one.
#[allow(missing_docs)]
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin",
        additional_derives: [PartialEq, Clone, serde::Serialize, serde::Deserialize],
    });
}

pub(crate) use generated::Plugin as Imports;
pub(crate) use generated::pilothouse::plugin::{clock, log, lookup, trap, types};
pub use lookup::LookupError;
pub use pilothouse_wit::KindRef;
pub use types::{
    Child, Condition, ConditionStatus, Event, EventType, ImmutablePolicy, Label, Measurement, RemovalPolicy, Request,
    Response, Verdict, Waiting,
};

impl From<types::KindRef> for KindRef {
    fn from(kind: types::KindRef) -> Self {
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
