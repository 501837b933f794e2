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
//!
//! With `BENCH_CHECK` it fails where a limit is broken, of those at the same time.

mod host;
mod phases;
mod variant;

use anyhow::{Result, ensure};
use pilothouse_bench::{
    is_asked_for,
    limits::{self, Bound, Limit},
    setting,
    table::Table,
};

use crate::phases::Plan;

/// The memory of an object with its children at rest.
const KIB_EACH: f64 = 12.0;

fn main() -> Result<()> {
    if !is_asked_for() {
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
    let together = together.only(is_its_own);
    print!("{}", together.print("Both at the same time", &names));
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(()) };
    let broken = limits::broken(&together, &limits(plan.objects), first, last);
    ensure!(!limits::are_kept() || broken.is_empty(), "limits are broken:\n{}", broken.join("\n"));
    Ok(())
}

/// What the host keeps with the plugin as WebAssembly, beside the same function linked natively.
fn limits(objects: usize) -> Vec<Limit> {
    let mut limits = vec![Limit { row: "whole run: host CPU, s", bound: Bound::Ratio(1.15) }];
    let most = [
        ("create: writes per object", 3.0),
        ("create: calls per object", 1.0),
        ("restart: writes", 0.0),
        ("touches: writes", 0.0),
        ("new image on all: writes per object", 2.0),
        ("new image on all: calls per object", 1.0),
        ("idle: writes", 0.0),
        ("idle: calls", 0.0),
        ("idle: RSS, MiB", 30.0 + objects as f64 * KIB_EACH / 1_024.0),
    ];
    limits.extend(most.map(|(row, most)| Limit { row, bound: Bound::AtMost(most) }));
    limits
}

/// What a host uses itself, and does, also while another one works beside it.
fn is_its_own(row: &str) -> bool {
    ["host CPU", "RSS", "writes", "calls", "a call"].iter().any(|part| row.contains(part))
}
