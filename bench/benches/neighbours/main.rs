//! What bad plugins cost their neighbours, in a container of the size that is deployed: how much longer a change of a good plugin's object
//! takes beside plugins that allocate and compute as much as they may, and how much memory the host keeps of some fifty plugins that could
//! not load, once they are removed. On API servers of its own. With BENCH_CHECK it fails where a limit is broken. Needs `make plugins` and
//! a host; `make bench-neighbours` builds both.
//!
//!   NEIGHBOURS_REPEATS=3 NEIGHBOURS_CHANGES=200 BENCH_CHECK=1 make bench-neighbours

mod bad;
mod greedy;

use anyhow::{Result, ensure};
use pilothouse_bench::{
    has_host,
    limits::{self, Bound, Limit},
    setting,
    table::Table,
};
use pilothouse_tests::cgroup::Cgroup;

/// The only variant.
const HOST: &str = "host";

/// The memory of the container in `deploy/`.
const CONTAINER: usize = 512 << 20;

const LIMITS: [Limit; 3] = [
    Limit { row: greedy::MORE[0], bound: Bound::AtMost(50.0) },
    Limit { row: greedy::MORE[1], bound: Bound::AtMost(50.0) },
    Limit { row: bad::KEPT, bound: Bound::AtMost(20.0) },
];

fn main() -> Result<()> {
    if !has_host("neighbours") {
        return Ok(());
    }
    ensure!(Cgroup::is_possible(), "this machine has no control groups to limit memory with");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (mut table, repeats) = (Table::default(), setting("NEIGHBOURS_REPEATS", 3));
    for repeat in 1..=repeats {
        eprintln!("neighbours: repeat {repeat} of {repeats}");
        let mut measured = Vec::new();
        runtime.block_on(greedy::measure(&mut measured))?;
        runtime.block_on(bad::measure(&mut measured))?;
        table.add(HOST, measured);
    }
    print!("{}", table.print("Beside bad plugins, in a container of 512 MiB", &[HOST]));
    let broken = if limits::are_kept() { limits::broken(&table, &LIMITS, HOST, HOST) } else { Vec::new() };
    ensure!(broken.is_empty(), "limits are broken:\n{}", broken.join("\n"));
    Ok(())
}
