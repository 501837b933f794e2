//! Differences that an apply did not remove: the API server normalises these values (a quantity of `1000m` comes back as `1`, an
//! empty text is left out), so they are no drift. Pure.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash},
};

use pilothouse_engine::Fingerprint;

use super::diff::Difference;
use crate::{object::Object, pipeline::check::DesiredChild};

/// The differences of one object's children that are known to stay.
#[derive(Clone, Debug, Default)]
pub struct Normalised(BTreeSet<Fingerprint>);

impl Normalised {
    /// Remembers that applying `child` left `differences` as they are.
    pub fn remember(&mut self, child: &DesiredChild, live: &Object, differences: &[Difference]) {
        self.0.insert(fingerprint(child, live, differences));
    }

    /// Whether these are known to stay: all of them, and no others.
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
