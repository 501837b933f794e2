//! Many Pods in a namespace, and objects whose plugin looks up all of them: what one change of a Pod costs the host, whether `/healthz`
//! answers in time meanwhile, and whether the Lease is renewed. On an API server of its own, without a scheduler and a kubelet. Needs
//! `make plugins` and a host; `make bench-lookups` builds both.
//!
//!   LOOKUPS_PODS=10000 LOOKUPS_OBJECTS=50 LOOKUPS_CHANGES=20 make bench-lookups

mod bench;

use anyhow::Result;
use pilothouse_bench::{has_host, table::Table};

use crate::bench::Bench;

/// The only variant.
const HOST: &str = "host";

fn main() -> Result<()> {
    if !has_host("lookups") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = Table::default();
    table.add(
        HOST,
        runtime.block_on(async {
            let mut measured = Vec::new();
            let mut bench = Bench::start(&mut measured).await?;
            bench.rest(&mut measured).await?;
            bench.unseen(&mut measured).await?;
            bench.seen(&mut measured).await?;
            bench.end().await?;
            anyhow::Ok(measured)
        })?,
    );
    print!("{}", table.print("Many Pods, and objects that look up all of them", &[HOST]));
    Ok(())
}
