//! How long the steps of canaries have lasted. What this host has seen begin it measures by a clock that nobody sets, whatever happens to the
//! time of day meanwhile; of a step that began under another host it knows from the status since when. Decides nothing.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::api::RolloutStatus;

/// The steps that canaries are in, by the names of their `Plugin`s.
#[derive(Default)]
pub struct StepTimes(BTreeMap<String, Step>);

/// One step, as this host has seen it.
struct Step {
    digest: String,
    number: u32,
    since: String,
    first_seen: Instant,
    /// How long it had lasted by then.
    before: Duration,
}

impl Step {
    fn seen(rollout: &RolloutStatus, before: Duration) -> Self {
        let RolloutStatus { digest, step, since, .. } = rollout;
        Self { digest: digest.clone(), number: *step, since: since.clone(), first_seen: Instant::now(), before }
    }

    fn is_of(&self, rollout: &RolloutStatus) -> bool {
        (&self.digest, self.number, &self.since) == (&rollout.digest, rollout.step, &rollout.since)
    }
}

impl StepTimes {
    /// The step of a canary begins.
    pub fn begin(&mut self, plugin: &str, rollout: &RolloutStatus) {
        self.0.insert(plugin.to_owned(), Step::seen(rollout, Duration::ZERO));
    }

    /// How long the step of a canary has lasted at this time of day.
    pub fn lasted(&mut self, plugin: &str, rollout: &RolloutStatus, now: Timestamp) -> Duration {
        if let Some(step) = self.0.get(plugin).filter(|step| step.is_of(rollout)) {
            return step.before.saturating_add(step.first_seen.elapsed());
        }
        let since = rollout.since.parse::<Timestamp>().unwrap_or(now);
        let before = now.duration_since(since).try_into().unwrap_or_default();
        self.0.insert(plugin.to_owned(), Step::seen(rollout, before));
        before
    }

    /// Forgets a `Plugin` that is gone.
    pub fn forget(&mut self, plugin: &str) {
        self.0.remove(plugin);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::api::RolloutPhase;

    fn step(number: u32, since: &str) -> RolloutStatus {
        RolloutStatus {
            phase: RolloutPhase::Progressing,
            digest: "sha256:new".to_owned(),
            version: "2".to_owned(),
            step: number,
            steps: 2,
            since: since.to_owned(),
            config_digest: None,
            created_until: since.to_owned(),
            up_to: None,
            selectors: None,
            objects: 1,
            failing: 0,
            failing_before: 0,
            not_ready_before: 0,
            message: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_lasts_as_long_as_it_lasts_whatever_the_time_of_day() {
        let (mut times, begin) = (StepTimes::default(), Timestamp::UNIX_EPOCH);
        let (first, hour) = (step(1, "1970-01-01T00:00:00Z"), SignedDuration::from_hours(1));
        times.begin("web", &first);
        tokio::time::advance(Duration::from_secs(7)).await;
        for now in [begin + hour, begin - hour, begin] {
            assert_eq!(times.lasted("web", &first, now), Duration::from_secs(7), "at {now}");
        }
        // It is another step, and this host has seen it begin, too.
        let second = step(2, "1970-01-01T01:00:07Z");
        times.begin("web", &second);
        assert_eq!(times.lasted("web", &second, begin), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_starts_goes_by_the_status() {
        let first = step(1, "1970-01-01T00:00:00Z");
        for (seconds, expected) in [(20, 20), (-20, 0)] {
            let mut times = StepTimes::default();
            let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
            assert_eq!(times.lasted("web", &first, now), Duration::from_secs(expected), "at {now}");
            tokio::time::advance(Duration::from_secs(3)).await;
            assert_eq!(times.lasted("web", &first, now), Duration::from_secs(expected + 3), "after {now}");
        }
    }
}
