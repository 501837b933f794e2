//! How another version of a plugin takes over where its `Plugin` wants a canary: what is to be done with a component, which objects it gets
//! first, and when it goes on or goes back. Pure: objects, counts and the time are given, and all that has to outlive a host is in the
//! status.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use pilothouse_engine::Selector;

use super::{candidate::Candidate, config_digest, digest_text, pins};
use crate::{
    api::{
        LabelSelector, ObjectCounts, PlanPolicy, Plugin, PluginSpec, RolloutPhase, RolloutSpec, RolloutStatus,
        RolloutStep, RolloutStrategy, Source,
    },
    clock::api_time,
    object::Object,
    plugin::{Division, Share, Trial, created, is_created_until, place},
};

/// An object that was created within this time may not be the last one of its second yet.
const UNSETTLED: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// What is to be done with the component that a source has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// It answers all objects.
    TakeOver,
    /// It answers none: somebody has to approve it first.
    Hold,
    /// It is to be tried on some objects, which is not begun yet.
    Begin,
    /// It answers some objects.
    GoOn(RolloutStatus),
    /// It was taken back.
    StayAway(RolloutStatus),
}

/// What is to be done with the component of this digest. The first version of all takes over at once, unless it has to be approved.
pub fn course(plugin: &Plugin, digest: &str) -> Course {
    let (spec, stable) = (&plugin.spec, stable_of(plugin));
    if stable == Some(digest) {
        return Course::TakeOver;
    }
    let is_it = |rollout: &&RolloutStatus| digest_of(rollout) == digest;
    let going_on = plugin.status.as_ref().and_then(|status| status.rollout.as_ref()).filter(is_it);
    let is_tried = canary(spec).is_some() && stable.is_some();
    match going_on.filter(|_| is_tried) {
        Some(rollout) if rollout.phase == RolloutPhase::RolledBack => Course::StayAway(rollout.clone()),
        _ if !may_answer(spec, digest) => Course::Hold,
        Some(rollout) => Course::GoOn(in_present_steps(rollout, canary(spec))),
        None if is_tried => Course::Begin,
        None => Course::TakeOver,
    }
}

/// Whether somebody has to approve a new version.
pub fn is_gated(spec: &PluginSpec) -> bool {
    spec.rollout.as_ref().is_some_and(|rollout| rollout.plan == PlanPolicy::Require)
}

/// Whether a version may answer objects as far as approvals go. One that names a configuration is of no other one.
pub fn may_answer(spec: &PluginSpec, digest: &str) -> bool {
    !is_gated(spec) || is_approved(spec, digest)
}

fn is_approved(spec: &PluginSpec, digest: &str) -> bool {
    is_named(spec, digest) && !is_approved_otherwise(spec)
}

/// Whether a version is approved, and with another configuration than the present one.
pub fn is_held_for_its_config(spec: &PluginSpec, digest: &str) -> bool {
    is_named(spec, digest) && is_approved_otherwise(spec)
}

fn is_named(spec: &PluginSpec, digest: &str) -> bool {
    let approved = spec.rollout.as_ref().and_then(|rollout| rollout.approved.as_deref());
    approved.and_then(digest_text::digits) == Some(digest)
}

fn is_approved_otherwise(spec: &PluginSpec) -> bool {
    let approved = spec.rollout.as_ref().and_then(|rollout| rollout.approved_config.as_ref());
    approved.is_some_and(|approved| *approved != config_digest::of_spec(spec))
}

/// Whether the version that works has to be there beside a new one.
pub fn needs_stable(spec: &PluginSpec) -> bool {
    canary(spec).is_some() || is_gated(spec)
}

/// The digest of the version that works, if that has to be there beside a new one.
pub fn needed_stable(plugin: &Plugin) -> Option<&str> {
    stable_of(plugin).filter(|_| needs_stable(&plugin.spec))
}

/// The digests of the versions that have to be there beside the one of this digest: the one that works, and those to which objects are pinned.
pub fn needed_beside<'p>(plugin: &'p Plugin, digest: &str) -> BTreeSet<&'p str> {
    pins::digests(plugin).chain(needed_stable(plugin)).filter(|needed| *needed != digest).collect()
}

/// The digest of the version that a canary goes back to; none before the first version.
pub fn stable_of(plugin: &Plugin) -> Option<&str> {
    digest_text::digits(plugin.status.as_ref()?.stable_digest.as_deref()?)
}

/// The digest of the version that is being tried, by the status.
pub fn tried_of(plugin: &Plugin) -> Option<&str> {
    plugin.status.as_ref()?.rollout.as_ref().filter(|rollout| rollout.goes_on()).map(digest_of)
}

/// Where the version of this digest came from that a canary goes back to, if the status says that.
pub fn stable_source<'p>(plugin: &'p Plugin, digest: &str) -> Option<&'p Source> {
    let stable = plugin.status.as_ref()?.stable_source.as_ref()?;
    (digest_text::digits(&stable.digest) == Some(digest)).then_some(&stable.source)
}

/// The canary that a `Plugin` wants.
pub fn canary(spec: &PluginSpec) -> Option<&RolloutSpec> {
    spec.rollout.as_ref().filter(|rollout| rollout.strategy == RolloutStrategy::Canary)
}

/// The digest of a version that does not answer all objects.
pub fn digest_of(rollout: &RolloutStatus) -> &str {
    digest_text::digits(&rollout.digest).unwrap_or_default()
}

/// Which version answers which object; none if one answers all.
pub fn division(plugin: &Plugin, stable: &str, rollout: Option<&RolloutStatus>) -> Option<Arc<Division>> {
    let going_on = rollout.filter(|rollout| rollout.goes_on());
    let trial = going_on
        .zip(canary(&plugin.spec))
        .map(|(rollout, canary)| Trial { digest: digest_of(rollout).into(), share: share(rollout, canary) });
    let division = Division { stable: stable.into(), trial, pins: pins::targets(plugin) };
    (division.trial.is_some() || !division.pins.is_empty()).then(|| Arc::new(division))
}

/// Which objects a version would answer if no other one did but those of the pins; none for all. Its digest is what its number means that
/// nobody knows yet: the host knows it as soon as the version is there.
pub fn division_by_pins(plugin: &Plugin, version: &Candidate<'_>) -> Option<Arc<Division>> {
    let pins = pins::targets_with(plugin, version);
    (!pins.is_empty()).then(|| Arc::new(Division { stable: version.digest.into(), trial: None, pins }))
}

fn share(rollout: &RolloutStatus, canary: &RolloutSpec) -> Share {
    Share {
        created_until: rollout.created_until.clone(),
        up_to: place_of(rollout.up_to.as_ref()),
        selectors: begun_waves(rollout, canary).iter().map(Selector::from).collect(),
    }
}

fn place_of(up_to: Option<&String>) -> Option<u64> {
    up_to.and_then(|up_to| u64::from_str_radix(up_to, 16).ok())
}

fn place_text(place: u64) -> String {
    format!("{place:016x}")
}

/// Whether an object belongs to a canary.
pub fn belongs(rollout: &RolloutStatus, canary: &RolloutSpec, object: &Object) -> bool {
    share(rollout, canary).has(digest_of(rollout), object)
}

/// The selectors of the steps that have begun. A host before this one did not write them down.
fn begun_waves(rollout: &RolloutStatus, canary: &RolloutSpec) -> Vec<LabelSelector> {
    let reached = usize::try_from(rollout.step).unwrap_or(usize::MAX);
    let of_spec = || canary.steps.iter().take(reached).filter_map(|step| step.selector.clone()).collect();
    rollout.selectors.clone().unwrap_or_else(of_spec)
}

/// The first step of a canary; none if there is nothing to try it on.
pub fn begun(
    canary: &RolloutSpec,
    candidate: &Candidate<'_>,
    objects: &[Arc<Object>],
    now: Timestamp,
) -> Option<RolloutStatus> {
    let newest = objects.iter().map(|object| created(object)).max()?;
    let rollout = RolloutStatus {
        phase: RolloutPhase::Progressing,
        digest: digest_text::text(candidate.digest),
        version: candidate.version.to_owned(),
        step: 0,
        steps: steps(canary),
        since: api_time(now),
        config_digest: None,
        // Another object may yet be created in a second that is not over.
        created_until: newest.min(api_time(now.saturating_sub(UNSETTLED).unwrap_or(now))),
        up_to: None,
        selectors: Some(Vec::new()),
        objects: 0,
        failing: 0,
        failing_before: 0,
        not_ready_before: 0,
        message: None,
    };
    Some(widened(canary, &rollout, objects, now))
}

/// The next step.
pub fn widened(
    canary: &RolloutSpec,
    rollout: &RolloutStatus,
    objects: &[Arc<Object>],
    now: Timestamp,
) -> RolloutStatus {
    let step = rollout.step.saturating_add(1);
    let mut next = RolloutStatus { step, steps: steps(canary), since: api_time(now), message: None, ..rollout.clone() };
    let digest = digest_of(rollout);
    let begins = step_of(canary, step);
    let mut waves = begun_waves(rollout, canary);
    waves.extend(begins.and_then(|step| step.selector.clone()));
    next.selectors = Some(waves);
    let number = begins.and_then(|step| number(step, objects.len()));
    if let Some(number) = number {
        let eligible = objects.iter().filter(|object| is_created_until(object, &rollout.created_until));
        let mut places: Vec<_> = eligible.map(|object| place(digest, object)).collect();
        places.sort_unstable();
        let last = places.get(number.min(places.len()).saturating_sub(1));
        // A step never takes back what an earlier one gave.
        next.up_to = last.copied().max(place_of(rollout.up_to.as_ref())).map(place_text);
    }
    next
}

/// The number of objects that a step asks for, of so many; none if it selects them by their labels.
fn number(step: &RolloutStep, of: usize) -> Option<usize> {
    let wanted = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    match (step.percent, step.objects) {
        (Some(percent), _) => Some(of.saturating_mul(wanted(percent)).div_ceil(100)),
        (None, objects) => objects.map(wanted),
    }
}

/// A canary that goes on after its steps may have been changed.
fn in_present_steps(rollout: &RolloutStatus, canary: Option<&RolloutSpec>) -> RolloutStatus {
    // Where steps were taken away, the one that it is in is the last one.
    let steps = canary.map_or(rollout.steps, steps).max(rollout.step);
    RolloutStatus { steps, ..rollout.clone() }
}

fn steps(canary: &RolloutSpec) -> u32 {
    u32::try_from(canary.steps.len()).unwrap_or(u32::MAX)
}

/// The step of this number, from 1 on; the last one if steps were taken away.
fn step_of(canary: &RolloutSpec, number: u32) -> Option<&RolloutStep> {
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    canary.steps.get(index).or(canary.steps.last())
}

/// Whether the time of the step is over in which a version is, and which has lasted for so long.
pub fn is_step_over(canary: &RolloutSpec, rollout: &RolloutStatus, lasted: Duration) -> bool {
    let seconds = step_of(canary, rollout.step).map_or(0, |step| step.seconds.into());
    lasted >= Duration::from_secs(seconds)
}

/// How the objects of a canary are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The counts of its objects.
    pub counts: ObjectCounts,
    /// How many of them are failing since the step began: as many others may have recovered.
    pub newly_failing: usize,
    /// Whether the new version has reconciled all of them.
    pub all_reconciled: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on as it is.
    Stay,
    /// It has no object that says anything about it.
    NoObject,
    /// Its step begins anew with the objects that have come to it: it had none.
    Watch,
    /// More objects come to it.
    Widen,
    /// It answers all objects from now on.
    TakeOver,
    /// The version that worked gets its objects back: so many have failed.
    GoBack(usize),
}

/// What follows for a canary whose objects are like this, and whose step has lasted for so long.
pub fn next(canary: &RolloutSpec, rollout: &RolloutStatus, seen: Seen, lasted: Duration) -> Next {
    let ObjectCounts { total, ready, failing } = seen.counts;
    // Neither time nor a count says anything about a version that was tried on nothing.
    if total == 0 {
        return Next::NoObject;
    }
    if rollout.objects == 0 {
        return Next::Watch;
    }
    let is_too_many = |failed: usize| {
        let allowed = usize::try_from(canary.max_failed_percent.unwrap_or_default()).unwrap_or_default();
        failed.saturating_mul(100) > total.saturating_mul(allowed)
    };
    let failed = failing.saturating_sub(rollout.failing_before).max(seen.newly_failing);
    if is_too_many(failed) {
        return Next::GoBack(failed);
    }
    if !is_step_over(canary, rollout, lasted) || !seen.all_reconciled {
        return Next::Stay;
    }
    // What was ready before and has not become ready again has failed, too.
    let failed = total.saturating_sub(ready).saturating_sub(rollout.not_ready_before);
    match rollout.step < steps(canary) {
        _ if is_too_many(failed) => Next::GoBack(failed),
        true => Next::Widen,
        false => Next::TakeOver,
    }
}

/// Whether a canary that had no object is another one if it begins anew: it would have some, or its steps select others. As long as it is
/// not, it waits.
pub fn begins_otherwise(
    plugin: &Plugin,
    before: &RolloutStatus,
    anew: &RolloutStatus,
    objects: &[Arc<Object>],
) -> bool {
    let digest = digest_of(anew);
    let division = division(plugin, stable_of(plugin).unwrap_or_default(), Some(anew));
    let is_tried = |object: &Arc<Object>| division.as_ref().is_some_and(|it| it.digest_for(object) == digest);
    (before.step, &before.selectors) != (anew.step, &anew.selectors) || objects.iter().any(is_tried)
}

/// The canary with what its objects are like now.
pub fn counted(rollout: &RolloutStatus, counts: ObjectCounts) -> RolloutStatus {
    RolloutStatus { objects: counts.total, failing: counts.failing, ..rollout.clone() }
}

/// The canary as a step begins. `known`: the objects that have belonged to it before, with the canary as it was then; of what is wrong with them,
/// no more was so before than was known. `new`: those that come to it now.
pub fn beginning(
    rollout: &RolloutStatus,
    before: Option<&RolloutStatus>,
    known: ObjectCounts,
    new: ObjectCounts,
) -> RolloutStatus {
    let not_ready = |counts: ObjectCounts| counts.total.saturating_sub(counts.ready);
    let (failing_before, not_ready_before) =
        before.map_or((0, 0), |before| (before.failing_before, before.not_ready_before));
    let counts = ObjectCounts {
        total: known.total.saturating_add(new.total),
        ready: known.ready.saturating_add(new.ready),
        failing: known.failing.saturating_add(new.failing),
    };
    RolloutStatus {
        failing_before: known.failing.min(failing_before).saturating_add(new.failing),
        not_ready_before: not_ready(known).min(not_ready_before).saturating_add(not_ready(new)),
        ..counted(rollout, counts)
    }
}

/// The canary as it is watched with this configuration.
pub fn watched_with(rollout: &RolloutStatus, config_digest: &str) -> RolloutStatus {
    RolloutStatus { config_digest: Some(config_digest.to_owned()), ..rollout.clone() }
}

/// Whether a canary is watched with another configuration than this one. A host before this one did not write it down.
pub fn is_watched_otherwise(rollout: &RolloutStatus, config_digest: &str) -> bool {
    rollout.config_digest.as_deref().is_some_and(|watched| watched != config_digest)
}

/// The canary as its present step begins anew with this configuration, with objects like this. What it has broken before is no excuse.
pub fn begun_anew(rollout: &RolloutStatus, config_digest: &str, counts: ObjectCounts, now: Timestamp) -> RolloutStatus {
    let anew = beginning(rollout, Some(rollout), counts, ObjectCounts::default());
    from_now(&watched_with(&anew, config_digest), now)
}

/// The canary after objects like this have come to it in the midst of a step: they were so before it touched them.
pub fn joined_by(rollout: &RolloutStatus, joined: ObjectCounts) -> RolloutStatus {
    let not_ready = joined.total.saturating_sub(joined.ready);
    RolloutStatus {
        failing_before: rollout.failing_before.saturating_add(joined.failing),
        not_ready_before: rollout.not_ready_before.saturating_add(not_ready),
        ..rollout.clone()
    }
}

/// The canary whose present step is watched from now on.
pub fn from_now(rollout: &RolloutStatus, now: Timestamp) -> RolloutStatus {
    RolloutStatus { since: api_time(now), ..rollout.clone() }
}

/// The canary that was taken back because so many of its objects failed.
pub fn taken_back(rollout: &RolloutStatus, failed: usize, counts: ObjectCounts, now: Timestamp) -> RolloutStatus {
    let message = format!(
        "{failed} of the {} objects that version {} answered in step {} of {} failed",
        counts.total, rollout.version, rollout.step, rollout.steps
    );
    let (phase, since) = (RolloutPhase::RolledBack, api_time(now));
    RolloutStatus { phase, since, message: Some(message), ..counted(rollout, counts) }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, error::Error};

    use serde_json::json;

    use super::*;

    fn canary(steps: &serde_json::Value, max_failed_percent: u32) -> Result<RolloutSpec, serde_json::Error> {
        serde_json::from_value(json!({"strategy": "Canary", "steps": steps, "maxFailedPercent": max_failed_percent}))
    }

    fn going_on(step: u32) -> RolloutStatus {
        RolloutStatus {
            phase: RolloutPhase::Progressing,
            digest: "sha256:new".to_owned(),
            version: "2".to_owned(),
            step,
            steps: 2,
            since: "1970-01-01T00:00:00Z".to_owned(),
            config_digest: None,
            created_until: "1970-01-01T00:00:00Z".to_owned(),
            up_to: Some("00000000000000ff".to_owned()),
            selectors: None,
            objects: 10,
            failing: 0,
            failing_before: 1,
            not_ready_before: 1,
            message: None,
        }
    }

    #[test]
    fn another_configuration_excuses_nothing() {
        let before = RolloutStatus { config_digest: Some("one".to_owned()), ..going_on(2) };
        assert!(is_watched_otherwise(&before, "two") && !is_watched_otherwise(&before, "one"));
        assert!(!is_watched_otherwise(&going_on(2), "two"), "of a host before this one");
        for (what, ready, failing, expected) in [
            ("more of them fail", 2, 5, (1, 1)),
            ("as many", 9, 1, (1, 1)),
            ("those that failed have recovered", 10, 0, (0, 0)),
        ] {
            let counts = ObjectCounts { total: 10, ready, failing };
            let anew = begun_anew(&before, "two", counts, Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(9));
            assert_eq!((anew.failing_before, anew.not_ready_before), expected, "{what}");
            assert_eq!((anew.step, &*anew.since, anew.failing), (2, "1970-01-01T00:00:09Z", failing), "{what}");
            assert_eq!(anew.config_digest.as_deref(), Some("two"), "{what}");
            assert_eq!(anew.up_to, before.up_to, "{what}");
        }
    }

    #[test]
    fn only_what_was_wrong_with_an_object_when_it_came_is_excused() {
        let counts = |total, ready, failing| ObjectCounts { total, ready, failing };
        let none = ObjectCounts::default();
        let before = RolloutStatus { failing_before: 1, not_ready_before: 2, ..going_on(1) };
        for (what, before, known, new, expected) in [
            ("the first step", None, none, counts(10, 7, 2), (2, 3)),
            ("a step that widens", Some(&before), counts(10, 5, 4), counts(10, 9, 0), (1, 3)),
            ("some have recovered", Some(&before), counts(10, 9, 0), none, (0, 1)),
        ] {
            let begun = beginning(&going_on(2), before, known, new);
            assert_eq!((begun.failing_before, begun.not_ready_before), expected, "{what}");
            assert_eq!(begun.objects, known.total + new.total, "{what}");
        }
    }

    /// What a version has broken in one step is not how it found the objects of the next one.
    #[test]
    fn what_may_fail_may_fail_in_all_steps_together() -> Result<(), Box<dyn Error>> {
        let canary = canary(&json!([{"objects": 2, "seconds": 4}, {"objects": 4, "seconds": 4}]), 50)?;
        let seen = |total, ready| Seen {
            counts: ObjectCounts { total, ready, failing: 0 },
            newly_failing: 0,
            all_reconciled: true,
        };
        let (lasted, none) = (Duration::from_secs(4), ObjectCounts::default());
        let first = beginning(&going_on(1), None, none, ObjectCounts { total: 2, ready: 2, failing: 0 });
        assert_eq!(next(&canary, &first, seen(2, 1), lasted), Next::Widen);
        let (known, new) =
            (ObjectCounts { total: 2, ready: 1, failing: 0 }, ObjectCounts { total: 2, ready: 2, failing: 0 });
        let second = beginning(&going_on(2), Some(&first), known, new);
        for (ready, expected) in [(2, Next::TakeOver), (1, Next::GoBack(3))] {
            assert_eq!(next(&canary, &second, seen(4, ready), lasted), expected, "{ready} are ready");
        }
        Ok(())
    }

    #[test]
    fn what_follows_depends_on_the_objects_and_the_time() -> Result<(), Box<dyn Error>> {
        let steps = json!([{"percent": 10, "seconds": 60}, {"objects": 50, "seconds": 60}]);
        let seen = |total, ready, failing| Seen {
            counts: ObjectCounts { total, ready, failing },
            newly_failing: 0,
            all_reconciled: true,
        };
        let no_object_yet = RolloutStatus { objects: 0, ..going_on(1) };
        let lasted = Duration::from_secs(60);
        assert_eq!(next(&canary(&steps, 0)?, &no_object_yet, seen(1, 0, 1), lasted), Next::Watch);
        for (what, step, allowed, seen, seconds, expected) in [
            ("nothing is known yet", 1, 0, seen(10, 9, 1), 59, Next::Stay),
            ("one more is failing", 1, 0, seen(10, 8, 2), 1, Next::GoBack(1)),
            ("one more of ten may fail", 1, 10, seen(10, 8, 2), 1, Next::Stay),
            ("two more may not", 1, 10, seen(10, 7, 3), 1, Next::GoBack(2)),
            (
                "one is failing, and one no longer",
                1,
                0,
                Seen { newly_failing: 1, ..seen(10, 9, 1) },
                1,
                Next::GoBack(1),
            ),
            ("all is well", 1, 0, seen(10, 9, 1), 60, Next::Widen),
            ("all is well to the end", 2, 0, seen(10, 9, 1), 60, Next::TakeOver),
            ("one has not become ready", 1, 0, seen(10, 8, 1), 60, Next::GoBack(1)),
            ("its objects are gone", 1, 0, seen(0, 0, 0), 1, Next::NoObject),
            ("some were not asked yet", 1, 0, Seen { all_reconciled: false, ..seen(10, 9, 1) }, 90, Next::Stay),
        ] {
            let lasted = Duration::from_secs(seconds);
            assert_eq!(next(&canary(&steps, allowed)?, &going_on(step), seen, lasted), expected, "{what}");
        }
        Ok(())
    }

    #[test]
    fn a_canary_is_in_one_of_the_steps_that_there_are_now() -> Result<(), Box<dyn Error>> {
        let step = json!({"percent": 10, "seconds": 60});
        for (steps, step_now, expected) in [(4, 2, 4), (2, 2, 2), (1, 2, 2)] {
            let canary = canary(&json!(vec![&step; steps]), 0)?;
            let rollout = in_present_steps(&going_on(step_now), Some(&canary));
            assert_eq!((rollout.step, rollout.steps), (step_now, expected), "of {steps} steps");
        }
        Ok(())
    }

    #[test]
    fn a_share_is_rounded_up() {
        let step = |percent| RolloutStep { percent: Some(percent), ..RolloutStep::default() };
        for (percent, of, expected) in [(10, 10, 1), (10, 11, 2), (1, 1, 1), (100, 7, 7), (50, 0, 0)] {
            assert_eq!(number(&step(percent), of), Some(expected), "{percent} % of {of}");
        }
        let objects = RolloutStep { objects: Some(3), ..RolloutStep::default() };
        assert_eq!((number(&objects, 2), number(&RolloutStep::default(), 2)), (Some(3), None));
    }

    #[test]
    fn a_step_takes_nothing_back() -> Result<(), Box<dyn Error>> {
        let canary = canary(&json!([{"percent": 10, "seconds": 60}, {"objects": 1, "seconds": 60}]), 0)?;
        let next = widened(&canary, &going_on(1), &[], Timestamp::UNIX_EPOCH);
        assert_eq!((next.step, next.up_to.as_deref()), (2, Some("00000000000000ff")));
        Ok(())
    }

    #[test]
    fn another_selector_is_one_of_steps_that_are_to_come() -> Result<(), Box<dyn Error>> {
        let wave = |name: &str| json!({"selector": {"matchLabels": {"wave": name}}, "seconds": 60});
        let steps = |waves: [&str; 2]| canary(&json!(waves.map(wave)), 0);
        let matched = |rollout: &RolloutStatus, canary: &RolloutSpec| {
            let selectors = share(rollout, canary).selectors;
            let is_matched = |wave: &&str| {
                let labels = BTreeMap::from([("wave", *wave)]);
                selectors.iter().any(|selector| selector.matches(|key| labels.get(key).copied()))
            };
            ["a", "b", "c", "d"].into_iter().filter(is_matched).collect::<Vec<_>>()
        };
        let (edited, begun) = (steps(["c", "d"])?, RolloutStatus { selectors: Some(Vec::new()), ..going_on(0) });
        let first = widened(&steps(["a", "b"])?, &begun, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(matched(&first, &edited), ["a"]);
        assert_eq!(matched(&widened(&edited, &first, &[], Timestamp::UNIX_EPOCH), &edited), ["a", "d"]);
        assert_eq!(matched(&going_on(1), &edited), ["c"], "as a host before this one left it");
        Ok(())
    }
}
