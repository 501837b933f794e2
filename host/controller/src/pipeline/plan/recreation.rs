//! Children that must be deleted and created anew, for the API server refused a change of a field that cannot change. Found out
//! by an apply, carried out by the next plan. Values only.

use std::collections::BTreeSet;

use crate::{object::Object, pipeline::check::DesiredChild};

/// The children of one object that are to be recreated.
#[derive(Clone, Debug, Default)]
pub struct Recreations(BTreeSet<Recreation>);

/// One state of a child that cannot become what is wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recreation {
    uid: Box<str>,
    digest: String,
}

impl Recreation {
    /// The live child that cannot become what is desired.
    pub fn of(child: &DesiredChild, live: &Object) -> Self {
        Self { uid: live.uid.clone(), digest: child.digest.clone() }
    }
}

impl Recreations {
    /// These children, and no others.
    pub fn of(recreations: impl IntoIterator<Item = Recreation>) -> Self {
        Self(recreations.into_iter().collect())
    }

    /// Whether a live child has to go before what is desired can be created.
    pub fn contains(&self, child: &DesiredChild, live: &Object) -> bool {
        !self.0.is_empty() && self.0.contains(&Recreation::of(child, live))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
