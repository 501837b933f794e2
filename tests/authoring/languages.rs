//! The languages that plugins are written in, and where the tests have their tools from. Runs nothing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pilothouse_tests::artifacts::{repository, target};

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    Go,
    C,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Rust, Self::Go, Self::C];

    /// As in `pilothouse new --lang`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// As `pilothouse build` calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::C => "C",
        }
    }

    /// Whether this machine has its tools (`scripts/languages.sh`). In CI it is to have them.
    pub fn has_tools(self) -> bool {
        let is_there = |program: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        };
        std::env::var_os("CI").is_some() || is_there(self.first_tool())
    }

    /// The tool that is looked for first.
    pub fn first_tool(self) -> &'static str {
        match self {
            Self::Rust => "cargo",
            Self::Go => "go",
            Self::C => "clang",
        }
    }

    /// What to do where that is missing.
    pub fn install(self) -> &'static str {
        match self {
            Self::Rust => "install Rust as https://rustup.rs says",
            Self::Go => "install Go 1.24 or newer as https://go.dev/doc/install says",
            Self::C => "on Debian or Ubuntu run `apt-get install clang lld wasi-libc libclang-rt-dev-wasm32`",
        }
    }

    /// The file with the reconcile function.
    pub fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Go => "main.go",
            Self::C => "plugin.c",
        }
    }

    /// What no compiler takes, with a word that it repeats when it says so.
    pub fn mistake(self) -> &'static str {
        match self {
            Self::Rust => "this is a mistake ;(",
            Self::Go => "var _ = mistake",
            Self::C => "int broken = mistake;",
        }
    }

    /// The folder for what its tools keep.
    pub fn folder(self) -> PathBuf {
        target().join("authoring").join(self.name())
    }

    /// Gives a new project what a user would install into it.
    pub fn equip(self, project: &Path) -> Result<()> {
        match self {
            // The versions that this repository is tested with, without a look at the registry.
            Self::Rust => std::fs::copy(repository().join("Cargo.lock"), project.join("Cargo.lock")).map(drop)?,
            // Needs nothing.
            Self::Go | Self::C => {}
        }
        Ok(())
    }
}
