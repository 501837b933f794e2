//! How much the longest tests try: all that there is, or a part that takes minutes less. Tries nothing itself.

use anyhow::{Result, ensure};

/// The environment variable that asks for all. `make test-all` sets it.
const ALL: &str = "PILOTHOUSE_TEST_ALL";

/// How much to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// All that there is.
    All,
    /// A part: where there are many alike, another one in each run.
    Part,
}

impl Thoroughness {
    /// What this run is asked for.
    pub fn of_run() -> Self {
        if std::env::var_os(ALL).is_some_and(|value| !value.is_empty()) { Self::All } else { Self::Part }
    }
}

/// That this run is asked for all. A test that takes minutes needs that.
///
/// # Errors
/// If it is asked for a part.
pub fn all() -> Result<()> {
    ensure!(Thoroughness::of_run() == Thoroughness::All, "it takes minutes; `make test-all` runs it, or {ALL}=1");
    Ok(())
}
