//! What nodes do with the Pods of the simulated cluster, and those who delete and evict them. Pods end as a kubelet ends them: a
//! deleted one first gets the phase that its process ends with, and then goes.

use super::{ChildKey, SimulatedCluster, is_deleting, parse};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

/// The grace period of Pods that do not say another one, in seconds.
pub const GRACE_PERIOD: i64 = 30;

impl SimulatedCluster {
    /// Sets the status of a Pod, in YAML's flow form.
    pub fn set_pod_status(&mut self, pod: &str, status: &str) -> Result<(), Error> {
        self.child_mut("Pod", pod)?["status"] = parse(&format!("{{{status}}}"))?;
        Ok(())
    }

    /// Sets the phase of all Pods that are not being deleted.
    pub fn set_phase_of_all_pods(&mut self, phase: &str) {
        for pod in self.pods_mut().filter(|pod| !is_deleting(pod)) {
            pod["status"] = json!({ "phase": phase });
        }
    }

    /// Lets the container of a Pod end with an exit code.
    pub fn end_pod(&mut self, pod: &str, exit_code: i32) -> Result<(), Error> {
        let now = self.time_after(0);
        end(self.child_mut("Pod", pod)?, exit_code, &now);
        Ok(())
    }

    /// Lets the container of a Pod fail with an exit code.
    pub fn fail_pod(&mut self, pod: &str, exit_code: i32) -> Result<(), Error> {
        self.end_pod(pod, exit_code)?;
        self.child_mut("Pod", pod)?["status"]["phase"] = json!("Failed");
        Ok(())
    }

    /// Ends the container of a Pod with an exit code and runs it again in its place.
    pub fn restart_container(&mut self, pod: &str, exit_code: i32) -> Result<(), Error> {
        let now = self.time_after(0);
        let pod = self.child_mut("Pod", pod)?;
        let before = pod["status"]["containerStatuses"][0].clone();
        let started = before.pointer("/state/running/startedAt").cloned();
        let started = started.unwrap_or_else(|| pod["metadata"]["creationTimestamp"].clone());
        let ended = json!({ "exitCode": exit_code, "reason": "Error", "startedAt": started, "finishedAt": now });
        pod["status"] = json!({ "phase": "Running", "containerStatuses": [{
            "name": container(pod),
            "restartCount": before["restartCount"].as_u64().unwrap_or_default() + 1,
            "state": { "running": { "startedAt": now } },
            "lastState": { "terminated": ended },
        }] });
        Ok(())
    }

    /// Deletes a Pod as somebody other than the host, with its grace period.
    pub fn begin_deletion(&mut self, pod: &str) -> Result<(), Error> {
        let ends_at = self.time_after(GRACE_PERIOD);
        mark_deleted(self.child_mut("Pod", pod)?, &ends_at);
        Ok(())
    }

    /// Marks a Pod as the eviction API, the scheduler or a controller of taints does, and deletes it.
    pub fn evict(&mut self, pod: &str, reason: &str) -> Result<(), Error> {
        self.disrupt(pod, reason)?;
        self.begin_deletion(pod)
    }

    /// Marks a Pod as about to be ended by the cluster.
    pub fn disrupt(&mut self, pod: &str, reason: &str) -> Result<(), Error> {
        let now = self.time_after(0);
        let condition =
            json!({ "type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": now });
        self.child_mut("Pod", pod)?["status"]["conditions"] = json!([condition]);
        Ok(())
    }

    /// Lets all processes of Pods that are being deleted end with an exit code: 0 where they write a checkpoint on SIGTERM.
    pub fn end_deleted_pods(&mut self, exit_code: i32) {
        let now = self.time_after(0);
        for pod in self.pods_mut().filter(|pod| is_deleting(pod)) {
            end(pod, exit_code, &now);
        }
    }

    /// Removes all Pods that have a `deletionTimestamp`.
    pub fn finish_deletions(&mut self) {
        self.children.retain(|_, child| !is_deleting(child));
    }

    /// Deletes a Pod at once: somebody forces it, or its node is gone.
    pub fn delete_pod(&mut self, pod: &str) {
        self.children.remove(&ChildKey::new("Pod", pod));
    }

    /// All Pods, to be changed.
    pub fn pods_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.children.iter_mut().filter(|(key, _)| key.kind == "Pod").map(|(_, pod)| pod)
    }
}

/// Gives a Pod the time at which its grace period ends.
pub fn mark_deleted(pod: &mut Value, ends_at: &str) {
    pod["metadata"]["deletionTimestamp"] = json!(ends_at);
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(GRACE_PERIOD);
}

/// Whether a Pod has ended.
pub fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// The container that trains is the first one.
fn container(pod: &Value) -> Value {
    pod["spec"]["containers"][0]["name"].clone()
}

fn end(pod: &mut Value, exit_code: i32, now: &str) {
    let ended = json!({
        "exitCode": exit_code, "startedAt": pod["metadata"]["creationTimestamp"], "finishedAt": now,
    });
    let conditions = pod["status"]["conditions"].take();
    pod["status"] = json!({
        "phase": if exit_code == 0 { "Succeeded" } else { "Failed" },
        "containerStatuses": [{ "name": container(pod), "state": { "terminated": ended } }],
    });
    if conditions.is_array() {
        pod["status"]["conditions"] = conditions;
    }
}
