//! The whole host under load, on a control plane of its own: AppServices made real, restarted over, touched, changed, and
//! left alone; with the plugin as WebAssembly beside the same function linked natively. Prints a table of medians, and the
//! ratio: once with each variant alone, for how long things take, and once with both at the same time on one control plane,
//! for the ratio of what they use: what troubles the machine then troubles both alike. Needs `make plugins`.
//!
//! Measures two builds of the host beside each other instead, if it is told where they are:
//!
//!   LOAD_HOSTS=before=FILE,after=FILE LOAD_PLUGIN=FILE cargo bench -p pilothouse-bench --bench load
//!
//!   LOAD_OBJECTS=2000 LOAD_CHANGES=100 LOAD_REPEATS=3 LOAD_TOGETHER=3 cargo bench -p pilothouse-bench --bench load

mod host;
mod phases;
mod variant;

use anyhow::Result;
use pilothouse_bench::{setting, table::Table};

use crate::phases::Plan;

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
    let variants = variant::all()?;
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut alone, repeats) = (Table::default(), setting("LOAD_REPEATS", 3));
    for repeat in 1..=repeats {
        // Whoever comes first in one repeat comes last in the next: a machine that tires costs both the same.
        let mut order: Vec<_> = variants.iter().collect();
        if repeat % 2 == 0 {
            order.reverse();
        }
        for variant in order {
            eprintln!("load: {}, repeat {repeat} of {repeats}, {} objects", variant.name, plan.objects);
            alone.add_all(&[variant.name], runtime.block_on(phases::run(&[variant], &plan))?);
        }
    }
    let (mut together, repeats) = (Table::default(), setting("LOAD_TOGETHER", 3));
    for repeat in 1..=repeats {
        eprintln!("load: both at the same time, repeat {repeat} of {repeats}, {} objects each", plan.objects);
        together.add_all(&names, runtime.block_on(phases::run(&variants.iter().collect::<Vec<_>>(), &plan))?);
    }
    print!("{}", alone.print("Each alone", &names));
    print!("{}", together.only(is_its_own).print("Both at the same time", &names));
    Ok(())
}

/// What a host uses itself, and does, also while another one works beside it.
fn is_its_own(row: &str) -> bool {
    ["host CPU", "RSS", "writes", "calls", "a call"].iter().any(|part| row.contains(part))
}
