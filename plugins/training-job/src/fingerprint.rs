//! Names the form of a job's Pods. It follows what the user says and nothing else: a new version of the plugin, which may
//! make Pods of another form, must not restart a job that has been training for days.

use crate::api::TrainingJobSpec;
use crate::restart_policy::pod_restart_policy;

/// The form in which this version of the plugin makes Pods out of a spec. Whoever changes that form raises it; Pods of an
/// older form are left alone until something must be replaced anyway.
pub const FORM: u32 = 1;

/// The annotation of a Pod that holds the form it was made in and the fingerprint of the spec it was made for.
pub const ANNOTATION: &str = "ml.example.com/template";

/// The fingerprint of everything in a spec that shapes the Pods.
pub fn fingerprint(spec: &TrainingJobSpec) -> String {
    let mut shape = spec.clone();
    shape.run_policy = None;
    shape.success_policy = None;
    // Workers of an elastic job do not know how many they are.
    if shape.elastic.is_some() {
        shape.workers = 0;
    }
    // A spec is plain values and always has a text.
    let text = serde_json::to_string(&shape).unwrap_or_default();
    let hash = fnv(fnv(OFFSET, text.as_bytes()), pod_restart_policy(spec).as_bytes());
    format!("{hash:016x}")
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which unlike the standard library's hashes is the same in every version.
fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What a Pod's annotation says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is as this version makes it for the spec.
    Same,
    /// It was made for the same spec by another version of the plugin.
    OtherForm,
    /// It was made for another spec.
    OtherSpec,
}

/// The annotation's value for Pods that are made now.
pub fn annotation(fingerprint: &str) -> String {
    format!("{FORM}-{fingerprint}")
}

/// Compares a Pod's annotation. One that is not there says nothing: somebody took it off, and it is put back.
pub fn compare(found: Option<&str>, fingerprint: &str) -> Match {
    match found.and_then(|found| found.split_once('-')) {
        None => Match::Same,
        Some((_, of)) if of != fingerprint => Match::OtherSpec,
        Some((form, _)) if form.parse() == Ok(FORM) => Match::Same,
        Some(_) => Match::OtherForm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Elastic, Framework, RestartPolicy, RunPolicy, SuccessPolicy};
    use std::collections::BTreeMap;

    fn spec() -> TrainingJobSpec {
        TrainingJobSpec {
            framework: Framework::Pytorch,
            workers: 4,
            image: "i".to_owned(),
            command: vec!["c".to_owned()],
            ..TrainingJobSpec::default()
        }
    }

    #[test]
    fn follows_what_shapes_pods_and_nothing_else() {
        type Change = fn(&mut TrainingJobSpec);
        let policy = |policy: RunPolicy| Some(policy);
        let cases: &[(&str, bool, Change)] = &[
            ("image", true, |s| s.image.push('2')),
            ("workers", true, |s| s.workers = 5),
            ("port", true, |s| s.port = Some(1)),
            ("hyperparameters", true, |s| s.hyperparameters = Some(serde_json::Map::new())),
            ("success policy", false, |s| s.success_policy = Some(SuccessPolicy::ChiefWorker)),
        ];
        for (name, changes, change) in cases {
            let mut changed = spec();
            change(&mut changed);
            assert_eq!(fingerprint(&changed) != fingerprint(&spec()), *changes, "{name}");
        }
        let with = |run_policy| fingerprint(&TrainingJobSpec { run_policy, ..spec() });
        assert_eq!(with(policy(RunPolicy { suspend: Some(true), ..RunPolicy::default() })), with(None));
        let always = RunPolicy { restart_policy: Some(RestartPolicy::Always), ..RunPolicy::default() };
        assert_ne!(with(policy(always)), with(None), "the kubelet does something else");
    }

    #[test]
    fn an_elastic_job_can_be_scaled_without_new_pods() {
        let elastic = Elastic { min_workers: 1, max_workers: 8, max_restarts: None, rendezvous_conf: BTreeMap::new() };
        let of = |workers| fingerprint(&TrainingJobSpec { workers, elastic: Some(elastic.clone()), ..spec() });
        assert_eq!(of(2), of(8));
        assert_ne!(of(2), fingerprint(&spec()));
    }

    #[test]
    fn is_the_same_in_every_version() {
        assert_eq!(fingerprint(&spec()), "0da2c4ebdd3e131f");
    }

    #[test]
    fn tells_other_specs_from_other_forms() {
        let cases = [
            (None, Match::Same),
            (Some("nonsense"), Match::Same),
            (Some("1-ab"), Match::Same),
            (Some("0-ab"), Match::OtherForm),
            (Some("2-ab"), Match::OtherForm),
            (Some("1-cd"), Match::OtherSpec),
            (Some("0-cd"), Match::OtherSpec),
        ];
        for (found, expected) in cases {
            assert_eq!(compare(found, "ab"), expected, "{found:?}");
        }
    }
}
