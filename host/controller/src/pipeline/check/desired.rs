//! What a plugin returned, once it is checked and completed. Values only.

use pilothouse_engine::contract::{Condition, Event, ImmutablePolicy, KindRef, Measurement, Verdict};
use serde_json::{Map, Value};

use crate::object::ObjectRef;

/// What a plugin returned, checked and completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How it went, in the plugin's words.
    pub verdict: Verdict,
    /// The children that shall exist.
    pub children: DesiredChildren,
    /// Whether most children are removed on purpose.
    pub removes_many: bool,
    /// The status fields; none leaves them as they are.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions.
    pub conditions: Vec<Condition>,
    /// The plugin's events.
    pub events: Vec<Event>,
    /// The plugin's measurements.
    pub measurements: Vec<Measurement>,
    /// Ask again after so many seconds.
    pub requeue_after: Option<u32>,
}

/// What an answer says of the children.
#[derive(Clone, Debug, PartialEq)]
pub enum DesiredChildren {
    /// They are left as they are.
    Leave,
    /// They are known to be as the answer wants them; nothing was checked.
    InSync,
    /// These shall exist, and no others.
    These(Vec<DesiredChild>),
}

impl DesiredChildren {
    /// Takes the children that were checked; none where there are none to compare. They count as in sync from then on.
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

    /// The children that were checked.
    pub fn checked(&self) -> &[DesiredChild] {
        match self {
            Self::Leave | Self::InSync => &[],
            Self::These(children) => children,
        }
    }
}

/// A child as it shall be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    /// Its kind.
    pub kind: KindRef,
    /// Its namespace, empty for a cluster-scoped kind, and its name.
    pub name: ObjectRef,
    /// The complete body to apply, with owner reference, labels and digest.
    pub body: Value,
    /// Digest of the body, also in its annotation [`crate::labels::APPLIED`].
    pub digest: String,
    /// What to do when a field cannot change.
    pub on_immutable: ImmutablePolicy,
    /// JSON pointers of the fields that are left to others; they are not in the body.
    pub unmanaged: Vec<String>,
}
