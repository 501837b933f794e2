//! The languages that plugins are written in, and how a folder shows which one it is. It reads no sources.

use std::path::Path;

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

    /// The name of the language, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::C => "C",
            Self::Python => "Python",
            Self::TypeScript => "TypeScript",
        }
    }

    /// The file in a project's folder that shows the language.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Go => "go.mod",
            Self::C => "plugin.c",
            Self::Python => "pyproject.toml",
            Self::TypeScript => "tsconfig.json",
        }
    }

    /// Whether the same sources give the same bytes. An interpreter that is stored as it is after its start has in it what was random then.
    pub fn is_reproducible(self) -> bool {
        match self {
            Self::Rust | Self::Go | Self::C => true,
            Self::Python | Self::TypeScript => false,
        }
    }

    /// The language of a project; none if the folder has no project in it.
    pub fn of(folder: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|language| folder.join(language.marker()).is_file())
    }

    /// The files by which a project's language is found, for people.
    pub fn markers() -> String {
        Self::ALL.map(Self::marker).join(", ")
    }
}
