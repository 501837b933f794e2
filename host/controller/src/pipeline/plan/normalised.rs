//! Remembers differences that an apply did not remove. The API server normalises these values (it turns a quantity of `1000m` into
//! `1` and drops an empty string), so they are no drift. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash},
};

use pilothouse_engine::Fingerprint;

use super::diff::Difference;
use crate::{
    object::Object,
    pipeline::{check::DesiredChild, observe::LiveChild},
};

/// The normalised differences of one object's children by UID: of each child the last ones.
#[derive(Clone, Debug, Default)]
pub struct Normalised(BTreeMap<Box<str>, Fingerprint>);

impl Normalised {
    /// Remembers that an apply of `child` did not remove `differences`.
    pub fn remember(&mut self, child: &DesiredChild, live: &Object, differences: &[Difference]) {
        self.0.insert(live.uid.clone(), fingerprint(child, differences));
    }

    /// Forgets the children that are gone.
    pub fn keep_only(&mut self, children: &[LiveChild]) {
        if self.0.is_empty() {
            return;
        }
        let uids: BTreeSet<_> = children.iter().map(|child| &*child.object.uid).collect();
        self.0.retain(|uid, _| uids.contains(&**uid));
    }

    /// Whether an apply is known not to remove exactly these differences. One more, and all of them count as drift.
    pub(super) fn holds(&self, child: &DesiredChild, live: &Object, differences: &[Difference]) -> bool {
        self.0.get(&live.uid).is_some_and(|known| *known == fingerprint(child, differences))
    }
}

fn fingerprint(child: &DesiredChild, differences: &[Difference]) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    // The digest covers the desired values.
    child.digest.hash(&mut hasher);
    for difference in differences {
        (&difference.path, difference.live.to_string()).hash(&mut hasher);
    }
    Fingerprint::of_hashed(&hasher)
}
