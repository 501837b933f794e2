//! Which objects belonged to a canary when it was looked at last, and so which have come to it since: by a label, in the midst of a step. A host
//! that starts takes all that it finds to have been there. Decides nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{api::RolloutStatus, object::Object};

/// The objects of canaries, by the names of their `Plugin`s.
#[derive(Default)]
pub struct Members(BTreeMap<String, Known>);

/// The objects in one step.
struct Known {
    digest: String,
    step: u32,
    uids: BTreeSet<Box<str>>,
}

impl Known {
    fn of(rollout: &RolloutStatus, members: &[Arc<Object>]) -> Self {
        let uids = members.iter().map(|object| object.uid.clone()).collect();
        Self { digest: rollout.digest.clone(), step: rollout.step, uids }
    }
}

impl Members {
    /// A step begins with these objects.
    pub fn begin(&mut self, plugin: &str, rollout: &RolloutStatus, members: &[Arc<Object>]) {
        self.0.insert(plugin.to_owned(), Known::of(rollout, members));
    }

    /// The objects that have come to a canary since it was looked at last in this step. `members`: all that it has now.
    pub fn joined(&mut self, plugin: &str, rollout: &RolloutStatus, members: &[Arc<Object>]) -> Vec<Arc<Object>> {
        let Some(before) = self.0.insert(plugin.to_owned(), Known::of(rollout, members)) else { return Vec::new() };
        if (&before.digest, before.step) != (&rollout.digest, rollout.step) {
            return Vec::new();
        }
        members.iter().filter(|object| !before.uids.contains(&object.uid)).cloned().collect()
    }

    /// Forgets a `Plugin` that is gone.
    pub fn forget(&mut self, plugin: &str) {
        self.0.remove(plugin);
    }
}
