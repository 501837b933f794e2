//! What happens when the owner of a control plane dies without a chance to clean up: nothing may be left running.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Parts, silent};
use serde_json::Value;
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the process that is to be killed: the directory of its control plane.
const OWNER: &str = "PILOTHOUSE_TEST_OWNER";

/// Runs itself a second time as the owner, and kills that.
#[tokio::test]
async fn parts_die_with_their_owner() -> Result<()> {
    if let Some(dir) = env::var_os(OWNER) {
        let _cluster = start(Path::new(&dir)).await?;
        return std::future::pending().await;
    }
    let dir = tempfile::tempdir()?;
    let mut owner = Command::new(env::current_exe()?)
        .args(["--exact", "parts_die_with_their_owner"])
        .env(OWNER, dir.path())
        .stdout(Stdio::null())
        .spawn()?;
    let pids = until(|| two_pids(dir.path()));
    owner.kill()?;
    owner.wait()?;
    let pids = pids.context("the owner did not start its parts")?;
    until(|| pids.iter().all(|pid| has_ended(*pid)).then_some(())).context("a process is left")?;

    // What the dead owner left behind is no obstacle.
    let cluster = start(dir.path()).await?;
    ensure!(cluster.metrics().await?.contains("apiserver_request_total"));
    cluster.stop().await
}

async fn start(dir: &Path) -> Result<ControlPlane> {
    let assets = Assets::ensure_for(Parts::Api, silent).await?;
    ControlPlane::start(assets, Options::new(dir, Parts::Api)).await
}

fn two_pids(dir: &Path) -> Option<Vec<u64>> {
    let state: Value = serde_json::from_str(&std::fs::read_to_string(dir.join("state.json")).ok()?).ok()?;
    let pids: Vec<u64> = state["pids"].as_object()?.values().filter_map(Value::as_u64).collect();
    (pids.len() == 2).then_some(pids)
}

/// Gone, or only waiting to be reaped.
fn has_ended(pid: u64) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

fn until<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
