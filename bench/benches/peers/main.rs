//! One change and one repair at a time: the host beside an operator on controller-runtime that writes the same
//! (bench/peers/controller-runtime), by turns, each on a control plane of its own. Prints medians of the rounds, and the host's
//! ratio to controller-runtime as most use it. `make compare` builds all of them and runs this; without `PEER_BIN` it does
//! nothing.
//!
//!   PEERS_OBJECTS=700 PEERS_CHANGES=100 PEERS_ROUNDS=10 make compare

mod contender;

use std::{path::Path, process::Command};

use anyhow::Result;
use pilothouse_bench::{setting, table::Table};
use pilothouse_tests::artifacts;

use crate::contender::Contender;

/// The operator on controller-runtime with PUT, the same with server-side apply, and the host.
const NAMES: [&str; 3] = ["controller-runtime", "the same, applying", "Pilothouse"];

fn main() -> Result<()> {
    // `cargo test --benches` only asks whether it can be run.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let Some(peer) = std::env::var_os("PEER_BIN") else {
        eprintln!("peers: left out; `make compare` runs it");
        return Ok(());
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(compare(Path::new(&peer)))
}

async fn compare(peer: &Path) -> Result<()> {
    let (objects, changes) = (setting("PEERS_OBJECTS", 700), setting("PEERS_CHANGES", 100));
    let mut contenders = Vec::new();
    let cache = tempfile::tempdir()?;
    let peer = |way| {
        let mut command = Command::new(peer);
        command.arg(way);
        command
    };
    let commands = [peer("update"), peer("apply"), host(cache.path())?];
    for (name, command) in NAMES.into_iter().zip(commands) {
        eprintln!("peers: {name} makes {objects} objects");
        contenders.push(Contender::start(name, command, objects).await?);
    }
    let (mut table, rounds) = (Table::default(), setting("PEERS_ROUNDS", 10));
    // The first round, in which all of them warm up, does not count.
    for round in 0..=rounds {
        eprintln!("peers: round {round} of {rounds}, {changes} changes and repairs each");
        for contender in &contenders {
            let measured = contender.round(round, changes).await?;
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
