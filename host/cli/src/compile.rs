//! `pilothouse compile`: the child process in which the host compiles plugins. Users do not call it.

use std::path::PathBuf;

use clap::Args;

/// Compiles a component to machine code for the host that calls this.
#[derive(Args)]
pub struct Compile {
    input: PathBuf,
    output: PathBuf,
}

impl Compile {
    /// Runs the command.
    ///
    /// # Errors
    /// The compiler's error.
    pub fn execute(&self) -> anyhow::Result<()> {
        pilothouse_engine::limit_computing_time()?;
        Ok(pilothouse_engine::compile_file(&self.input, &self.output)?)
    }
}
