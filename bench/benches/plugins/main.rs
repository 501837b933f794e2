//! Plugins as objects of the cluster, on an API server of their own: how long it takes from a ConfigMap to a reconciled object, until all
//! objects are on the version that a changed ConfigMap has, until a host works again whose source is away, and until many plugins are
//! loaded whose machine code is there. Prints medians; the limits are those of docs/plugin-objects.md. Needs `make plugins` and a
//! host; `make bench-plugins` builds both.
//!
//!   PLUGINS_REPEATS=3 PLUGINS_OBJECTS=200 make bench-plugins

mod bench;
mod start;

use anyhow::Result;
use pilothouse_bench::{has_host, setting, table::Table};

use crate::bench::Bench;

/// The only variant.
const HOST: &str = "host";

fn main() -> Result<()> {
    if !has_host("plugins") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut table, repeats) = (Table::default(), setting("PLUGINS_REPEATS", 3));
    for repeat in 1..=repeats {
        eprintln!("plugins: repeat {repeat} of {repeats}");
        table.add(HOST, runtime.block_on(repeat_all())?);
    }
    print!("{}", table.print("Plugins as objects", &[HOST]));
    Ok(())
}

async fn repeat_all() -> Result<Vec<pilothouse_bench::table::Measured>> {
    let mut measured = Vec::new();
    let mut bench = Bench::start().await?;
    bench.install(&mut measured).await?;
    bench.update(&mut measured).await?;
    bench.restart(&mut measured).await?;
    let (cluster, namespace) = bench.end().await?;
    start::many_plugins(&namespace, &mut measured).await?;
    cluster.stop().await?;
    Ok(measured)
}
