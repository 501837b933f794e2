//! Judges canaries as soon as anything has changed that their judgement depends on, and tells at once what has become of them. Decides nothing
//! about a version itself: `trial.rs` does.

use kube::ResourceExt;

use super::{PluginObjects, glance::Glance, known::Known, rollout, trial::progress_of};
use crate::api::{Plugin, RolloutStatus};

impl PluginObjects {
    /// Whether there is a canary that this host may judge.
    pub(super) fn has_canaries(&self) -> bool {
        let goes_on = |known: &Known| known.rollout.as_ref().is_some_and(RolloutStatus::goes_on);
        let tried = self.known.iter().filter(|(_, known)| goes_on(known)).map(|(name, _)| name);
        self.to_try.keys().chain(tried).any(|name| self.may_write(name))
    }

    /// Judges the canaries of which anything has changed, and tells at once what has become of them.
    pub(super) async fn glance(&mut self) {
        let plugins: Vec<_> = self.plugins.values().cloned().collect();
        for plugin in plugins {
            let name = plugin.name_any();
            let seen = self.seen(&plugin);
            // Judging counts all objects of the kind. With thousands of them, that is too much for each change of any object.
            let is_news = seen.is_some() && self.glances.get(&name) != seen.as_ref();
            match seen {
                Some(seen) => self.glances.insert(name.clone(), seen),
                None => self.glances.remove(&name),
            };
            if is_news {
                let before = self.known.get(&name).and_then(progress_of);
                self.advance(&name).await;
                if self.known.get(&name).and_then(progress_of) != before {
                    self.report(&name).await;
                }
            }
        }
    }

    /// What there is to be seen of a canary; none if there is none, or if its versions get ready yet.
    fn seen(&mut self, plugin: &Plugin) -> Option<Glance> {
        let name = plugin.name_any();
        let canary = rollout::canary(&plugin.spec)?;
        let (loaded, active) = self.at_work_as_loaded(&name)?;
        let rollout = self.known.get(&name)?.rollout.clone().filter(RolloutStatus::goes_on);
        if rollout.is_none() && !self.to_try.contains_key(&name) {
            return None;
        }
        let tried = rollout.as_ref().and_then(|rollout| active.with_digest(rollout::digest_of(rollout)));
        let is_watched_otherwise = rollout.as_ref().is_some_and(|rollout| {
            let loaded = loaded.with_digest(rollout::digest_of(rollout));
            loaded.is_some_and(|loaded| rollout::is_watched_otherwise(rollout, loaded.config_digest()))
        });
        let now = self.now();
        let is_over = rollout.is_some_and(|rollout| {
            rollout::is_step_over(canary, &rollout, self.step_times.lasted(&name, &rollout, now))
        });
        Some(Glance {
            objects: active.stable().objects.store().version(),
            all_reconciled: tried.map(|tried| tried.new_version.has_seen_all()),
            is_watched_otherwise,
            is_over,
        })
    }
}
