//! What is wrong with the Pods of a server, in one sentence: the Pod, the container, and the words that help. It only looks while the
//! workload is not complete, so that Pods of a server at rest call no plugin.

use crate::model_volume::DOWNLOAD;
use crate::own_pods::{self, Between};
use crate::server_spec::Identity;
use pilothouse_pods::observed_pod::{ObservedPod, Trouble};
use pilothouse_pods::workload::Workload;
use pilothouse_sdk::Error;

/// The most bytes of a Pod's own message that are repeated.
const MAX_MESSAGE_BYTES: usize = 512;

/// What is wrong with the Pods of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodsTrouble {
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// What is wrong with the Pods that a workload controls; none if nothing is, or if they only start.
///
/// # Errors
/// A lookup fails.
pub fn look(identity: &Identity<'_>, workload: &Workload, between: &Between) -> Result<Option<PodsTrouble>, Error> {
    Ok(of(&own_pods::of(identity, workload, between)?))
}

/// What is wrong with these Pods: with the first one in trouble, and with how many others.
fn of(pods: &[ObservedPod]) -> Option<PodsTrouble> {
    let troubles: Vec<_> = pods.iter().filter_map(ObservedPod::trouble).collect();
    let first = troubles.first()?;
    let others = match troubles.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} more Pods)"),
    };
    Some(PodsTrouble { reason: reason(first), message: format!("{}{others}", sentence(first)) })
}

/// The reason as a condition may have it: a CamelCase word.
fn reason(trouble: &Trouble<'_>) -> String {
    let is_word = trouble.reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && trouble.reason.chars().all(|c| c.is_ascii_alphanumeric());
    match (trouble.container, is_word) {
        // Whatever the kubelet calls it: the model cannot be fetched.
        (Some(DOWNLOAD), _) => "ModelDownloadFailed".to_owned(),
        (_, true) => trouble.reason.to_owned(),
        (_, false) => "PodFailed".to_owned(),
    }
}

fn sentence(trouble: &Trouble<'_>) -> String {
    let Trouble { pod, container, reason, message, exit_code } = *trouble;
    let place = match container {
        Some(DOWNLOAD) => format!("Pod {pod}, download of the model"),
        Some(container) => format!("Pod {pod}, container {container}"),
        None => format!("Pod {pod}"),
    };
    let code = match exit_code {
        // As the command `timeout` says it.
        Some(124) if container == Some(DOWNLOAD) => ", its deadline passed".to_owned(),
        Some(code) => format!(", exit code {code}"),
        None => String::new(),
    };
    // A terminal would obey its control characters.
    let message = message.trim().replace(char::is_control, " ");
    let cut = &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)];
    let said = if cut.is_empty() { String::new() } else { format!(": {cut}") };
    format!("{place}: {reason}{code}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &[(&str, &str, &str)] = &[
        (
            "[{metadata: {name: a}, status: {phase: Pending, containerStatuses: [{name: model, state: {waiting: \
              {reason: ImagePullBackOff, message: no such image}}}]}}]",
            "ImagePullBackOff",
            "Pod a, container model: ImagePullBackOff: no such image",
        ),
        (
            "[{metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: model, lastState: {terminated: \
              {exitCode: 1, reason: Error, message: \"one\\n\\e[31mtwo\"}}}]}}]",
            "Error",
            "Pod a, container model: Error, exit code 1: one  [31mtwo",
        ),
        (
            "[{metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: model, lastState: {terminated: \
              {exitCode: 137, reason: OOMKilled}}}]}}]",
            "OOMKilled",
            "Pod a, container model: OOMKilled, exit code 137",
        ),
        (
            "[{metadata: {name: a}, status: {phase: Pending, initContainerStatuses: [{name: model-download, state: \
              {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 124, reason: Error}}}]}}]",
            "ModelDownloadFailed",
            "Pod a, download of the model: CrashLoopBackOff, its deadline passed",
        ),
        (
            "[{metadata: {name: a}, status: {phase: Running}}, {metadata: {name: b}, status: {phase: Pending, conditions: \
              [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes have Insufficient nvidia.com/gpu}]}}, \
              {metadata: {name: c}, status: {phase: Failed, reason: Evicted}}]",
            "Unschedulable",
            "Pod b: Unschedulable: 0/3 nodes have Insufficient nvidia.com/gpu (and 1 more Pods)",
        ),
    ];

    #[test]
    fn the_first_pod_in_trouble_is_named_with_what_helps() -> Result<(), Box<dyn std::error::Error>> {
        for (pods, reason, message) in CASES {
            let found = of(&serde_saphyr::from_str::<Vec<ObservedPod>>(pods)?);
            let found = found.as_ref().map(|it| (it.reason.as_str(), it.message.as_str()));
            assert_eq!(found, Some((*reason, *message)));
        }
        Ok(())
    }
}
