//! Which files of a project are its sources, by their names. It reads nothing.

use std::path::Path;

/// Folders that hold no sources.
const NO_SOURCES: &[&str] = &["build", "node_modules", "__pycache__", "target"];

/// Whether a file or a folder may be a source, by its path in the project: what is hidden, built or installed is none.
pub fn is_source(path: &Path) -> bool {
    path.iter().all(|name| !name.to_string_lossy().starts_with('.') && NO_SOURCES.iter().all(|other| name != *other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_built_or_installed_is_no_source() {
        for (path, expected) in [
            ("src/lib.rs", true),
            ("cases/first.yaml", true),
            ("crd.yaml", true),
            ("build/web.wasm", false),
            ("target/debug/web.d", false),
            ("src/.lib.rs.swp", false),
            (".venv/bin/python", false),
            ("node_modules/typescript/index.js", false),
            ("rebuild/target.rs", true),
        ] {
            assert_eq!(is_source(Path::new(path)), expected, "{path}");
        }
    }
}
