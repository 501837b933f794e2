//! The tools of a language: whether they are there, and running them. What they say of an author's mistakes goes to the terminal as it
//! is. It installs nothing.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::build::BuildError;

/// A tool that is needed, and how one gets it.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// The name of the program.
    pub(crate) program: &'static str,
    /// What to do where it is missing.
    pub(crate) install: &'static str,
}

impl Tool {
    /// The program, from the PATH.
    ///
    /// # Errors
    /// [`BuildError::Missing`]: it is not there.
    pub(crate) fn find(&self) -> Result<PathBuf, BuildError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .find_map(|place| Some(place.join(self.program)).filter(|program| program.is_file()))
            .ok_or_else(|| self.missing(self.program))
    }

    /// The program, from a folder of the project, else from the PATH.
    ///
    /// # Errors
    /// [`BuildError::Missing`]: it is in neither.
    pub(crate) fn find_in(&self, folder: &Path) -> Result<PathBuf, BuildError> {
        let own = folder.join(self.program);
        if own.is_file() { Ok(own) } else { self.find() }
    }

    /// Something that belongs to the tool is missing.
    pub(crate) fn missing(&self, what: &str) -> BuildError {
        BuildError::Missing { what: what.to_owned(), install: self.install.to_owned() }
    }
}

/// A program that is run in the folder of a project.
pub(crate) struct Run(Command);

impl Run {
    /// A program with its first arguments. Its error output goes to the terminal.
    pub(crate) fn new(program: &Path, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::inherit());
        Self(command)
    }

    /// With one more argument.
    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.0.arg(argument.into());
        self
    }

    /// With a variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.0.env(name, value.into());
        self
    }

    /// A program that tells of mistakes in its ordinary output, which then goes to the terminal, too.
    pub(crate) fn shown(mut self) -> Self {
        self.0.stdout(std::io::stderr());
        self
    }

    /// What it prints.
    ///
    /// # Errors
    /// [`BuildError::Tool`]: it fails, or does not start.
    pub(crate) fn output(mut self) -> Result<String, BuildError> {
        let program = self.0.get_program().to_string_lossy().into_owned();
        let ended =
            self.0.output().map_err(|error| BuildError::Tool(format!("`{program}` does not start: {error}")))?;
        if ended.status.success() {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        Err(BuildError::Tool(format!("`{program}` ended with {}", ended.status)))
    }
}
