//! Remembers differences that an apply did not remove. The API server normalises these values (it turns a quantity of `1000m` into
//! `1` and drops an empty string), so they are no drift. Pure.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash},
};

use pilothouse_engine::Fingerprint;

use super::diff::Difference;
use crate::{object::Object, pipeline::check::DesiredChild};

/// The normalised differences of one object's children.
#[derive(Clone, Debug, Default)]
pub struct Normalised(BTreeSet<Fingerprint>);

impl Normalised {
    /// Remembers that an apply of `child` did not remove `differences`.
    pub fn remember(&mut self, child: &DesiredChild, live: &Object, differences: &[Difference]) {
        self.0.insert(fingerprint(child, live, differences));
    }

    /// Whether an apply is known not to remove exactly these differences. One more, and all of them count as drift.
    pub(super) fn holds(&self, child: &DesiredChild, live: &Object, differences: &[Difference]) -> bool {
        !self.0.is_empty() && self.0.contains(&fingerprint(child, live, differences))
    }
}

fn fingerprint(child: &DesiredChild, live: &Object, differences: &[Difference]) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    (&live.uid, &child.digest).hash(&mut hasher);
    for difference in differences {
        (&difference.path, difference.live.to_string()).hash(&mut hasher);
    }
    Fingerprint::of_hashed(&hasher)
}
