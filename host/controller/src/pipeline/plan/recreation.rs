//! Children that must be deleted and created again, because an immutable field would change. An apply finds them, and the next plan
//! deletes them. Values only.

use std::collections::BTreeSet;

use crate::{object::Object, pipeline::check::DesiredChild};

/// The children of one object to recreate.
#[derive(Clone, Debug, Default)]
pub struct Recreations(BTreeSet<Recreation>);

/// A live child and the desired body that it cannot be updated to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recreation {
    uid: Box<str>,
    digest: String,
}

impl Recreation {
    /// The recreation of `live` as `child`.
    pub fn of(child: &DesiredChild, live: &Object) -> Self {
        Self { uid: live.uid.clone(), digest: child.digest.clone() }
    }
}

impl Recreations {
    /// A set of recreations.
    pub fn of(recreations: impl IntoIterator<Item = Recreation>) -> Self {
        Self(recreations.into_iter().collect())
    }

    /// Whether a live child must be deleted before the desired one can be created.
    pub fn contains(&self, child: &DesiredChild, live: &Object) -> bool {
        !self.0.is_empty() && self.0.contains(&Recreation::of(child, live))
    }

    /// Whether there is nothing to recreate.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
