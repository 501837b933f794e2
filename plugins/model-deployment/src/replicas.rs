//! How many servers there shall be, and who says so. The number is handed over between the spec and an autoscaler without a jump. Pure.

use crate::autoscaler::{Bounds, Scaling};
use crate::live::Live;
use pilothouse_sdk::{ImmutablePolicy, Options};

/// The field that an autoscaler sets.
const REPLICAS: &str = "/spec/replicas";

/// How many servers there shall be now: what the spec says, or what an autoscaler has made of it.
pub fn desired(scaling: &Scaling, live: &Live, needed: i32) -> i32 {
    match scaling {
        Scaling::Fixed(replicas) => *replicas,
        Scaling::Keda(Bounds { min: 0, .. }) => live.replicas().unwrap_or(needed),
        Scaling::Hpa(_) | Scaling::Keda(_) | Scaling::External => {
            live.replicas().filter(|live| *live > 0).unwrap_or(needed)
        }
    }
}

/// How the host treats the workload.
pub fn options(scaling: &Scaling, live: &Live) -> Options {
    let unmanaged = if is_given_up(scaling, live) { vec![REPLICAS.to_owned()] } else { Vec::new() };
    Options { on_immutable: ImmutablePolicy::Recreate, unmanaged, ..Options::default() }
}

/// Whether the number of servers is left to an autoscaler. It is given up only when that one has a number to begin with: a workload that
/// is created without it has one server, and only KEDA scales one that has none. The host keeps the live number until the autoscaler sets
/// it.
fn is_given_up(scaling: &Scaling, live: &Live) -> bool {
    match scaling {
        Scaling::Fixed(_) => false,
        Scaling::Keda(Bounds { min: 0, .. }) => live.replicas().is_some(),
        Scaling::Hpa(_) | Scaling::Keda(_) | Scaling::External => live.replicas().is_some_and(|replicas| replicas > 0),
    }
}
