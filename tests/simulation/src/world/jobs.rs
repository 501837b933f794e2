//! The controller of Jobs: what it does next about a Job and its Pods. It creates Pods, counts those that have ended, and says in
//! conditions how the Job ended, in the order of the real one. Pure. Pods run by themselves (`pods.rs`).
//!
//! It does not wait longer after each failure, and knows neither indices nor policies for failures and successes, nor deadlines.

use serde_json::{Value, json};

/// Holds a Pod until its Job has counted it.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// A Pod is created.
    Create(Value),
    /// The Pod with this name is deleted.
    Delete(String),
    /// The Pod with this name is no longer held.
    Release(String),
    /// The status of the Job is changed by this merge patch.
    Status(Value),
}

/// What is done next about a Job, of which these are the Pods; none if there is nothing to do.
pub(super) fn next(job: &Value, pods: &[&Value], now: &str) -> Option<Next> {
    let job = Job { value: job, pods, now };
    if job.has("Complete") || job.has("Failed") {
        return pods.iter().find(|pod| is_held(pod)).map(|pod| Next::Release(name(pod)));
    }
    job.count().or_else(|| job.judge()).or_else(|| job.run())
}

/// A Pod that no Job counts any more, for its owner is gone or has released it.
pub(super) fn release_orphan(pod: &Value, has_job: bool) -> Option<Next> {
    (is_held(pod) && !has_job).then(|| Next::Release(name(pod)))
}

/// A Job and its Pods at a moment.
struct Job<'a> {
    value: &'a Value,
    pods: &'a [&'a Value],
    now: &'a str,
}

impl Job<'_> {
    /// Counts the Pods that have ended. Each is noted in the status before it is let go, and counted after that, so that none is counted
    /// twice.
    fn count(&self) -> Option<Next> {
        let uncounted = &self.value["status"]["uncountedTerminatedPods"];
        let noted = |list: &str| uncounted[list].as_array().cloned().unwrap_or_default();
        let (succeeded, failed) = (noted("succeeded"), noted("failed"));
        let is_noted = |pod: &Value| [&succeeded, &failed].iter().any(|list| list.contains(&pod["metadata"]["uid"]));
        let held = || self.pods.iter().filter(|pod| is_held(pod));
        let ended = held().find_map(|pod| Some((pod, self.end_of(pod).filter(|_| !is_noted(pod))?)));
        if let Some((pod, list)) = ended {
            let mut all = noted(list);
            all.push(pod["metadata"]["uid"].clone());
            return Some(Next::Status(json!({"uncountedTerminatedPods": {list: all}})));
        }
        if let Some(pod) = held().find(|pod| is_noted(pod) || (is_deleting(pod) && self.gives_up_pods())) {
            return Some(Next::Release(name(pod)));
        }
        (!succeeded.is_empty() || !failed.is_empty()).then(|| {
            Next::Status(json!({
                "succeeded": self.status("succeeded") + succeeded.len() as u64,
                "failed": self.status("failed") + failed.len() as u64,
                "uncountedTerminatedPods": {"succeeded": null, "failed": null},
            }))
        })
    }

    /// As what a Pod is counted; none if it goes on, or is not counted.
    fn end_of(&self, pod: &Value) -> Option<&'static str> {
        match pod["status"]["phase"].as_str().unwrap_or_default() {
            "Succeeded" => Some("succeeded"),
            "Failed" => Some("failed"),
            // One that somebody deletes will never end by itself.
            _ => (is_deleting(pod) && !self.gives_up_pods()).then_some("failed"),
        }
    }

    /// Says whether the Job has reached its end, and ends it once all of its Pods have.
    fn judge(&self) -> Option<Next> {
        let (succeeded, failed) = (self.status("succeeded"), self.status("failed"));
        let ends = [
            ("SuccessCriteriaMet", "Complete", "CompletionsReached", succeeded >= self.spec("completions")),
            ("FailureTarget", "Failed", "BackoffLimitExceeded", failed > self.spec("backoffLimit")),
        ];
        let (target, end, reason, _) = ends.into_iter().find(|(target, _, _, is_met)| self.has(target) || *is_met)?;
        if !self.has(target) {
            return Some(self.with_condition(target, reason, json!({})));
        }
        if let Some(pod) = self.active().next() {
            return Some(Next::Delete(name(pod)));
        }
        // Pods that are going are no longer the Job's concern, but it ends only after them.
        let is_over = !self.pods.iter().any(|pod| is_deleting(pod) && end_by_itself(pod).is_none());
        let ended = json!({"active": null, "ready": 0, "terminating": 0});
        is_over.then(|| {
            let completed = if end == "Complete" { json!({"completionTime": self.now}) } else { json!({}) };
            self.with_condition(end, reason, merged(ended, &completed))
        })
    }

    /// Creates and deletes Pods until there are as many as there shall be, and tells their numbers.
    fn run(&self) -> Option<Next> {
        if self.is_deleting() || self.has_target() {
            return self.tell(json!({}));
        }
        if self.is_suspended() {
            let pod = self.active().next();
            let suspended = || self.with_condition("Suspended", "JobSuspended", json!({"startTime": null}));
            let is_new = !self.has("Suspended");
            return pod
                .map(|pod| Next::Delete(name(pod)))
                .or_else(|| is_new.then(suspended))
                .or_else(|| self.tell(json!({})));
        }
        if self.has("Suspended") {
            let conditions = self.conditions().map(|condition| match condition["type"] == "Suspended" {
                true => self.condition("Suspended", "False", "JobResumed"),
                false => condition.clone(),
            });
            let conditions: Vec<_> = conditions.collect();
            return Some(Next::Status(json!({"conditions": conditions, "startTime": self.now})));
        }
        let left = self.spec("completions").saturating_sub(self.status("succeeded"));
        let (wanted, active) = (self.spec("parallelism").min(left) as usize, self.active().count());
        if active > wanted {
            return self.active().last().map(|pod| Next::Delete(name(pod)));
        }
        if active < wanted {
            return Some(Next::Create(self.pod()));
        }
        let is_new = self.value["status"]["startTime"].is_null();
        self.tell(if is_new { json!({"startTime": self.now}) } else { json!({}) })
    }

    /// Tells the numbers of the Pods, and more, if anything of it is new.
    fn tell(&self, more: Value) -> Option<Next> {
        let ready = self.active().filter(|pod| pod["status"]["phase"] == "Running").count();
        let terminating = self.pods.iter().filter(|pod| is_deleting(pod) && end_by_itself(pod).is_none()).count();
        let active = self.active().count();
        let numbers = [("active", active), ("ready", ready), ("terminating", terminating)];
        let is_told = |(name, number): &(&str, usize)| self.status(name) == *number as u64;
        let is_new = more.as_object().is_some_and(|more| !more.is_empty()) || !numbers.iter().all(is_told);
        is_new
            .then(|| Next::Status(merged(json!({"active": active, "ready": ready, "terminating": terminating}), &more)))
    }

    fn with_condition(&self, name: &str, reason: &str, more: Value) -> Next {
        let others = self.conditions().filter(|condition| condition["type"] != name).cloned();
        let conditions: Vec<_> = others.chain([self.condition(name, "True", reason)]).collect();
        Next::Status(merged(json!({"conditions": conditions}), &more))
    }

    fn condition(&self, name: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": name, "status": status, "reason": reason, "message": reason,
            "lastProbeTime": self.now, "lastTransitionTime": self.now,
        })
    }

    /// A new Pod. It has its node from the beginning, for nobody else assigns any.
    fn pod(&self) -> Value {
        let (metadata, template) = (&self.value["metadata"], &self.value["spec"]["template"]);
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {
                "generateName": format!("{}-", metadata["name"].as_str().unwrap_or_default()),
                "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
                "finalizers": [TRACKING],
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        });
        pod["spec"]["nodeName"] = "node".into();
        pod
    }

    /// The Pods that have not ended and are not going.
    fn active(&self) -> impl Iterator<Item = &&Value> {
        self.pods.iter().filter(|pod| !is_deleting(pod) && end_by_itself(pod).is_none())
    }

    fn conditions(&self) -> impl Iterator<Item = &Value> {
        self.value["status"]["conditions"].as_array().into_iter().flatten()
    }

    fn has(&self, name: &str) -> bool {
        self.conditions().any(|condition| condition["type"] == name && condition["status"] == "True")
    }

    /// Whether Pods that are deleted are not counted, for the Job itself deletes them.
    fn gives_up_pods(&self) -> bool {
        self.is_suspended() || self.is_deleting() || self.has_target()
    }

    /// Whether the Job has reached its end, and only waits for its Pods to go.
    fn has_target(&self) -> bool {
        self.has("SuccessCriteriaMet") || self.has("FailureTarget")
    }

    fn is_suspended(&self) -> bool {
        self.value["spec"]["suspend"] == true
    }

    fn is_deleting(&self) -> bool {
        is_deleting(self.value)
    }

    fn spec(&self, name: &str) -> u64 {
        self.value["spec"][name].as_u64().unwrap_or(1)
    }

    fn status(&self, name: &str) -> u64 {
        self.value["status"][name].as_u64().unwrap_or_default()
    }
}

/// How a Pod has ended; none if it has not.
fn end_by_itself(pod: &Value) -> Option<&str> {
    pod["status"]["phase"].as_str().filter(|phase| ["Succeeded", "Failed"].contains(phase))
}

fn is_held(pod: &Value) -> bool {
    pod["metadata"]["finalizers"].as_array().is_some_and(|list| list.contains(&TRACKING.into()))
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.clone());
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Job and its Pods that get on by themselves.
    struct Life {
        job: Value,
        pods: Vec<Value>,
        seen: Vec<String>,
    }

    impl Life {
        fn of(spec: Value) -> Self {
            let job = json!({"metadata": {"name": "j", "uid": "1"}, "spec": spec, "status": {}});
            Self { job, pods: Vec::new(), seen: Vec::new() }
        }

        /// Does what is next until there is nothing to do, and notes what comes of it.
        fn go_on(&mut self) {
            while let Some(next) = next(&self.job, &self.pods.iter().collect::<Vec<_>>(), "now") {
                assert!(self.seen.len() < 100, "it never ends: {next:?}");
                let seen = self.carry_out(next);
                self.seen.push(seen);
            }
        }

        fn carry_out(&mut self, next: Next) -> String {
            match next {
                Next::Create(mut pod) => {
                    let name = format!("p{}", self.pods.len());
                    pod["metadata"]["name"] = name.as_str().into();
                    pod["metadata"]["uid"] = name.into();
                    pod["status"] = json!({"phase": "Pending"});
                    self.pods.push(pod);
                    "create".to_owned()
                }
                Next::Delete(name) => {
                    self.set(&name, |pod| pod["metadata"]["deletionTimestamp"] = "now".into());
                    "delete".to_owned()
                }
                Next::Release(name) => {
                    self.set(&name, |pod| pod["metadata"]["finalizers"] = Value::Null);
                    "release".to_owned()
                }
                Next::Status(status) => {
                    self.job["status"] = merged(self.job["status"].take(), &status);
                    let conditions = status["conditions"].as_array().and_then(|all| all.last());
                    conditions
                        .map_or_else(|| "status".to_owned(), |last| format!("{}={}", last["type"], last["status"]))
                }
            }
        }

        fn set(&mut self, name: &str, change: impl Fn(&mut Value)) {
            self.pods.iter_mut().filter(|pod| pod["metadata"]["name"] == name).for_each(change);
        }

        /// All Pods that have not ended get this far.
        fn get_to(&mut self, phase: &str) {
            let pods = self.pods.iter_mut().filter(|pod| end_by_itself(pod).is_none());
            pods.for_each(|pod| pod["status"]["phase"] = phase.into());
            self.go_on();
        }

        /// The node stops what is deleted.
        fn stop(&mut self) {
            self.pods.retain(|pod| !is_deleting(pod) || is_held(pod));
            self.go_on();
        }

        fn has(&self, name: &str) -> bool {
            Job { value: &self.job, pods: &[], now: "" }.has(name)
        }
    }

    #[test]
    fn a_job_completes_once_its_pods_have_ended_and_are_counted() {
        let mut life = Life::of(json!({"completions": 2, "parallelism": 1, "backoffLimit": 1}));
        life.go_on();
        assert_eq!(life.seen, ["create", "status"]);
        assert_eq!((life.job["status"]["active"].as_u64(), &life.job["status"]["startTime"]), (Some(1), &json!("now")));
        life.get_to("Running");
        assert_eq!(life.job["status"]["ready"], 1);
        life.get_to("Succeeded");
        assert_eq!((life.job["status"]["succeeded"].as_u64(), life.pods.len()), (Some(1), 2));
        life.seen.clear();
        life.get_to("Succeeded");
        let expected = ["status", "release", "status", "\"SuccessCriteriaMet\"=\"True\"", "\"Complete\"=\"True\""];
        assert_eq!(life.seen, expected);
        assert_eq!((life.job["status"]["succeeded"].as_u64(), &life.job["status"]["active"]), (Some(2), &Value::Null));
        assert!(!life.pods.iter().any(is_held));
    }

    #[test]
    fn a_job_fails_after_more_failures_than_its_limit() {
        let mut life = Life::of(json!({"completions": 1, "parallelism": 1, "backoffLimit": 1}));
        life.go_on();
        life.get_to("Failed");
        assert!(!life.has("FailureTarget") && life.pods.len() == 2);
        life.get_to("Failed");
        assert!(life.has("FailureTarget") && life.has("Failed") && !life.has("Complete"));
        assert_eq!(life.job["status"]["failed"], 2);
    }

    #[test]
    fn a_job_that_has_failed_waits_for_the_pods_that_it_stops_and_makes_no_more() {
        let mut life = Life::of(json!({"completions": 2, "parallelism": 2, "backoffLimit": 0}));
        life.go_on();
        life.pods[0]["status"]["phase"] = "Failed".into();
        life.go_on();
        assert!(life.has("FailureTarget") && !life.has("Failed") && is_deleting(&life.pods[1]), "{:?}", life.seen);
        life.stop();
        assert!(life.has("Failed") && life.pods.len() == 1);
        assert_eq!(life.job["status"]["failed"], 1);
    }

    #[test]
    fn a_suspended_job_has_no_pods_and_goes_on_once_it_is_resumed() {
        let mut life = Life::of(json!({"completions": 1, "parallelism": 1, "backoffLimit": 1}));
        life.go_on();
        life.job["spec"]["suspend"] = true.into();
        life.go_on();
        assert!(life.has("Suspended") && life.pods.iter().all(is_deleting));
        life.stop();
        assert!(life.pods.is_empty() && life.job["status"]["startTime"].is_null());
        assert_eq!(life.job["status"]["failed"].as_u64().unwrap_or_default(), 0);
        life.job["spec"]["suspend"] = false.into();
        life.go_on();
        assert!(!life.has("Suspended") && life.pods.len() == 1);
        life.get_to("Succeeded");
        assert!(life.has("Complete"));
    }
}
