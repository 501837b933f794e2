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
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rust, Self::Go, Self::C];

    /// The name of the language, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::C => "C",
        }
    }

    /// The file in a project's folder that shows the language.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Go => "go.mod",
            Self::C => "plugin.c",
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
