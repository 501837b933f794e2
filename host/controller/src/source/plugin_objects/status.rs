//! The status of a `Plugin`: what became of its source, and how the version at work stands. Follows kstatus: `Ready` is always there,
//! `Reconciling`, `Stalled` and `Degraded` only while they are true. Pure.

use jiff::Timestamp;

use crate::{
    api::{Condition, KindName, ObjectCounts, PluginStatus},
    clock::api_time,
    pipeline::conditions::{READY, RECONCILING, STALLED, within_limit},
};

/// Condition: the component that the source has now is loaded.
const LOADED: &str = "Loaded";

/// Condition: it is not, and the version before goes on.
const DEGRADED: &str = "Degraded";

/// What became of a `Plugin`'s source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Its component is at work, or about to be.
    Loaded,
    /// It is suspended.
    Suspended,
    /// It is not loaded.
    Failed {
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
        /// Whether it may pass without a change of the source.
        is_passing: bool,
    },
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
    /// The kinds of its children.
    pub children: Vec<KindName>,
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
    /// What became of its source.
    pub load: Load,
    /// The version at work; none if there is none.
    pub at_work: Option<AtWork>,
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
    PluginStatus {
        observed_generation: generation,
        conditions: words(standing).into_iter().map(stamp).collect(),
        version: at_work.map(|it| it.version.clone()),
        digest: at_work.map(|it| format!("sha256:{}", it.digest)),
        short_digest: at_work.map(|it| it.digest.chars().take(12).collect()),
        contract: at_work.map(|it| it.contract.clone()),
        // What was at work last: whoever uninstalls a plugin that is not at work has to know what it leaves behind.
        reconciles: at_work.map(|it| it.reconciles.clone()).or_else(|| before.reconciles.clone()),
        children: at_work.map_or_else(|| before.children.clone(), |it| it.children.clone()),
        finalizers: at_work.map_or_else(|| before.finalizers.clone(), |it| it.finalizers.clone()),
        objects: at_work.map(|it| it.objects),
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
            vec![word(READY, "False", "Suspended", why), word(LOADED, "False", "Suspended", why)]
        }
        Load::Failed { reason, message, is_passing } => failed(standing, reason, message, *is_passing),
        Load::Loaded => {
            let loaded = word(LOADED, "True", "Loaded", "");
            let [ready, more] = at_work(standing.at_work.as_ref());
            [Some(loaded), ready, more].into_iter().flatten().collect()
        }
    }
}

fn failed(standing: &Standing, reason: &'static str, message: &str, is_passing: bool) -> Vec<Word> {
    let more = if is_passing { RECONCILING } else { STALLED };
    let goes_on = standing.at_work.as_ref().map(|it| format!("{message}; version {} goes on", it.version));
    let mut words = vec![
        word(LOADED, "False", reason, message),
        word(READY, "False", reason, message),
        word(more, "True", reason, message),
    ];
    words.extend(goes_on.map(|message| word(DEGRADED, "True", reason, &message)));
    words
}

/// `Ready`, and what goes with it.
fn at_work(at_work: Option<&AtWork>) -> [Option<Word>; 2] {
    let not_ready = |reason, message: &str| {
        [Some(word(READY, "False", reason, message)), Some(word(RECONCILING, "True", reason, message))]
    };
    match at_work {
        None => not_ready("Starting", "its caches are being filled"),
        Some(it) => match it.obstacles.first() {
            Some(obstacle) => not_ready("KindUnavailable", obstacle),
            None => [Some(word(READY, "True", "AtWork", "")), None],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_work(obstacles: &[&str]) -> AtWork {
        let kind = KindName { api_version: "example.com/v1".to_owned(), kind: "Web".to_owned() };
        AtWork {
            version: "1.0.0".to_owned(),
            digest: "0123456789abcdef".to_owned(),
            contract: "0.2.0".to_owned(),
            reconciles: kind,
            children: Vec::new(),
            finalizers: Vec::new(),
            objects: ObjectCounts::default(),
            obstacles: obstacles.iter().map(ToString::to_string).collect(),
        }
    }

    fn words_of(load: Load, at_work: Option<AtWork>) -> Vec<String> {
        let status = status(&Standing { load, at_work }, 3, &PluginStatus::default(), Timestamp::UNIX_EPOCH);
        status.conditions.iter().map(|it| format!("{}={}:{}", it.condition_type, it.status, it.reason)).collect()
    }

    #[test]
    fn conditions_say_what_became_of_a_plugin() {
        let failed =
            |is_passing| Load::Failed { reason: "DigestMismatch", message: "it is another".to_owned(), is_passing };
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
                failed(false),
                None,
                &["Loaded=False:DigestMismatch", "Ready=False:DigestMismatch", "Stalled=True:DigestMismatch"],
            ),
            (
                failed(true),
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
    fn a_transition_time_stays_while_the_status_stays() {
        let ready = Standing { load: Load::Loaded, at_work: Some(at_work(&[])) };
        let first = status(&ready, 1, &PluginStatus::default(), Timestamp::UNIX_EPOCH);
        let later: Timestamp = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
        assert_eq!(status(&ready, 1, &first, later), first);
        let starting = Standing { at_work: None, ..ready };
        let times: Vec<_> =
            status(&starting, 1, &first, later).conditions.into_iter().map(|it| it.last_transition_time).collect();
        assert_eq!(times, ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z", "1970-01-01T01:00:00Z"]);
    }
}
