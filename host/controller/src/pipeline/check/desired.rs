//! An answer after check and completion. Values only.

use pilothouse_engine::contract::{Condition, Event, Handling, ImmutablePolicy, KindRef, Measurement, Verdict};
use serde_json::{Map, Value};

use super::decoration::Decoration;
use crate::{object::ObjectRef, pipeline::conditions::READY};

/// A checked and completed answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The plugin's verdict.
    pub verdict: Verdict,
    /// The desired children.
    pub children: DesiredChildren,
    /// The labels and annotations of the object itself; none leaves those that are there.
    pub decoration: Option<Decoration>,
    /// Whether the plugin removes many children on purpose.
    pub removes_many: bool,
    /// The status fields; none leaves the existing ones.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions.
    pub conditions: Vec<Condition>,
    /// The plugin's events.
    pub events: Vec<Event>,
    /// The plugin's measurements.
    pub measurements: Vec<Measurement>,
    /// The delay until the next call, in seconds.
    pub requeue_after: Option<u32>,
}

/// The desired children of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum DesiredChildren {
    /// The live children, whatever they are.
    Leave,
    /// The live children, which are known to be in sync with the answer. Nothing was checked.
    InSync,
    /// These, and no others.
    These(Vec<DesiredChild>),
}

impl Desired {
    /// Whether `Ready` depends on how far the children are: the plugin is done, and does not judge that itself.
    pub fn asks_for_readiness(&self) -> bool {
        self.verdict == Verdict::Done && self.conditions.iter().all(|condition| condition.condition_type != READY)
    }
}

impl DesiredChildren {
    /// Takes the checked children out, to plan them; none if there is nothing to plan. Leaves [`DesiredChildren::InSync`] behind.
    pub fn take_checked(&mut self) -> Option<Vec<DesiredChild>> {
        match self {
            Self::Leave | Self::InSync => None,
            Self::These(children) => {
                let children = std::mem::take(children);
                *self = Self::InSync;
                Some(children)
            }
        }
    }

    /// The checked children.
    pub fn checked(&self) -> &[DesiredChild] {
        match self {
            Self::Leave | Self::InSync => &[],
            Self::These(children) => children,
        }
    }
}

/// A child to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    /// Its kind.
    pub kind: KindRef,
    /// Its name and namespace. The namespace is empty for a cluster-scoped kind.
    pub name: ObjectRef,
    /// The complete body to apply, with owner reference, labels and digest.
    pub body: Value,
    /// The mark of the body, which is also in its annotation [`crate::labels::APPLIED`]: its digest, and the outline of its fields.
    pub digest: String,
    /// What the host does with it.
    pub handling: Handling,
    /// The children that must be current before this one is written, by their places in the answer. All are before it.
    pub after: Vec<usize>,
    /// Its place in the order, from 1 on; 0 if it waits for no other.
    pub order: u32,
    /// The policy for changes of immutable fields.
    pub on_immutable: ImmutablePolicy,
    /// The JSON pointers of fields that are left to others. They are not in the body.
    pub unmanaged: Vec<String>,
}
