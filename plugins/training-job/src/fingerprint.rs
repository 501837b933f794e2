//! The fingerprint of a job's Pod template. It follows what the user writes and nothing else: a new version of the plugin may
//! make other Pods of the same spec, and must not restart a job that has been training for days.

use crate::api::TrainingJobSpec;
use crate::restart_policy::{pod_restart_policy, restart_policy};
use pilothouse_pods::hash::{FNV_OFFSET_BASIS, fnv_1a};
use pilothouse_pods::observed_pod::ObservedPod;

/// The annotation of a Pod with the fingerprint of the spec it was made from.
pub const ANNOTATION: &str = "ml.example.com/template";

/// The fingerprint of those fields of a spec that Pods are made from.
pub fn fingerprint(spec: &TrainingJobSpec) -> String {
    let mut template = spec.clone();
    template.run_policy = None;
    template.success_policy = None;
    // The scheduler reads these of the PodGroup, and no Pod has them.
    if let Some(gang) = &mut template.gang_scheduling {
        (gang.min_member, gang.queue, gang.schedule_timeout_seconds) = (None, None, None);
    }
    // Pods of an elastic job do not contain the number of workers, so scaling must not replace them.
    if template.elastic.is_some() {
        template.workers = 0;
    }
    // Cannot fail: a spec consists of plain values.
    let json = serde_json::to_string(&template).unwrap_or_default();
    let of_pods = pod_restart_policy(spec, restart_policy(spec));
    let hash = fnv_1a(fnv_1a(FNV_OFFSET_BASIS, json.as_bytes()), of_pods.as_bytes());
    format!("{hash:016x}")
}

/// Whether a Pod was made from another spec than that of this fingerprint.
pub fn is_of_other_spec(pod: &ObservedPod, fingerprint: &str) -> bool {
    // Somebody may have removed the annotation. That alone must not restart the job.
    pod.annotation(ANNOTATION).is_some_and(|of_pod| of_pod != fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Elastic, Framework, GangScheduler, GangScheduling, RestartScope, RunPolicy, SuccessPolicy};
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
        let alone = RunPolicy { restart_scope: Some(RestartScope::Worker), ..RunPolicy::default() };
        let changed = [
            ("image", after(|spec| spec.image.push('2'))),
            ("workers", after(|spec| spec.workers = 5)),
            ("port", after(|spec| spec.port = Some(1))),
            ("hyperparameters", after(|spec| spec.hyperparameters = Some(serde_json::Map::new()))),
            ("the kubelet's restart policy", after(|spec| spec.run_policy = Some(alone))),
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
    fn a_gang_may_change_its_queue_and_size_but_not_its_scheduler() {
        let gang = |scheduler| GangScheduling {
            scheduler,
            scheduler_name: None,
            min_member: None,
            queue: None,
            schedule_timeout_seconds: None,
        };
        let of = |gang| after(|spec| spec.gang_scheduling = Some(gang));
        let volcano = of(gang(GangScheduler::Volcano));
        assert_eq!(of(GangScheduling { queue: Some("q".to_owned()), ..gang(GangScheduler::Volcano) }), volcano);
        assert_eq!(of(GangScheduling { min_member: Some(3), ..gang(GangScheduler::Volcano) }), volcano);
        assert_ne!(of(gang(GangScheduler::SchedulerPlugins)), volcano);
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
}
