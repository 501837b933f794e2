//! `pilothouse dev` as a child process: what it says and what its author types. It is killed when its owner is dropped.

use std::{ffi::OsStr, fs::File, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::signal::{self, Signal};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{
    artifacts,
    cluster::PATIENCE,
    languages::Language,
    process_group::ProcessGroup,
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
    /// Starts it for a folder, with this cache of compiled plugins and more arguments, such as more folders.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start<A: AsRef<OsStr>>(folder: &Path, cache: &Path, arguments: impl IntoIterator<Item = A>) -> Result<Self> {
        let mut command = Command::new(artifacts::host_binary()?);
        command.arg("dev").arg(folder).arg("--cache-dir").arg(cache).args(arguments);
        Self::run(command)
    }

    /// The same in a terminal of so many rows and columns.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_in_terminal<A: AsRef<OsStr>>(
        folder: &Path,
        cache: &Path,
        arguments: impl IntoIterator<Item = A>,
        (rows, columns): (u16, u16),
    ) -> Result<Self> {
        let size = format!("stty rows {rows} cols {columns} && exec \"$0\" \"$@\"");
        let words = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new(&size), artifacts::host_binary()?.as_os_str()]
            .map(OsStr::to_owned)
            .into_iter()
            .chain(["dev".into(), folder.as_os_str().to_owned(), "--cache-dir".into(), cache.as_os_str().to_owned()])
            .chain(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        let words: Vec<_> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        let mut command = Command::new("script");
        command.args(["--quiet", "--flush", "--return", "--command"]).arg(words.join(" ")).arg("/dev/null");
        command.env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        Self::run(command)
    }

    fn run(mut command: Command) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let output = File::create(folder.path().join("output"))?;
        command.env("CARGO_TARGET_DIR", Language::Rust.folder()).env_remove("LOG_LEVEL").env_remove("LOG_FORMAT");
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        Ok(Self { process: ProcessGroup::start(&mut command)?, folder, seen: 0 })
    }

    /// What it has printed, with the log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn output(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    /// The same as it is, such as for a terminal.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.folder.path().join("output"))?)
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
        self.press(&format!("{line}\n")).await
    }

    /// The author presses keys.
    ///
    /// # Errors
    /// If it reads no more.
    pub async fn press(&mut self, keys: &str) -> Result<()> {
        let input = self.process.stdin.as_mut().context("it has no input")?;
        input.write_all(keys.as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Waits until it has ended in good order by itself.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ends(&mut self) -> Result<()> {
        let ended =
            timeout(PATIENCE, self.process.wait()).await.with_context(|| self.output().unwrap_or_default())??;
        ensure!(ended.success(), "it ended with {ended}: {}", self.output()?);
        Ok(())
    }

    /// Ends it as Ctrl-C does, and checks that it ends in good order.
    ///
    /// # Errors
    /// If it does not.
    pub async fn stop(mut self) -> Result<()> {
        signal::send(self.process.id(), Signal::Terminate)?;
        self.ends().await
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
