//! What becomes of Pods, which the node does that they are on: they start, run, and end as their containers say, or are stopped when they
//! are deleted. Pure.

use serde_json::{Value, json};

/// What happens next to a Pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// Its status is changed by this merge patch.
    Status(Value),
    /// It has stopped, and is gone unless something holds it.
    Gone,
}

/// What happens next to a Pod; none if nothing does.
pub(super) fn next(pod: &Value, now: &str) -> Option<Next> {
    let metadata = &pod["metadata"];
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if !metadata["deletionTimestamp"].is_null() {
        let has_grace = metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds > 0);
        return has_grace.then_some(Next::Gone);
    }
    match phase {
        "Pending" => Some(Next::Status(status("Running", true, json!({"running": {"startedAt": now}}), pod))),
        "Running" => {
            let (phase, code) = if fails(pod) { ("Failed", 1) } else { ("Succeeded", 0) };
            let reason = if code == 0 { "Completed" } else { "Error" };
            let end = json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}});
            Some(Next::Status(status(phase, false, end, pod)))
        }
        _ => None,
    }
}

/// Whether the container ends with an error.
fn fails(pod: &Value) -> bool {
    pod["spec"]["containers"][0]["command"][0] == "false"
}

fn status(phase: &str, is_ready: bool, state: Value, pod: &Value) -> Value {
    let container = &pod["spec"]["containers"][0];
    let status = if is_ready { "True" } else { "False" };
    json!({
        "phase": phase,
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": status}],
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": container["image"],
            "ready": is_ready, "restartCount": 0, "state": state,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(phase: &str, command: &str) -> Value {
        json!({"metadata": {}, "spec": {"containers": [{"command": [command]}]}, "status": {"phase": phase}})
    }

    #[test]
    fn a_pod_starts_runs_and_ends_as_its_container_does() {
        for (phase, command, expected) in [
            ("Pending", "true", Some("Running")),
            ("Running", "true", Some("Succeeded")),
            ("Running", "false", Some("Failed")),
            ("Succeeded", "true", None),
            ("Failed", "false", None),
        ] {
            let found = next(&pod(phase, command), "now").map(|next| match next {
                Next::Status(status) => status["phase"].as_str().unwrap_or_default().to_owned(),
                Next::Gone => "gone".to_owned(),
            });
            assert_eq!(found.as_deref(), expected, "{phase} {command}");
        }
    }

    #[test]
    fn a_deleted_pod_is_stopped_once() {
        let deleted = |grace: i64| {
            let mut pod = pod("Running", "true");
            pod["metadata"] = json!({"deletionTimestamp": "now", "deletionGracePeriodSeconds": grace});
            pod
        };
        assert_eq!(next(&deleted(30), "now"), Some(Next::Gone));
        // Something else holds it.
        assert_eq!(next(&deleted(0), "now"), None);
    }
}
