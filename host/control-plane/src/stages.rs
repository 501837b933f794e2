//! The kwok stages: what the simulated node and its Pods go through. Carried inside the program, so that it works
//! wherever its binary is copied to.

use crate::layout::{Layout, write_private};
use anyhow::Result;
use std::path::PathBuf;

/// Annotation that makes a running Pod end with the exit code in its value: `"0"` succeeds, any other fails.
pub const EXIT: &str = "test.pilothouse.dev/exit";
/// Annotation, with any value, that keeps a Job's Pod running; without it the Pod succeeds at once.
pub const HOLD: &str = "test.pilothouse.dev/hold";
/// Annotation, with any value, that keeps a Pod Pending, as if its image could not be pulled.
pub const PENDING: &str = "test.pilothouse.dev/pending";
/// Annotation with the exit code with which the processes of a deleted Pod end on SIGTERM.
pub const SIGTERM: &str = "test.pilothouse.dev/sigterm";
/// Annotation, with any value, that keeps a deleted Pod whose processes have ended, as if its volumes took their time.
pub const LINGER: &str = "test.pilothouse.dev/linger";
/// Annotation, with any value, by which nothing happens to a deleted Pod, as if its node did not answer.
pub const LOST: &str = "test.pilothouse.dev/lost";

const STAGES: [(&str, &str); 5] = [
    ("node-ready.yaml", include_str!("../stages/node-ready.yaml")),
    ("pod-running.yaml", include_str!("../stages/pod-running.yaml")),
    ("pod-exit.yaml", include_str!("../stages/pod-exit.yaml")),
    ("pod-stop.yaml", include_str!("../stages/pod-stop.yaml")),
    ("pod-delete.yaml", include_str!("../stages/pod-delete.yaml")),
];

pub(crate) fn write(layout: &Layout) -> Result<()> {
    STAGES.iter().try_for_each(|(file, text)| write_private(&layout.stage(file), text))
}

pub(crate) fn paths(layout: &Layout) -> impl Iterator<Item = PathBuf> {
    STAGES.iter().map(|(file, _)| layout.stage(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_use_the_published_annotations() {
        for annotation in [EXIT, HOLD, PENDING, SIGTERM, LINGER, LOST] {
            assert!(STAGES.iter().any(|(_, text)| text.contains(&format!("annotations[\"{annotation}\"]"))));
        }
    }
}
