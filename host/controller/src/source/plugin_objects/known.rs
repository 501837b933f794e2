//! What was found when a `Plugin` was looked at last, and when it is worth another look. Pure: the time is given.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kube::ResourceExt;

use super::{refused::RefusedVersion, status::Load};
use crate::{
    api::{PlanStatus, Plugin, RolloutStatus, StableSource, VerificationSpec},
    object::ObjectRef,
};

/// How long a first failure that may pass is left alone. Each further one in a row is left alone for twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(4);

/// The longest time for which a failure that may pass is left alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// What was found when a plugin was looked at last.
#[derive(Clone, Debug)]
pub struct Known {
    /// The `Plugin` as it was then.
    pub plugin: Arc<Plugin>,
    /// What became of its source.
    pub load: Load,
    /// The digest of the manifest that its tag stood for at that time; none if it has no tag, or if that is not known.
    pub tag: Option<String>,
    /// How far a version is that does not answer all objects yet, or that was taken back.
    pub rollout: Option<RolloutStatus>,
    /// What a version would do that somebody has to approve, or has approved.
    pub plan: Option<PlanStatus>,
    /// Where the component came from that its source gave last.
    pub origin: Option<StableSource>,
    /// What its pins meant at that time.
    pub pins: BTreeMap<ObjectRef, Arc<str>>,
    /// The versions that are needed for pins and do not take what is said now.
    pub refused: Vec<RefusedVersion>,
    /// What had to be verified of the component that is at work.
    pub verification: Option<VerificationSpec>,
    looked_at: Instant,
    /// How many times in a row it failed for a reason that may pass.
    failures: u32,
}

/// What is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The whole source.
    Source,
    /// Whether its tag stands for something else by now.
    Tag,
}

impl Known {
    /// What was found of a `Plugin` at a time, after what was found before.
    pub fn new(plugin: Arc<Plugin>, load: Load, now: Instant, before: Option<&Self>) -> Self {
        let verification = before.and_then(|before| before.verification.clone());
        let rollout = before.and_then(|before| before.rollout.clone());
        let plan = before.and_then(|before| before.plan.clone());
        let origin = before.and_then(|before| before.origin.clone());
        let (pins, refused) = (BTreeMap::new(), before.map(|before| before.refused.clone()).unwrap_or_default());
        let known = Self {
            plugin,
            load,
            tag: None,
            rollout,
            plan,
            origin,
            pins,
            refused: Vec::new(),
            verification,
            looked_at: now,
            failures: 0,
        };
        known.refusing(refused, before)
    }

    /// The same with these versions that do not take what is said now.
    pub fn refusing(self, refused: Vec<RefusedVersion>, before: Option<&Self>) -> Self {
        let mut known = Self { refused, ..self };
        known.failures = match known.may_pass() {
            true => before.map_or(0, |before| before.failures).saturating_add(1),
            false => 0,
        };
        known
    }

    fn may_pass(&self) -> bool {
        self.load.may_pass() || self.refused.iter().any(|refused| refused.is_passing)
    }

    /// The latest generation of a `Plugin` of which this is true: its own if it asks for what it asked for then, and else that of then, for
    /// the later one is still being looked at.
    pub fn observed_generation(&self, plugin: &Plugin) -> i64 {
        let observed = if asks_for_the_same(&self.plugin, plugin) { plugin } else { &self.plugin };
        observed.metadata.generation.unwrap_or_default()
    }

    /// It is asked for something else, or its source has changed: what failed before says nothing any more.
    pub fn asked_anew(&mut self) {
        self.failures = 0;
    }

    /// The same, found again.
    pub fn found_again(&mut self, now: Instant) {
        self.looked_at = now;
    }

    /// What is worth a look by now, if anything is. `period`: how often the tag is looked up; none if it has none.
    pub fn is_due(&self, now: Instant, period: Option<Duration>) -> Option<Due> {
        let since = now.saturating_duration_since(self.looked_at);
        if self.may_pass() {
            return (since >= self.pause()).then_some(Due::Source);
        }
        let due = if self.tag.is_some() { Due::Tag } else { Due::Source };
        period.filter(|period| since >= *period).map(|_| due)
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(10);
        (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE)
    }
}

/// Whether two states of a `Plugin` ask for the same.
pub fn asks_for_the_same(one: &Plugin, other: &Plugin) -> bool {
    one.spec == other.spec && one.uid() == other.uid()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::status::Failure, *};

    type Checked = Result<(), serde_json::Error>;

    fn plugin(generation: i64, spec: &Value) -> Result<Arc<Plugin>, serde_json::Error> {
        let metadata = json!({"name": "web", "generation": generation});
        let object =
            json!({"apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": spec});
        serde_json::from_value(object).map(Arc::new)
    }

    #[test]
    fn a_generation_is_observed_once_what_it_asks_for_has_been_looked_at() -> Checked {
        let first = json!({"source": {"configMap": {"name": "web"}}});
        let known = Known::new(plugin(1, &first)?, Load::Loaded, Instant::now(), None);
        let same = json!({"source": {"configMap": {"name": "web"}}, "suspended": false});
        let other = json!({"source": {"configMap": {"name": "next"}}});
        for (spec, expected) in [(&first, 2), (&same, 2), (&other, 1)] {
            assert_eq!(known.observed_generation(&*plugin(2, spec)?), expected, "{spec}");
        }
        Ok(())
    }

    fn failed(is_passing: bool) -> Load {
        Load::Failed(Failure { reason: "Reason", message: String::new(), is_passing })
    }

    #[test]
    fn what_may_pass_is_left_alone_for_longer_and_longer() -> Checked {
        let (now, plugin) = (Instant::now(), plugin(1, &json!({"source": {}}))?);
        let known = |load, before: Option<&Known>| Known::new(plugin.clone(), load, now, before);
        let mut latest = known(failed(true), None);
        for seconds in [4, 8, 16, 32, 64, 64] {
            let after = |seconds| latest.is_due(now + Duration::from_secs(seconds), None);
            assert_eq!((after(seconds - 1), after(seconds)), (None, Some(Due::Source)), "{seconds}");
            latest = known(failed(true), Some(&latest));
        }
        let passed = known(Load::Loaded, Some(&latest));
        let again = known(failed(true), Some(&passed));
        assert_eq!(again.is_due(now + FIRST_PAUSE, None), Some(Due::Source));
        Ok(())
    }

    #[test]
    fn a_tag_is_looked_up_whatever_became_of_what_it_stood_for() -> Checked {
        let (now, period, plugin) = (Instant::now(), Duration::from_secs(60), plugin(1, &json!({"source": {}}))?);
        for load in [Load::Loaded, Load::Suspended, failed(false)] {
            for (tag, expected) in [(Some("sha256:a".to_owned()), Due::Tag), (None, Due::Source)] {
                let known = Known { tag, ..Known::new(plugin.clone(), load.clone(), now, None) };
                assert_eq!(known.is_due(now + period, Some(period)), Some(expected), "{load:?}");
                assert_eq!(known.is_due(now + period / 2, Some(period)), None, "{load:?}");
                assert_eq!(known.is_due(now + period, None), None, "{load:?}");
            }
        }
        Ok(())
    }
}
