//! What a forecast says. Values only.

use pilothouse_controller::{
    object::ObjectRef,
    pipeline::{
        check::Decoration,
        lifecycle::managed::NotOurs,
        plan::{Plan, diff::Difference},
    },
};
use pilothouse_engine::contract::KindRef;
use serde_json::Value;

/// What would become of the objects of a plugin.
#[derive(Debug)]
pub struct Forecast {
    /// The kind of the objects.
    pub kind: KindRef,
    /// What would become of each, in the order of their names.
    pub objects: Vec<ForecastObject>,
}

/// What would become of one object.
#[derive(Debug)]
pub struct ForecastObject {
    /// Its name.
    pub name: ObjectRef,
    /// What would become of it.
    pub outcome: Outcome,
    /// What the host would do first, for a dry run.
    pub(crate) first: Option<FirstWrites>,
}

/// What the host would write first.
#[derive(Clone, Debug)]
pub(crate) struct FirstWrites {
    /// On the object itself; none if its plugin owns it.
    pub decoration: Option<Decoration>,
    /// What it would do with the children.
    pub plan: Plan,
}

/// What would become of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The host would leave it alone.
    LeftAlone(NotOurs),
    /// It is pinned to another version.
    Pinned,
    /// It is being deleted, or its time is over.
    Deleting,
    /// The plugin answers for it.
    Answered {
        /// What the host would do, step by step; empty if nothing. Without looking further than one step, there is one at most.
        steps: Vec<Vec<ChildChange>>,
        /// The labels and annotations that a decorator would change on the object itself.
        decoration: Vec<Difference>,
        /// Whether the host would add a finalizer to the object.
        adds_finalizer: bool,
        /// What is wrong in the end.
        trouble: Option<Trouble>,
    },
}

impl Outcome {
    /// All changes, in their order.
    pub fn changes(&self) -> impl Iterator<Item = &ChildChange> {
        let steps = match self {
            Self::Answered { steps, .. } => steps.as_slice(),
            Self::LeftAlone(_) | Self::Pinned | Self::Deleting => &[],
        };
        steps.iter().flatten()
    }

    /// Whether the host would write anything but a status.
    pub fn is_change(&self) -> bool {
        self.changes_object() || self.changes().next().is_some()
    }

    /// Whether it would write the object itself.
    fn changes_object(&self) -> bool {
        matches!(self, Self::Answered { adds_finalizer, decoration, .. } if *adds_finalizer || !decoration.is_empty())
    }

    /// What is wrong.
    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Answered { trouble, .. } => trouble.as_ref(),
            Self::LeftAlone(_) | Self::Pinned | Self::Deleting => None,
        }
    }
}

/// Why an object would not be as its user wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The CamelCase word that the conditions of the object would have.
    pub reason: String,
    /// The message.
    pub message: String,
    /// Whether the object's status says the same already, so that it is not the new version that brings it.
    pub is_present: bool,
}

/// What would become of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildChange {
    /// Its kind.
    pub kind: KindRef,
    /// Its name.
    pub name: ObjectRef,
    /// What the host would do with it.
    pub action: Action,
    /// The digest of what would be applied, as in its annotation `pilothouse.dev/applied`; none if it would be deleted.
    pub digest: Option<String>,
    /// Why the API server would refuse it, as far as it was asked.
    pub refused: Option<Refused>,
}

/// What the host would do with a child.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create it with this body.
    Create(Box<Value>),
    /// Change these fields. None are named where the plugin only gives fields up.
    Update(Vec<Difference>),
    /// Delete it and create it anew: a field cannot be changed.
    Recreate(Vec<Difference>),
    /// Delete it, for this cause.
    Delete(String),
    /// Leave it although the plugin does not return it any more, until somebody confirms the delete. The text says why.
    HoldBack(String),
}

/// Why the API server would refuse a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The CamelCase word that the conditions of the object would have.
    pub reason: String,
    /// The API server's message.
    pub message: String,
}
