//! The languages that plugins are written in, and where the tests have their tools from. Runs nothing.

use std::path::{Path, PathBuf};

use crate::artifacts::{repository, target};
use anyhow::Result;

/// Makes what is installed in one place seen in another.
fn link(installed: Option<PathBuf>, place: &Path) -> std::io::Result<()> {
    installed.map_or(Ok(()), |installed| std::os::unix::fs::symlink(installed, place))
}

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// C.
    C,
    /// Python.
    Python,
    /// TypeScript.
    TypeScript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rust, Self::Go, Self::C, Self::Python, Self::TypeScript];

    /// As in `pilothouse new --lang`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::C => "c",
            Self::Python => "python",
            Self::TypeScript => "ts",
        }
    }

    /// As `pilothouse build` calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::C => "C",
            Self::Python => "Python",
            Self::TypeScript => "TypeScript",
        }
    }

    /// Whether a plugin in it is built within seconds.
    pub fn is_quick(self) -> bool {
        matches!(self, Self::C | Self::TypeScript)
    }

    /// Whether this machine has its tools (`scripts/languages.sh`). In CI it is to have them.
    pub fn has_tools(self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_in_path = || std::env::split_paths(&path).any(|folder| folder.join(self.first_tool()).is_file());
        std::env::var_os("CI").is_some() || self.packages().is_some_and(|folder| folder.is_dir()) || is_in_path()
    }

    /// The tool that is looked for first.
    pub fn first_tool(self) -> &'static str {
        match self {
            Self::Rust => "cargo",
            Self::Go => "go",
            Self::C => "clang",
            Self::Python => "componentize-py",
            Self::TypeScript => "tsc",
        }
    }

    /// What to do where that is missing.
    pub fn install(self) -> &'static str {
        match self {
            Self::Rust => "install Rust as https://rustup.rs says",
            Self::Go => "install Go 1.24 or newer as https://go.dev/doc/install says",
            Self::C => "on Debian or Ubuntu run `apt-get install clang lld wasi-libc libclang-rt-dev-wasm32`",
            Self::Python => {
                "in the folder of the project run `python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1`"
            }
            Self::TypeScript => {
                "in the folder of the project run `npm install` (Node.js 18 or newer: https://nodejs.org)"
            }
        }
    }

    /// The file with the reconcile function.
    pub fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Go => "main.go",
            Self::C => "plugin.c",
            Self::Python => "reconciler.py",
            Self::TypeScript => "plugin.ts",
        }
    }

    /// Whether the same sources give the same bytes.
    pub fn is_reproducible(self) -> bool {
        !matches!(self, Self::Python | Self::TypeScript)
    }

    /// What no compiler takes, with a word that it repeats when it says so.
    pub fn mistake(self) -> &'static str {
        match self {
            Self::Rust => "this is a mistake ;(",
            Self::Go => "var _ = mistake",
            Self::C => "int broken = mistake;",
            Self::Python => "a mistake",
            Self::TypeScript => "const broken: number = mistake;",
        }
    }

    /// The name of the container in the source of a new project.
    pub fn container(self) -> &'static str {
        match self {
            Self::Rust | Self::Go | Self::Python => r#""name": "app""#,
            Self::C => r#"\"name\": \"app\""#,
            Self::TypeScript => r#"name: "app""#,
        }
    }

    /// The folder for what its tools keep.
    pub fn folder(self) -> PathBuf {
        target().join("authoring").join(self.name())
    }

    /// Where `scripts/languages.sh` has put what a user would install into a project, and where that goes.
    fn packages(self) -> Option<PathBuf> {
        let place = match self {
            Self::Rust | Self::Go | Self::C => return None,
            Self::Python => "python",
            Self::TypeScript => "ts",
        };
        Some(target().join("languages").join(place))
    }

    /// Gives a new project what a user would install into it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn equip(self, project: &Path) -> Result<()> {
        match self {
            // The versions that this repository is tested with, without a look at the registry.
            Self::Rust => std::fs::copy(repository().join("Cargo.lock"), project.join("Cargo.lock")).map(drop)?,
            // Needs nothing.
            Self::Go | Self::C => {}
            Self::Python => link(self.packages(), &project.join(".venv"))?,
            Self::TypeScript => {
                link(self.packages().map(|folder| folder.join("node_modules")), &project.join("node_modules"))?
            }
        }
        Ok(())
    }
}
