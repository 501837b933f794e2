//! The status of a `Plugin`: what became of its source, and how the version at work stands. Follows kstatus: `Ready` is always there,
//! `Reconciling`, `Stalled` and `Degraded` only while they are true. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    digest_text,
    pin_trouble::PinTrouble,
    waiting::{plan_event, waiting},
};
use crate::{
    api::{
        AWAITING_APPROVAL, Condition, FormerVersion, KindName, LastError, NewVersion, ObjectCounts, PinStatus,
        PlanStatus, Plugin, PluginStatus, ReadinessRule, RolloutStatus, StableConfig, StableSource,
    },
    clock::api_time,
    events::Event,
    pipeline::conditions::{READY, RECONCILING, STALLED, within_limit},
};

/// Condition: the component that the source has now is loaded.
const LOADED: &str = "Loaded";

/// The reason of a plugin whose version does not work yet.
const STARTING: &str = "Starting";

/// The reason of a plugin that is suspended.
const SUSPENDED: &str = "Suspended";

/// The reason of a plugin of which a new version answers some objects.
const CANARY: &str = "Canary";

/// How many components are told that were at work.
const VERSIONS: usize = 32;

/// Condition: it is not, and the version before goes on; or something is wrong with the pins.
const DEGRADED: &str = "Degraded";

/// What became of a `Plugin`'s source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Its component is at work, or about to be.
    Loaded,
    /// It is suspended.
    Suspended,
    /// Its component is at work, as asked for by its digest, and the source does not give it any more.
    WithoutSource(Failure),
    /// It is not loaded.
    Failed(Failure),
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether it may pass without a change of the source.
    pub is_passing: bool,
}

impl Load {
    /// Whether another try may help.
    pub fn may_pass(&self) -> bool {
        self.failure().is_some_and(|failure| failure.is_passing)
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Loaded | Self::Suspended => None,
            Self::WithoutSource(failure) | Self::Failed(failure) => Some(failure),
        }
    }
}

/// The version at work, as far as the status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtWork {
    /// Its version.
    pub version: String,
    /// Its digest.
    pub digest: String,
    /// The contract's version.
    pub contract: String,
    /// The kind that it reconciles.
    pub reconciles: KindName,
    /// Whether it decorates objects of that kind.
    pub decorates: bool,
    /// The kinds of its children.
    pub children: Vec<KindName>,
    /// How far children are, as its manifest says it.
    pub child_readiness: Vec<ReadinessRule>,
    /// The finalizers that its objects may have because of it.
    pub finalizers: Vec<String>,
    /// Its objects.
    pub objects: ObjectCounts,
    /// Why it cannot work as it should: kinds that are not installed, or that the host may not watch.
    pub obstacles: Vec<String>,
}

/// How a `Plugin` stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The name of the `Plugin`.
    pub name: String,
    /// What became of its source.
    pub load: Load,
    /// The version at work; none if there is none.
    pub at_work: Option<AtWork>,
    /// The digest of the version that answers all objects, or is about to; none if nobody knows better than the status before.
    pub stable: Option<String>,
    /// Where that one came from; none if nobody knows better than the status before.
    pub stable_source: Option<StableSource>,
    /// The configuration of that one; none where nobody has to know it.
    pub stable_config: Option<StableConfig>,
    /// Whether that is another one than the `Plugin` has now.
    pub keeps_config: bool,
    /// A version that does not answer all objects yet, or that was taken back.
    pub rollout: Option<RolloutStatus>,
    /// How that one stands, or one that waits for approval, in one word.
    pub new_version: Option<NewVersion>,
    /// What a version would do that somebody has to approve, or has approved.
    pub plan: Option<PlanStatus>,
    /// What would keep that version from work though somebody approved it.
    pub in_the_way: Option<String>,
    /// Whether somebody has approved that version with another configuration.
    pub is_held_for_its_config: bool,
    /// What is wrong with its pins.
    pub pins: PinTrouble,
    /// The finalizers that its objects may have because of any of its versions.
    pub finalizers: BTreeSet<String>,
    /// What it keeps of the memory of plugins, or what is kept free for it, in bytes.
    pub memory: Option<usize>,
}

/// The status of a `Plugin` of this generation, which had another one before.
pub fn status(standing: &Standing, generation: i64, before: &PluginStatus, now: Timestamp) -> PluginStatus {
    let at_work = standing.at_work.as_ref();
    let stamp = |word: Word| {
        let known = before.conditions.iter().find(|it| it.condition_type == word.kind && it.status == word.status);
        let since = known.map(|known| known.last_transition_time.clone());
        Condition {
            condition_type: word.kind.to_owned(),
            status: word.status.to_owned(),
            reason: word.reason.to_owned(),
            message: within_limit(&word.message),
            last_transition_time: since.unwrap_or_else(|| api_time(now)),
            observed_generation: generation,
        }
    };
    let digest = at_work.map(|it| digest_text::text(&it.digest));
    let is_swap = digest.is_some() && (digest != before.digest || before.last_swap_time.is_none());
    PluginStatus {
        observed_generation: generation,
        conditions: words(standing).into_iter().map(stamp).collect(),
        version: at_work.map(|it| it.version.clone()),
        digest,
        short_digest: at_work.map(|it| it.digest.chars().take(12).collect()),
        contract: at_work.map(|it| it.contract.clone()),
        // What was at work last: whoever uninstalls a plugin that is not at work has to know what it leaves behind.
        reconciles: at_work.map(|it| it.reconciles.clone()).or_else(|| before.reconciles.clone()),
        decorates: at_work.map_or(before.decorates, |it| it.decorates),
        children: at_work.map_or_else(|| before.children.clone(), |it| it.children.clone()),
        child_readiness: at_work.map_or_else(|| before.child_readiness.clone(), |it| it.child_readiness.clone()),
        finalizers: at_work.map_or_else(|| before.finalizers.clone(), |it| finalizers(it, standing)),
        objects: at_work.map(|it| it.objects),
        last_swap_time: if is_swap { Some(api_time(now)) } else { before.last_swap_time.clone() },
        last_error: last_error(&standing.load, before.last_error.as_ref(), now),
        stable_source: stable_source(standing, before),
        stable_config: if standing.stable.is_some() {
            standing.stable_config.clone()
        } else {
            before.stable_config.clone()
        },
        stable_digest: standing.stable.as_deref().map(digest_text::text).or(before.stable_digest.clone()),
        versions: versions(at_work, &before.versions),
        new_version: standing.new_version,
        rollout: standing.rollout.clone(),
        plan: standing.plan.clone(),
        pins: standing.pins.status(),
        memory_bytes: standing.memory.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
    }
}

/// Those of the version at work first, then those of others.
fn finalizers(at_work: &AtWork, standing: &Standing) -> Vec<String> {
    let others = standing.finalizers.iter().filter(|other| !at_work.finalizers.contains(other));
    at_work.finalizers.iter().chain(others).cloned().collect()
}

/// The components that were at work, the latest one first.
fn versions(at_work: Option<&AtWork>, before: &[FormerVersion]) -> Vec<FormerVersion> {
    let latest = at_work.map(|it| FormerVersion { version: it.version.clone(), digest: digest_text::text(&it.digest) });
    let others = before.iter().filter(|it| latest.as_ref().is_none_or(|latest| latest.digest != it.digest));
    latest.iter().chain(others).take(VERSIONS).cloned().collect()
}

/// Where the version came from that answers all objects.
fn stable_source(standing: &Standing, before: &PluginStatus) -> Option<StableSource> {
    let known = standing.stable_source.clone().or(before.stable_source.clone());
    match &standing.stable {
        Some(stable) => known.filter(|known| known.digest == digest_text::text(stable)),
        None => known,
    }
}

/// What failed last, since it failed in this way.
fn last_error(load: &Load, before: Option<&LastError>, now: Timestamp) -> Option<LastError> {
    let Some(Failure { reason, message, .. }) = load.failure() else { return before.cloned() };
    let message = within_limit(message);
    match before.filter(|before| before.reason == *reason && before.message == message) {
        Some(before) => Some(before.clone()),
        None => Some(LastError { reason: (*reason).to_owned(), message, time: api_time(now) }),
    }
}

/// The Events that tell of a change of the status of a `Plugin`: another version at work, one that waits for approval, or another reason why
/// one is not loaded.
pub fn events(name: &str, before: &PluginStatus, after: &PluginStatus) -> Vec<Event> {
    let mut events = Vec::new();
    if let (Some(version), Some(digest)) = (&after.version, &after.short_digest)
        && after.digest != before.digest
    {
        let instead =
            before.version.as_ref().map(|before| format!(", instead of version {before}")).unwrap_or_default();
        events.push(Event::normal("Loaded", &format!("version {version} ({digest}) is at work{instead}")));
    }
    events.extend(plan_event(name, before.plan.as_ref(), after.plan.as_ref()));
    events.extend(step_event(before.rollout.as_ref(), after.rollout.as_ref()));
    // A new error, or the same one again after it had passed.
    let has_failed = |status: &PluginStatus| {
        let of_pins = status.pins.as_ref().map(|pins| &pins.reason);
        let failed = |it: &Condition| it.condition_type == DEGRADED && Some(&it.reason) != of_pins;
        is_not_loaded(status) || status.conditions.iter().any(failed)
    };
    if let Some(error) = after.last_error.as_ref().filter(|_| has_failed(after))
        && (before.last_error.as_ref() != Some(error) || !has_failed(before))
    {
        events.push(Event::warning(&error.reason, &error.message));
    }
    events.extend(pin_event(before, after));
    events
}

/// Whether the status of a `Plugin` says that it is suspended.
pub fn is_told_as_suspended(plugin: &Plugin) -> bool {
    let mut conditions = plugin.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.condition_type == LOADED && it.reason == SUSPENDED)
}

/// Whether what the source has is not loaded.
fn is_not_loaded(status: &PluginStatus) -> bool {
    let is_it = |it: &Condition| it.condition_type == LOADED && it.status == "False" && it.reason != SUSPENDED;
    status.conditions.iter().any(is_it)
}

/// The Event that tells that something is wrong with the pins, or something else than before.
fn pin_event(before: &PluginStatus, after: &PluginStatus) -> Option<Event> {
    let told = |pins: &PinStatus| (pins.reason.clone(), pins.message.clone());
    let pins = after.pins.as_ref()?;
    (before.pins.as_ref().map(told) != Some(told(pins))).then(|| Event::warning(&pins.reason, &pins.message))
}

/// The Event that tells that a canary has begun, or is in another step.
fn step_event(before: Option<&RolloutStatus>, after: Option<&RolloutStatus>) -> Option<Event> {
    let after = after.filter(|after| after.goes_on())?;
    let step = |rollout: &RolloutStatus| (rollout.digest.clone(), rollout.step);
    (before.map(step) != Some(step(after))).then(|| Event::normal("CanaryStep", &tried(after)))
}

/// What a new version is tried on.
fn tried(rollout: &RolloutStatus) -> String {
    let RolloutStatus { version, step, steps, objects, failing, selectors, .. } = rollout;
    let is_by_labels = selectors.as_ref().is_some_and(|selectors| !selectors.is_empty());
    match objects {
        0 if is_by_labels => format!(
            "version {version} is in step {step} of {steps} and waits for an object that it can be tried on: none has the labels of its \
             steps. Label an object, change the steps, or use the strategy Immediate"
        ),
        0 => format!(
            "version {version} is in step {step} of {steps} and waits for an object that it can be tried on: none belongs to it that is \
             not pinned, suspended, of another manager, being deleted, in a namespace that is not served, or a moment old"
        ),
        _ => format!(
            "version {version} is in step {step} of {steps}: it answers {objects} objects, of which {failing} are failing"
        ),
    }
}

/// A condition without its times.
struct Word {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

fn word(kind: &'static str, status: &'static str, reason: &'static str, message: &str) -> Word {
    Word { kind, status, reason, message: message.to_owned() }
}

fn words(standing: &Standing) -> Vec<Word> {
    match &standing.load {
        Load::Suspended => {
            let why = "spec.suspended is true; its objects stay as they are";
            vec![word(READY, "False", SUSPENDED, why), word(LOADED, "False", SUSPENDED, why)]
        }
        Load::Failed(failure) => with_pins(standing, failed(standing, failure)),
        Load::Loaded => {
            with_pins(standing, loaded(standing).chain(rolling_out(standing)).chain(held(standing)).collect())
        }
        Load::WithoutSource(Failure { reason, message, .. }) => {
            let message =
                format!("{message}; what is at work is what is asked for, and a host elsewhere could not load it");
            with_pins(standing, loaded(standing).chain([word(DEGRADED, "True", reason, &message)]).collect())
        }
    }
}

/// The same with what is wrong with the pins. There is one condition of a type, so that it may have to tell two things.
fn with_pins(standing: &Standing, mut words: Vec<Word>) -> Vec<Word> {
    if let Some((reason, message)) = standing.pins.told() {
        match words.iter_mut().find(|it| it.kind == DEGRADED) {
            Some(degraded) => degraded.message = format!("{}; {message}", degraded.message),
            None => words.push(word(DEGRADED, "True", reason, &message)),
        }
    }
    words
}

fn loaded(standing: &Standing) -> impl Iterator<Item = Word> {
    let waiting = awaited(standing).filter(|_| standing.stable.is_none());
    let [ready, more] = match waiting {
        Some(message) => not_ready(AWAITING_APPROVAL, &message),
        None => at_work(standing),
    };
    [Some(word(LOADED, "True", "Loaded", "")), ready, more].into_iter().flatten()
}

/// What is told of a version that does not answer all objects yet.
fn rolling_out(standing: &Standing) -> Option<Word> {
    let message = with_kept_config(standing, &tried(standing.rollout.as_ref()?));
    // Otherwise the condition says already what is missing.
    is_ready(standing).then(|| word(RECONCILING, "True", CANARY, &message))
}

/// What is told of a version that waits for approval while another one works.
fn held(standing: &Standing) -> Option<Word> {
    let message = awaited(standing).filter(|_| is_ready(standing))?;
    Some(word(RECONCILING, "True", AWAITING_APPROVAL, &with_kept_config(standing, &message)))
}

/// The same, and that the configuration that somebody may have changed is not that of the version that works yet.
fn with_kept_config(standing: &Standing, message: &str) -> String {
    let kept = match standing.keeps_config {
        true => "; the version that works keeps the configuration that it had",
        false => "",
    };
    format!("{message}{kept}")
}

fn awaited(standing: &Standing) -> Option<String> {
    let awaited = waiting(&standing.name, standing.plan.as_ref(), standing.in_the_way.as_deref())?;
    let otherwise = match standing.is_held_for_its_config {
        true => ". Its digest is approved with another configuration, as spec.rollout.approvedConfig says",
        false => "",
    };
    Some(format!("{awaited}{otherwise}"))
}

fn failed(standing: &Standing, Failure { reason, message, is_passing }: &Failure) -> Vec<Word> {
    let more = if *is_passing { RECONCILING } else { STALLED };
    let with = if standing.keeps_config { " with the configuration that it had" } else { "" };
    let goes_on = standing.at_work.as_ref().map(|it| format!("{message}; version {} goes on{with}", it.version));
    let mut words = vec![
        word(LOADED, "False", reason, message),
        word(READY, "False", reason, message),
        word(more, "True", reason, message),
    ];
    words.extend(goes_on.map(|message| word(DEGRADED, "True", reason, &message)));
    words
}

fn not_ready(reason: &'static str, message: &str) -> [Option<Word>; 2] {
    [Some(word(READY, "False", reason, message)), Some(word(RECONCILING, "True", reason, message))]
}

/// `Ready`, and what goes with it. It is true of what is asked for, and not of the version before, which goes on until the next one works.
fn at_work(standing: &Standing) -> [Option<Word>; 2] {
    match &standing.at_work {
        None => not_ready(STARTING, "its caches are being filled"),
        Some(it) if !is_stable(standing, it) => {
            let message = format!("its caches are being filled; version {} goes on until then", it.version);
            not_ready(STARTING, &message)
        }
        Some(it) => match it.obstacles.first() {
            Some(obstacle) => not_ready("KindUnavailable", obstacle),
            None => [Some(word(READY, "True", "AtWork", "")), None],
        },
    }
}

/// Whether what is asked for is at work, with all that it needs.
fn is_ready(standing: &Standing) -> bool {
    standing.at_work.as_ref().is_some_and(|it| is_stable(standing, it) && it.obstacles.is_empty())
}

/// Whether the version at work is the one that is to answer all objects.
fn is_stable(standing: &Standing, at_work: &AtWork) -> bool {
    standing.stable.as_ref().is_none_or(|stable| *stable == at_work.digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{LabelSelector, RolloutPhase};

    fn at_work(obstacles: &[&str]) -> AtWork {
        let kind = KindName { api_version: "example.com/v1".to_owned(), kind: "Web".to_owned() };
        AtWork {
            version: "1.0.0".to_owned(),
            digest: "0123456789abcdef".to_owned(),
            contract: "0.2.0".to_owned(),
            reconciles: kind,
            decorates: false,
            children: Vec::new(),
            child_readiness: Vec::new(),
            finalizers: Vec::new(),
            objects: ObjectCounts::default(),
            obstacles: obstacles.iter().map(ToString::to_string).collect(),
        }
    }

    fn standing(load: Load, at_work: Option<AtWork>) -> Standing {
        Standing {
            name: "web".to_owned(),
            load,
            at_work,
            stable: None,
            stable_source: None,
            stable_config: None,
            keeps_config: false,
            rollout: None,
            new_version: None,
            plan: None,
            in_the_way: None,
            is_held_for_its_config: false,
            pins: PinTrouble::default(),
            finalizers: BTreeSet::new(),
            memory: None,
        }
    }

    fn words_of(load: Load, at_work: Option<AtWork>) -> Vec<String> {
        let status = status(&standing(load, at_work), 3, &PluginStatus::default(), Timestamp::UNIX_EPOCH);
        status.conditions.iter().map(|it| format!("{}={}:{}", it.condition_type, it.status, it.reason)).collect()
    }

    #[test]
    fn a_canary_without_an_object_says_what_it_waits_for() {
        let waiting = |selectors: Option<Vec<LabelSelector>>| RolloutStatus {
            phase: RolloutPhase::Progressing,
            digest: "sha256:ab".to_owned(),
            version: "2.0.0".to_owned(),
            step: 1,
            steps: 1,
            since: String::new(),
            config_digest: None,
            created_until: String::new(),
            up_to: None,
            selectors,
            objects: 0,
            failing: 0,
            failing_before: 0,
            not_ready_before: 0,
            message: None,
        };
        for (what, selectors, expected) in [
            ("by labels", Some(vec![LabelSelector::default()]), "none has the labels"),
            ("by a number", Some(Vec::new()), "or a moment old"),
            ("of a host before this one", None, "or a moment old"),
        ] {
            let said = tried(&waiting(selectors));
            assert!(said.contains(expected), "{what}: {said}");
        }
    }

    #[test]
    fn conditions_say_what_became_of_a_plugin() {
        let failed = |is_passing| Failure { reason: "DigestMismatch", message: "it is another".to_owned(), is_passing };
        for (load, at_work, expected) in [
            (Load::Loaded, Some(at_work(&[])), &["Loaded=True:Loaded", "Ready=True:AtWork"][..]),
            (Load::Loaded, None, &["Loaded=True:Loaded", "Ready=False:Starting", "Reconciling=True:Starting"]),
            (
                Load::Loaded,
                Some(at_work(&["no CRD"])),
                &["Loaded=True:Loaded", "Ready=False:KindUnavailable", "Reconciling=True:KindUnavailable"],
            ),
            (Load::Suspended, None, &["Ready=False:Suspended", "Loaded=False:Suspended"]),
            (
                Load::Failed(failed(false)),
                None,
                &["Loaded=False:DigestMismatch", "Ready=False:DigestMismatch", "Stalled=True:DigestMismatch"],
            ),
            (
                Load::WithoutSource(failed(false)),
                Some(at_work(&[])),
                &["Loaded=True:Loaded", "Ready=True:AtWork", "Degraded=True:DigestMismatch"],
            ),
            (
                Load::Failed(failed(true)),
                Some(at_work(&[])),
                &[
                    "Loaded=False:DigestMismatch",
                    "Ready=False:DigestMismatch",
                    "Reconciling=True:DigestMismatch",
                    "Degraded=True:DigestMismatch",
                ],
            ),
        ] {
            assert_eq!(words_of(load.clone(), at_work), expected, "{load:?}");
        }
    }

    #[test]
    fn a_version_that_starts_beside_another_is_not_ready() {
        let standing = |stable: &str| Standing {
            stable: Some(stable.to_owned()),
            ..standing(Load::Loaded, Some(at_work(&["what the one before lacks"])))
        };
        let ready = |stable: &str| {
            let status = status(&standing(stable), 1, &PluginStatus::default(), Timestamp::UNIX_EPOCH);
            status.conditions.into_iter().find(|it| it.condition_type == READY).map(|it| (it.reason, it.message))
        };
        let starting = "its caches are being filled; version 1.0.0 goes on until then";
        assert_eq!(ready("fedcba9876543210"), Some((STARTING.to_owned(), starting.to_owned())));
        assert_eq!(
            ready("0123456789abcdef"),
            Some(("KindUnavailable".to_owned(), "what the one before lacks".to_owned()))
        );
    }

    #[test]
    fn events_tell_of_swaps_and_of_each_new_failure_once() {
        let failed = |message: &str| {
            Load::Failed(Failure { reason: "DigestMismatch", message: message.to_owned(), is_passing: false })
        };
        let next = AtWork { digest: "fedcba9876543210".to_owned(), version: "2.0.0".to_owned(), ..at_work(&[]) };
        let mut before = PluginStatus::default();
        let mut told = Vec::new();
        for (hour, load, at_work) in [
            (1, Load::Loaded, None),
            (2, Load::Loaded, Some(at_work(&[]))),
            (3, failed("one"), Some(at_work(&[]))),
            (4, failed("one"), Some(at_work(&[]))),
            (5, failed("two"), Some(at_work(&[]))),
            (6, Load::Loaded, Some(next.clone())),
            (7, Load::Suspended, None),
            (8, Load::Loaded, Some(next)),
        ] {
            let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(hour);
            let after = status(&standing(load, at_work), 1, &before, now);
            told.extend(
                events("web", &before, &after).into_iter().map(|it| format!("{hour} {}: {}", it.reason, it.message)),
            );
            before = after;
        }
        let expected = [
            "2 Loaded: version 1.0.0 (0123456789ab) is at work",
            "3 DigestMismatch: one",
            "5 DigestMismatch: two",
            "6 Loaded: version 2.0.0 (fedcba987654) is at work, instead of version 1.0.0",
            "8 Loaded: version 2.0.0 (fedcba987654) is at work",
        ];
        assert_eq!(told, expected);
        assert_eq!(
            before.last_error.map(|it| (it.message, it.time)),
            Some(("two".to_owned(), "1970-01-01T05:00:00Z".to_owned()))
        );
        assert_eq!(before.last_swap_time.as_deref(), Some("1970-01-01T08:00:00Z"));
    }

    #[test]
    fn a_transition_time_stays_while_the_status_stays() {
        let ready = standing(Load::Loaded, Some(at_work(&[])));
        let first = status(&ready, 1, &PluginStatus::default(), Timestamp::UNIX_EPOCH);
        let later: Timestamp = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
        assert_eq!(status(&ready, 1, &first, later), first);
        let starting = Standing { at_work: None, ..ready };
        let times: Vec<_> =
            status(&starting, 1, &first, later).conditions.into_iter().map(|it| it.last_transition_time).collect();
        assert_eq!(times, ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z", "1970-01-01T01:00:00Z"]);
    }
}
