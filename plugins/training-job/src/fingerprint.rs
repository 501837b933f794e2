//! The fingerprint of a job's Pod template. It follows what the user writes and nothing else: a new version of the plugin may
//! make other Pods of the same spec, and must not restart a job that has been training for days.

use crate::api::TrainingJobSpec;
use crate::restart_policy::pod_restart_policy;
use pilothouse_pods::hash::{FNV_OFFSET_BASIS, fnv_1a};
use pilothouse_pods::observed_pod::ObservedPod;

/// The version of the template by which this plugin makes Pods of a spec. Raise it with every change of the template. Pods of
/// another template version are left alone until something must be replaced anyway.
pub const TEMPLATE_VERSION: u32 = 1;

/// The annotation of a Pod with its template version and the fingerprint of the spec it was made from.
pub const ANNOTATION: &str = "ml.example.com/template";

/// The fingerprint of those fields of a spec that Pods are made from.
pub fn fingerprint(spec: &TrainingJobSpec) -> String {
    let mut template = spec.clone();
    template.run_policy = None;
    template.success_policy = None;
    // Pods of an elastic job do not contain the number of workers, so scaling must not replace them.
    if template.elastic.is_some() {
        template.workers = 0;
    }
    // Cannot fail: a spec consists of plain values.
    let json = serde_json::to_string(&template).unwrap_or_default();
    let hash = fnv_1a(fnv_1a(FNV_OFFSET_BASIS, json.as_bytes()), pod_restart_policy(spec).as_bytes());
    format!("{hash:016x}")
}

/// How the template of an observed Pod compares with that of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateMatch {
    /// The Pod is as this plugin would make it now.
    Current,
    /// The Pod was made from the same spec by another template version.
    OtherTemplateVersion,
    /// The Pod was made from another spec.
    OtherSpec,
}

/// The annotation's value for Pods that are made now.
pub fn annotation(fingerprint: &str) -> String {
    format!("{TEMPLATE_VERSION}-{fingerprint}")
}

/// How the template of an observed Pod compares with that of its job.
pub fn template_match(pod: &ObservedPod, fingerprint: &str) -> TemplateMatch {
    compare(pod.annotation(ANNOTATION), fingerprint)
}

/// Compares the annotation of an observed Pod with the fingerprint of its job.
fn compare(annotation: Option<&str>, fingerprint: &str) -> TemplateMatch {
    match annotation.and_then(|annotation| annotation.split_once('-')) {
        // Somebody removed or damaged the annotation. That alone must not restart the job; the host puts it back.
        None => TemplateMatch::Current,
        Some((_, other)) if other != fingerprint => TemplateMatch::OtherSpec,
        Some((version, _)) if version.parse() == Ok(TEMPLATE_VERSION) => TemplateMatch::Current,
        Some(_) => TemplateMatch::OtherTemplateVersion,
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

    /// The fingerprint of the spec after a change.
    fn after(change: impl FnOnce(&mut TrainingJobSpec)) -> String {
        let mut changed = spec();
        change(&mut changed);
        fingerprint(&changed)
    }

    #[test]
    fn changes_with_every_field_that_pods_are_made_from() {
        let always = RunPolicy { restart_policy: Some(RestartPolicy::Always), ..RunPolicy::default() };
        let changed = [
            ("image", after(|spec| spec.image.push('2'))),
            ("workers", after(|spec| spec.workers = 5)),
            ("port", after(|spec| spec.port = Some(1))),
            ("hyperparameters", after(|spec| spec.hyperparameters = Some(serde_json::Map::new()))),
            ("the kubelet's restart policy", after(|spec| spec.run_policy = Some(always))),
        ];
        for (field, changed) in changed {
            assert_ne!(changed, fingerprint(&spec()), "{field}");
        }
    }

    #[test]
    fn stays_the_same_when_any_other_field_changes() {
        let suspended = RunPolicy { suspend: Some(true), ..RunPolicy::default() };
        let unchanged = [
            ("success policy", after(|spec| spec.success_policy = Some(SuccessPolicy::ChiefWorker))),
            ("suspend", after(|spec| spec.run_policy = Some(suspended))),
        ];
        for (field, unchanged) in unchanged {
            assert_eq!(unchanged, fingerprint(&spec()), "{field}");
        }
    }

    #[test]
    fn an_elastic_job_can_be_scaled_without_new_pods() {
        let elastic = Elastic { min_workers: 1, max_workers: 8, max_restarts: None, rendezvous_conf: BTreeMap::new() };
        let of = |workers| fingerprint(&TrainingJobSpec { workers, elastic: Some(elastic.clone()), ..spec() });
        assert_eq!(of(2), of(8));
        assert_ne!(of(2), fingerprint(&spec()));
    }

    #[test]
    fn is_the_same_in_every_version_of_the_plugin() {
        assert_eq!(fingerprint(&spec()), "0da2c4ebdd3e131f");
    }

    #[test]
    fn tells_other_specs_from_other_template_versions() {
        let cases = [
            (None, TemplateMatch::Current),
            (Some("nonsense"), TemplateMatch::Current),
            (Some("1-ab"), TemplateMatch::Current),
            (Some("0-ab"), TemplateMatch::OtherTemplateVersion),
            (Some("2-ab"), TemplateMatch::OtherTemplateVersion),
            (Some("1-cd"), TemplateMatch::OtherSpec),
            (Some("0-cd"), TemplateMatch::OtherSpec),
        ];
        for (annotation, expected) in cases {
            assert_eq!(compare(annotation, "ab"), expected, "{annotation:?}");
        }
    }
}
