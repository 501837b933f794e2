//! A program that starts others, such as make: all of them end with it when it is dropped, however the test ends.

use std::ops::{Deref, DerefMut};

use anyhow::{Context, Result};
use pilothouse_control_plane::signal::{self, Signal};
use tokio::process::{Child, Command};

/// A running program with all that it has started.
pub struct ProcessGroup {
    leader: Child,
    id: u32,
}

impl ProcessGroup {
    /// Starts a program in a group of its own.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(command: &mut Command) -> Result<Self> {
        let leader = command.process_group(0).spawn().with_context(|| format!("failed to start {command:?}"))?;
        let id = leader.id().context("it has ended already")?;
        Ok(Self { leader, id })
    }

    /// The id of the program.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Deref for ProcessGroup {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.leader
    }
}

impl DerefMut for ProcessGroup {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.leader
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // After a test that went well nobody is left, which is an error of the signal and none of the test.
        drop(signal::send_to_group(self.id, Signal::Kill));
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Stdio, time::Duration};

    use super::*;
    use crate::wait::{Look, eventually};

    #[tokio::test]
    async fn what_a_program_has_started_ends_with_it() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $! >\"$0.new\" && mv \"$0.new\" \"$0\"; wait"]).arg(&file);
        let program = ProcessGroup::start(command.stdin(Stdio::null()))?;
        let pid = eventually(Duration::from_secs(60), "it to start another one", async || {
            Ok(std::fs::read_to_string(&file).map_or_else(|error| Look::NotYet(error.to_string()), Look::Found))
        })
        .await?;
        drop(program);
        let state = Path::new("/proc").join(pid.trim()).join("stat");
        eventually(Duration::from_secs(60), "the other one to end", async || {
            // It may be left as a zombie where nobody collects it.
            let stat = std::fs::read_to_string(&state).unwrap_or_default();
            Ok(Look::of(stat.is_empty() || stat.contains(") Z "), stat))
        })
        .await
    }
}
