//! The name of a place from which one plugin comes. Finds nothing there.

/// One place from which one plugin comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceId {
    /// A file.
    File(std::path::PathBuf),
    /// The `Plugin` with this name.
    Object(String),
}

impl std::fmt::Display for SourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "'{}'", path.display()),
            Self::Object(name) => write!(f, "the Plugin '{name}'"),
        }
    }
}
