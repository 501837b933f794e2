//! The directory for compiled plugins: the argument and its default. Creates nothing.

use std::path::PathBuf;

use clap::Args;

/// The cache of compiled plugins.
#[derive(Args, Clone, Debug)]
pub struct CacheDir {
    /// Private directory for compiled plugins. Default: `pilothouse/compiled` in the user's cache directory.
    #[arg(long = "cache-dir", env = "PILOTHOUSE_CACHE_DIR", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl CacheDir {
    /// The directory: from the argument, or in `XDG_CACHE_HOME`, `~/.cache`, or the temporary directory.
    pub fn path(&self) -> PathBuf {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let default = || user().unwrap_or_else(std::env::temp_dir).join("pilothouse").join("compiled");
        self.directory.clone().unwrap_or_else(default)
    }
}
