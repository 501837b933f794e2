//! The whole host under load, on a control plane of its own: AppServices made real, restarted over, touched, changed, and
//! left alone; with the plugin as WebAssembly beside the same function linked natively. Prints a table of medians, and the
//! ratio. Needs `make plugins`.
//!
//!   LOAD_OBJECTS=2000 LOAD_REPEATS=3 LOAD_CHANGES=100 cargo bench -p pilothouse-bench --bench load

mod cluster;
mod host;
mod phases;
mod table;

use anyhow::Result;

use crate::{phases::Plan, table::Table};

const VARIANTS: [&str; 2] = ["native", "wasm"];

fn main() -> Result<()> {
    // `cargo test --benches` only asks whether it can be run.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let plan = Plan {
        objects: setting("LOAD_OBJECTS", 2_000),
        changes: setting("LOAD_CHANGES", 100),
        idle: std::time::Duration::from_secs(setting("LOAD_IDLE", 30) as u64),
    };
    let repeats = setting("LOAD_REPEATS", 3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = Table::default();
    for repeat in 1..=repeats {
        // Whoever comes first in one repeat comes last in the next: a machine that tires costs both the same.
        let mut order = VARIANTS;
        if repeat % 2 == 0 {
            order.reverse();
        }
        for variant in order {
            eprintln!("load: {variant}, repeat {repeat} of {repeats}, {} objects", plan.objects);
            let measured = runtime.block_on(phases::run(variant, &plan))?;
            table.add(variant, measured);
        }
    }
    print!("{}", table.print(&VARIANTS));
    Ok(())
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
