//! Jobs through their life: as large as they may be, at their end, and at their limits.

use crate::{NOW, children, job, master_and_workers, with};
use pilothouse_sdk::testing::Case;
use pilothouse_sdk::{Condition, ConditionStatus, Error};
use pytorch_job::reconcile;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// A job with its children, and what the host does with answers.
struct Host {
    job: Value,
    children: Vec<Value>,
    now: String,
    /// Those of the last answer.
    conditions: Vec<Condition>,
    /// How many children were made so far.
    made: usize,
}

impl Host {
    fn new(job: Value) -> Self {
        Self { job, children: Vec::new(), now: NOW.to_owned(), conditions: Vec::new(), made: 0 }
    }

    /// Carries out one answer after the other, until one changes nothing.
    fn reconcile(&mut self) -> Result<(), Error> {
        loop {
            let case = Case::of(&self.job).now(&self.now);
            let answer = self.children.iter().fold(case, |case, child| case.child(child)).run(reconcile)?;
            let bytes: usize = answer.response.children.iter().flatten().map(|child| child.object.len()).sum();
            let bytes = bytes + answer.response.status.as_ref().map_or(0, String::len);
            assert!(bytes < MAX_ANSWER - MAX_ANSWER / 8, "{bytes} bytes with {} children", self.children.len());
            self.conditions.clone_from(&answer.response.conditions);
            let before = self.children.clone();
            if answer.response.children.is_some() {
                self.carry_out(children(&answer));
            }
            if self.children == before {
                return Ok(());
            }
        }
    }

    /// Makes exactly these children exist. Those that exist stay as they are, but for ConfigMaps.
    fn carry_out(&mut self, returned: Vec<Value>) {
        let key = |child: &Value| (child["kind"].to_string(), child["metadata"]["name"].to_string());
        let mut existing: BTreeMap<_, _> = self.children.drain(..).map(|child| (key(&child), child)).collect();
        for mut child in returned {
            let there = existing.remove(&key(&child)).filter(|there| child.get("data").is_none() || *there == child);
            // A child that is to be kept has nothing but its name.
            let is_whole = child.get("spec").is_some() || child.get("data").is_some();
            if child["kind"] == "Pod" {
                child["metadata"]["uid"] = json!(format!("00000000-0000-0000-0000-{:012}", self.made));
                self.made += 1;
            }
            self.children.extend(there.or(Some(child).filter(|_| is_whole)));
        }
    }

    fn pods_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.children.iter_mut().filter(|child| child["kind"] == "Pod")
    }

    fn names(&self, kind: &str) -> Vec<&str> {
        let of_kind = self.children.iter().filter(|child| child["kind"] == kind);
        of_kind.filter_map(|child| child["metadata"]["name"].as_str()).collect()
    }

    /// Sets the status of a Pod.
    fn is(&mut self, pod: &str, status: Value) {
        self.pods_mut()
            .filter(|child| child["metadata"]["name"] == pod)
            .for_each(|child| child["status"] = status.clone());
    }

    /// The message of a condition, if it is true.
    fn condition(&self, condition_type: &str) -> Option<&str> {
        let is_true = |it: &&Condition| it.condition_type == condition_type && it.status == ConditionStatus::IsTrue;
        self.conditions.iter().find(is_true).map(|condition| condition.message.as_str())
    }

    /// A job of which all Pods run.
    fn running(job: Value) -> Result<Self, Error> {
        let mut host = Self::new(job);
        host.reconcile()?;
        host.pods_mut().for_each(|pod| pod["status"] = json!({ "phase": "Running" }));
        host.reconcile()?;
        Ok(host)
    }
}

#[test]
fn the_largest_job_fits_into_each_answer_whatever_its_pods_say() -> Result<(), Error> {
    let mut object = job(master_and_workers(499));
    object["metadata"]["name"] = json!("a".repeat(52));
    let mut host = Host::new(object);
    host.reconcile()?;
    for status in [
        json!({ "phase": "Running" }),
        json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "\"no\" ".repeat(100) },
        ] }),
        json!({ "phase": "Failed", "reason": "Evicted", "message": "\"no\" ".repeat(100) }),
    ] {
        host.pods_mut().for_each(|pod| pod["status"] = status.clone());
        host.reconcile()?;
        assert_eq!((host.names("Pod").len(), host.names("Service").len()), (500, 500), "{status}");
    }
    Ok(())
}

#[test]
fn the_clean_pod_policy_says_which_pods_and_services_stay() -> Result<(), Error> {
    for (policy, stay) in [
        (None, vec!["mnist-master-0", "mnist-worker-0", "mnist-worker-1"]),
        (Some("None"), vec!["mnist-master-0", "mnist-worker-0", "mnist-worker-1"]),
        (Some("Running"), vec!["mnist-master-0", "mnist-worker-1"]),
        (Some("All"), vec![]),
    ] {
        let run_policy = json!({ "runPolicy": { "cleanPodPolicy": policy } });
        let mut host = Host::running(job(with(master_and_workers(2), run_policy)))?;
        for pod in ["mnist-master-0", "mnist-worker-1"] {
            host.is(pod, json!({ "phase": "Succeeded" }));
        }
        host.reconcile()?;
        assert!(host.condition("Succeeded").is_some(), "{policy:?}");
        for kind in ["Pod", "Service"] {
            let mut names = host.names(kind);
            names.sort_unstable();
            assert_eq!(names, stay, "{policy:?} {kind}");
        }
    }
    Ok(())
}

#[test]
fn a_job_fails_at_its_active_deadline() -> Result<(), Error> {
    let run_policy = json!({ "runPolicy": { "activeDeadlineSeconds": 60 } });
    let mut host = Host::running(job(with(master_and_workers(1), run_policy)))?;
    "2026-01-01T00:00:59Z".clone_into(&mut host.now);
    host.reconcile()?;
    assert_eq!(host.condition("Failed"), None);
    "2026-01-01T00:01:00Z".clone_into(&mut host.now);
    host.reconcile()?;
    let message = host.condition("Failed").unwrap_or_default();
    assert_eq!(message, "the job ran longer than its activeDeadlineSeconds of 60");
    assert_eq!(host.names("Pod"), Vec::<&str>::new());
    Ok(())
}

#[test]
fn a_job_fails_when_a_restart_goes_beyond_the_backoff_limit() -> Result<(), Error> {
    for (limit, restarts, fails) in [(None, 9, false), (Some(0), 1, true), (Some(2), 2, false), (Some(2), 3, true)] {
        let run_policy = json!({ "runPolicy": { "backoffLimit": limit } });
        let mut host = Host::running(job(with(master_and_workers(1), run_policy)))?;
        let ended = json!({ "exitCode": 1, "startedAt": NOW, "finishedAt": "2026-01-01T00:00:30Z" });
        let container = json!({
            "name": "pytorch", "restartCount": restarts, "state": { "running": {} }, "lastState": { "terminated": ended },
        });
        host.is("mnist-worker-0", json!({ "phase": "Running", "containerStatuses": [container] }));
        host.reconcile()?;
        assert_eq!(host.condition("Failed").is_some(), fails, "{limit:?} {restarts}");
    }
    Ok(())
}
