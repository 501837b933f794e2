//! `pilothouse dev` as a child process: what it says and what its author types. It is killed when its owner is dropped.

use std::{ffi::OsStr, fs::File, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::signal::{self, Signal};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{
    artifacts,
    cluster::PATIENCE,
    process_group::ProcessGroup,
    project::Project,
    wait::{Look, eventually},
};

/// The time limit for what may have to be built or compiled first.
const BUILD: Duration = Duration::from_secs(240);

/// The command at work.
pub struct DevLoop {
    process: ProcessGroup,
    folder: TempDir,
    /// How much of its output was waited for.
    seen: usize,
}

impl DevLoop {
    /// Starts it for a project, with this cache of compiled plugins and more arguments.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start<A: AsRef<OsStr>>(
        project: &Project,
        cache: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let output = File::create(folder.path().join("output"))?;
        let mut command = Command::new(artifacts::host_binary()?);
        command.arg("dev").arg(project.root()).arg("--cache-dir").arg(cache).args(arguments);
        command.env("CARGO_TARGET_DIR", project.tools_folder()).env_remove("LOG_LEVEL").env_remove("LOG_FORMAT");
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        Ok(Self { process: ProcessGroup::start(&mut command)?, folder, seen: 0 })
    }

    /// What it has printed, with the log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn output(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("output"))?)
    }

    /// Waits until it says a text, after what was waited for before.
    ///
    /// # Errors
    /// If it does not, or ends. Quotes what it says instead.
    pub async fn says(&mut self, text: &str) -> Result<()> {
        let seen = self.seen;
        self.seen = eventually(BUILD, &format!("dev to say {text:?}"), async || {
            // Before the output is read: what it said last is read, too.
            let ended = self.process.try_wait()?;
            let output = self.output()?;
            if let Some(at) = output.get(seen..).and_then(|new| new.find(text)) {
                return Ok(Look::Found(Some(seen + at + text.len())));
            }
            Ok(if ended.is_some() { Look::Found(None) } else { Look::NotYet(output) })
        })
        .await?
        .with_context(|| format!("dev ended and did not say {text:?}: {}", self.output().unwrap_or_default()))?;
        Ok(())
    }

    /// The author types a line.
    ///
    /// # Errors
    /// If it reads no more.
    pub async fn type_in(&mut self, line: &str) -> Result<()> {
        let input = self.process.stdin.as_mut().context("it has no input")?;
        input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Ends it as Ctrl-C does, and checks that it ends in good order.
    ///
    /// # Errors
    /// If it does not.
    pub async fn stop(mut self) -> Result<()> {
        signal::send(self.process.id(), Signal::Terminate)?;
        let ended =
            timeout(PATIENCE, self.process.wait()).await.with_context(|| self.output().unwrap_or_default())??;
        ensure!(ended.success(), "it ended with {ended}: {}", self.output()?);
        Ok(())
    }
}
