//! What must hold in every history. `writes.rs` judges each write of a host when it happens, `at_rest.rs` what is there when nothing
//! changes any more, `fresh.rs` compares it with what a fresh object leads to, `ready.rs` looks at every moment. Nothing here changes
//! anything.

mod app;
pub mod at_rest;
pub mod fresh;
pub mod ready;
mod reconciled;
pub mod snapshot;
mod subset;
pub mod writes;

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Property {
    /// A host writes and deletes only what belongs to its objects.
    OnlyOwnObjects,
    /// A host deletes a child only if its plugin's latest answer does not hold it.
    OnlyUnwantedDeleted,
    /// A host deletes children only after it has written those that there shall be.
    DeletesLast,
    /// A child is written only once those that it waits for are as they shall be, and they go after it.
    InOrder,
    /// What is left behind on purpose when its owner is deleted is not collected later.
    OrphansStay,
    /// A host writes only while the Lease names it; where hosts share the work, that of the plugin.
    OneWriter,
    /// A host changes nothing of an object but its status and finalizers.
    ObjectsAreTheirUsers,
    /// The times that a host writes are those of the API server, whatever the clock of its machine says.
    TimesAreTheServers,
    /// `Ready` is not true while a child that it speaks of is wrong for longer than the events take.
    ReadyIsTrue,
    /// An object that needs work is worked on, whatever went wrong before.
    ComesToRest,
    /// At rest nothing is written.
    QuietAtRest,
    /// A host that starts at rest writes nothing.
    QuietAfterRestart,
    /// At rest the children are those of a fresh object with the same spec.
    LikeFresh,
    /// What is deleted takes its children along, and nothing else.
    LeavesNothing,
    /// Nothing is remembered of what is gone.
    ForgetsWhatIsGone,
}

/// A property did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.what)
    }
}
