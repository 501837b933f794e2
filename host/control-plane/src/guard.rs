//! A small helper process that kills the parts when their owner dies without a chance to do it itself (SIGKILL, abort,
//! a test runner's timeout). It knows only the process ids it was told last, and does nothing while the owner lives.

use anyhow::{Context, Result};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Reads one line per change, each the complete list of ids; the end of input means that the owner is gone.
/// The ids are not those of strangers: they belong to the owner's children, and it tells anew after each end.
const SCRIPT: &str = r#"pids=
while read -r line; do pids=$line; done
for pid in $pids; do kill -s KILL "$pid"; done 2>/dev/null
exit 0"#;

#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// In a process group of its own, or Ctrl-C would end it together with the owner.
    pub(crate) fn start() -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot run sh")?;
        Ok(Guard { child })
    }

    /// Replaces the list of processes to kill.
    pub(crate) fn watch(&mut self, pids: impl Iterator<Item = u32>) -> Result<()> {
        let line = pids.map(|pid| pid.to_string()).collect::<Vec<_>>().join(" ");
        let pipe = self.child.stdin.as_mut().context("the guard has no input")?;
        writeln!(pipe, "{line}").context("the guard is gone")
    }
}

impl Drop for Guard {
    /// The owner is there and ends its parts itself, so the guard must go without acting.
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait().map(drop));
        if let Err(error) = ended {
            eprintln!("control-plane: cannot end the guard process {}: {error}", self.child.id());
        }
    }
}
