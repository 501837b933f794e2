//! When a canary is worth a judgement: at the moments at which anything has changed that its judgement depends on (`trial.rs` judges). A
//! glance costs next to nothing while nothing changes, and none is taken while no canary goes on. Decides nothing about a version.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::{Interval, MissedTickBehavior};

use super::{
    PluginObjects, rollout,
    trial::{is_installed, progress_of},
};
use crate::{
    api::{Plugin, RolloutPhase, RolloutStatus},
    source::loader::SourceId,
};

/// How often it is looked whether anything has changed.
const PERIOD: Duration = Duration::from_millis(250);

/// What the judgement of a canary depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The version of the cache with its objects.
    objects: u64,
    /// Whether the new version has reconciled all of its own; none before the first step.
    all_reconciled: Option<bool>,
    /// Whether the time of its step is over.
    is_over: bool,
}

/// The moments of glances.
pub fn moments() -> Interval {
    let mut moments = tokio::time::interval(PERIOD);
    moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    moments
}

impl PluginObjects {
    /// Whether there is a canary that this host may judge.
    pub(super) fn has_canaries(&self) -> bool {
        let goes_on = |rollout: &RolloutStatus| rollout.phase == RolloutPhase::Progressing;
        self.looker.loader.host().may_write()
            && (!self.to_try.is_empty() || self.known.values().any(|known| known.rollout.as_ref().is_some_and(goes_on)))
    }

    /// Judges the canaries of which anything has changed, and tells at once what has become of them.
    pub(super) async fn glance(&mut self) {
        let plugins: Vec<_> = self.plugins.values().cloned().collect();
        for plugin in plugins {
            let name = plugin.name_any();
            let seen = self.seen(&plugin);
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
    fn seen(&self, plugin: &Plugin) -> Option<Glance> {
        let name = plugin.name_any();
        let canary = rollout::canary(&plugin.spec)?;
        let loaded = self.looker.loader.versions(&SourceId::Object(name.clone()))?;
        let active = self.looker.loader.host().active_versions(loaded.stable.name())?;
        if !is_installed(&active, &loaded) {
            return None;
        }
        let rollout = self.known.get(&name)?.rollout.as_ref().filter(|it| it.phase == RolloutPhase::Progressing);
        if rollout.is_none() && !self.to_try.contains_key(&name) {
            return None;
        }
        let tried = rollout.and_then(|rollout| active.with_digest(rollout::digest_of(rollout)));
        Some(Glance {
            objects: active.stable().objects.store().version(),
            all_reconciled: tried.map(|tried| tried.new_version.has_seen_all()),
            is_over: rollout.is_some_and(|rollout| rollout::is_step_over(canary, rollout, Timestamp::now())),
        })
    }
}
