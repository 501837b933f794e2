//! The host beside an operator on controller-runtime that writes the same (bench/peers/controller-runtime), by turns, each on a control
//! plane of its own: objects are created, changed, repaired and touched, one at a time and all at once; the operator starts again, and
//! nothing happens for a while. Prints medians of the rounds, and the host's ratio to controller-runtime as most use it. "Total CPU" is
//! that of the operator, the API server and etcd. `make compare` builds all of them and runs this; without `PEER_BIN` it does nothing.
//! With `BENCH_CHECK` it fails where a limit is broken.
//!
//!   PEERS_OBJECTS=500 PEERS_CHANGES=100 PEERS_ROUNDS=5 make compare

mod contender;

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};
use pilothouse_bench::{
    is_asked_for,
    limits::{self, Bound, Limit},
    setting,
    table::Table,
};
use pilothouse_tests::artifacts;

use crate::contender::{Contender, Plan};

/// The operator on controller-runtime with PUT, the same with server-side apply, and the host.
const NAMES: [&str; 3] = ["controller-runtime", "the same, applying", "Pilothouse"];

/// What the host keeps beside controller-runtime.
const LIMITS: [Limit; 8] = [
    ratio("create all: total CPU, ms each", 1.0),
    ratio("change all: total CPU, ms each", 1.0),
    ratio("repair all: total CPU, ms each", 1.0),
    ratio("touch all: total CPU, ms each", 1.0),
    ratio("one change: total CPU, ms", 1.0),
    ratio("one repair: total CPU, ms", 1.0),
    ratio("one change: p50, ms", 1.0),
    ratio("one repair: p50, ms", 1.0),
];

const fn ratio(row: &'static str, most: f64) -> Limit {
    Limit { row, bound: Bound::Ratio(most) }
}

fn main() -> Result<()> {
    if !is_asked_for() {
        return Ok(());
    }
    let Some(peer) = std::env::var_os("PEER_BIN") else {
        eprintln!("peers: left out; `make compare` runs it");
        return Ok(());
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(compare(Path::new(&peer)))
}

async fn compare(peer: &Path) -> Result<()> {
    let plan = Plan {
        objects: setting("PEERS_OBJECTS", 500),
        changes: setting("PEERS_CHANGES", 100),
        idle: std::time::Duration::from_secs(setting("PEERS_IDLE", 10) as u64),
    };
    let mut contenders = Vec::new();
    let cache = tempfile::tempdir()?;
    let peer = |way| {
        let mut command = Command::new(peer);
        command.arg(way);
        command
    };
    let commands = [peer("update"), peer("apply"), host(cache.path())?];
    for (name, command) in NAMES.into_iter().zip(commands) {
        contenders.push(Contender::start(name, command).await?);
    }
    let (mut table, rounds) = (Table::default(), setting("PEERS_ROUNDS", 5));
    // The first round, in which all of them warm up, does not count.
    for round in 0..=rounds {
        eprintln!(
            "peers: round {round} of {rounds}, {} objects, {} changes and repairs each",
            plan.objects, plan.changes
        );
        for contender in &mut contenders {
            let measured = contender.round(round, &plan).await?;
            if round > 0 {
                table.add(contender.name, measured);
            }
        }
        // Whoever comes first in one round comes last in the next.
        contenders.reverse();
    }
    for contender in contenders {
        contender.stop().await?;
    }
    print!("{}", table.print("By turns", &NAMES));
    let broken = limits::broken(&table, &LIMITS, NAMES[0], NAMES[2]);
    ensure!(!limits::are_kept() || broken.is_empty(), "limits are broken:\n{}", broken.join("\n"));
    Ok(())
}

/// The host with `app-service`, and a folder of its own.
fn host(folder: &Path) -> Result<Command> {
    let plugins = folder.join("plugins");
    std::fs::create_dir(&plugins)?;
    std::fs::copy(artifacts::plugin("app-service")?, plugins.join("app-service.wasm"))?;
    let mut command = Command::new(artifacts::host_binary()?);
    command.args(["run", "--health-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--log-level", "warn"]);
    command.arg("--plugins").arg(plugins).arg("--cache-dir").arg(folder.join("cache"));
    Ok(command)
}
