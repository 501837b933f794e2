//! A hundred operators in one process, on an API server of their own. Each has a kind of its own with a hundred objects; the child of each
//! object is the object of the next operator, so that one change goes through all of them. Prints what all of them need at rest, how long
//! a change takes from one to the next, and how long a host takes to start with them. Needs `make plugins` and a host;
//! `make bench-operators` builds both. With `BENCH_CHECK` it fails where a limit is broken.
//!
//!   OPERATORS_OBJECTS=100 OPERATORS_CHANGES=50 make bench-operators

mod chain;
mod links;

use anyhow::{Result, ensure};
use pilothouse_bench::{
    has_host,
    limits::{self, Bound, Limit},
    setting,
    table::Table,
};

use crate::chain::Chain;

/// The only variant.
const HOST: &str = "host";

/// What a host with a hundred operators keeps.
const LIMITS: [Limit; 2] = [
    Limit { row: "at rest: RSS, MiB", bound: Bound::AtMost(60.0) },
    Limit { row: "at rest: writes", bound: Bound::AtMost(0.0) },
];

fn main() -> Result<()> {
    if !has_host("operators") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = Table::default();
    table.add(HOST, runtime.block_on(measure())?);
    print!("{}", table.print("A hundred operators in one process", &[HOST]));
    let broken = limits::broken(&table, &LIMITS, HOST, HOST);
    ensure!(!limits::are_kept() || broken.is_empty(), "limits are broken:\n{}", broken.join("\n"));
    Ok(())
}

async fn measure() -> Result<Vec<pilothouse_bench::table::Measured>> {
    let mut measured = Vec::new();
    let mut chain = Chain::start().await?;
    chain.create(setting("OPERATORS_OBJECTS", 100), &mut measured).await?;
    chain.change(setting("OPERATORS_CHANGES", 50), &mut measured).await?;
    chain.restart(&mut measured).await?;
    chain.rest(&mut measured).await?;
    chain.end().await?;
    Ok(measured)
}
