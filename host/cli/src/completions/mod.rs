//! `pilothouse completions`: prints what a shell, or kubectl, needs to complete this program's arguments. Installs nothing.

mod candidates;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use self::candidates::candidates;
use crate::output;

/// Print what a shell needs to complete the arguments of this program.
///
/// For bash: `pilothouse completions bash >~/.local/share/bash-completion/completions/pilothouse`. For `kubectl pilothouse`, save what
/// `completions kubectl` prints as `kubectl_complete-pilothouse` in the PATH, and make it executable: kubectl's own completion calls it.
#[derive(Args)]
pub struct Completions {
    /// The shell; or kubectl, for this program as its plugin.
    shell: For,
}

/// Who completes.
#[derive(Clone, Copy, ValueEnum)]
enum For {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Kubectl,
}

/// kubectl calls an executable of this name's form for the words after `kubectl pilothouse`.
const KUBECTL: &str = "#!/bin/sh\n# Completes `kubectl pilothouse`: kubectl-pilothouse and this file, kubectl_complete-pilothouse, lie in the \
                       PATH.\nexec kubectl-pilothouse complete -- \"$@\"\n";

impl Completions {
    /// Runs the command, for the program under a name.
    ///
    /// # Errors
    /// If nobody takes what it prints.
    pub fn execute(&self, mut program: Command) -> anyhow::Result<()> {
        let shell = match self.shell {
            For::Bash => Shell::Bash,
            For::Elvish => Shell::Elvish,
            For::Fish => Shell::Fish,
            For::Powershell => Shell::PowerShell,
            For::Zsh => Shell::Zsh,
            For::Kubectl => return Ok(output::print(KUBECTL)?),
        };
        // A shell knows the file in the PATH, which is one word.
        let file = program.get_bin_name().unwrap_or(env!("CARGO_PKG_NAME")).replace(' ', "-");
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut program, file, &mut script);
        Ok(output::print(String::from_utf8(script)?)?)
    }
}

/// Prints what the last of these words can become, as kubectl wants it.
#[derive(Args)]
pub struct Complete {
    #[arg(last = true)]
    words: Vec<String>,
}

impl Complete {
    /// Runs the command.
    ///
    /// # Errors
    /// If nobody takes what it prints.
    pub fn execute(&self, program: Command) -> anyhow::Result<()> {
        Ok(output::print(candidates(program, &self.words))?)
    }
}
