//! The directory for compiled plugins: the argument and its default. Creates nothing.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

/// The cache of compiled plugins.
#[derive(Args, Clone, Debug)]
pub struct CacheDir {
    /// Private directory for compiled plugins. Default: `pilothouse/compiled` in the user's cache directory.
    #[arg(long = "cache-dir", env = "PILOTHOUSE_CACHE_DIR", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl CacheDir {
    /// The directory: from the argument, or in `XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// If there is none. A temporary directory would do for nobody: others write there, too.
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let default = || user().map(|user| user.join("pilothouse").join("compiled"));
        let directory = self.directory.clone().or_else(default);
        directory
            .context("there is no place for compiled plugins: set HOME, or give --cache-dir a directory of its own")
    }
}
