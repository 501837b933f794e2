//! What a process of this machine uses. Starts and ends none.

use anyhow::{Context, Result};

/// The memory of a process, and the most it had, in MiB.
///
/// # Errors
/// It is gone.
pub fn memory(pid: u32) -> Result<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
        anyhow::Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    };
    Ok((field("VmRSS")?, field("VmHWM")?))
}
