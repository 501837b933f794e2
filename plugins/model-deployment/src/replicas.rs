//! How many servers there shall be, and who says so. The number is handed over between the spec and an autoscaler without a jump. Pure.

use crate::autoscaler::Scaling;
use crate::live::Live;
use crate::observed_scaled_object::Silence;
use pilothouse_sdk::{ImmutablePolicy, Options};

/// The field that an autoscaler sets.
const REPLICAS: &str = "/spec/replicas";

/// How many servers there shall be now: what the spec says, or what an autoscaler has made of it. What is made keeps to the
/// autoscaler's bounds from the beginning.
pub fn desired(scaling: &Scaling, live: &Live, needed: i32) -> i32 {
    let at_first = match scaling {
        Scaling::Fixed(replicas) => return *replicas,
        Scaling::Hpa(bounds) | Scaling::Keda(bounds) => needed.clamp(bounds.min, bounds.max),
        Scaling::External { .. } => needed,
    };
    given_up(scaling, live).unwrap_or(at_first)
}

/// How the host treats the workload.
pub fn options(scaling: &Scaling, live: &Live) -> Options {
    let unmanaged = if given_up(scaling, live).is_some() { vec![REPLICAS.to_owned()] } else { Vec::new() };
    Options { on_immutable: ImmutablePolicy::Recreate, unmanaged, ..Options::default() }
}

/// The number of servers that is left to an autoscaler. It is given up only when that one has a number to begin with: a workload that
/// is created without it has one server, and only some scale one that has none. The host keeps the live number until the autoscaler sets
/// it.
fn given_up(scaling: &Scaling, live: &Live) -> Option<i32> {
    let from_zero = match scaling {
        Scaling::Fixed(_) => return None,
        Scaling::Keda(bounds) => bounds.min == 0,
        Scaling::External { from_zero } => *from_zero,
        Scaling::Hpa(_) => false,
    };
    live.replicas().filter(|live| *live > 0 || from_zero)
}

/// Who decides, in the light of the time before: where nobody asked us to remove the last server, an autoscaler of the user's did, and
/// that stays. What we removed ourselves, while all was suspended, such an autoscaler may never scale up.
pub fn with_zero_of_others(scaling: Scaling, before: Before) -> Scaling {
    match scaling {
        Scaling::External { from_zero } => {
            Scaling::External { from_zero: from_zero || before.needed.is_some_and(|needed| needed > 0) }
        }
        other => other,
    }
}

/// Who decides, in the light of why KEDA makes no autoscaler: where it is paused, whoever has paused it, who may want no server at all.
pub fn unless_paused(scaling: Scaling, silence: Option<&Silence>) -> Scaling {
    if silence == Some(&Silence::Paused) { Scaling::External { from_zero: true } } else { scaling }
}

/// The number of servers that an autoscaler left, which stays until the user gives another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The number; none if the spec alone decides.
    pub replicas: Option<i32>,
    /// Whether the status has it. The autoscaler only goes when it has, for nothing else would tell of it afterwards.
    pub is_recorded: bool,
}

/// What is known of the time before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    /// Whether an autoscaler exists, or has decided.
    pub has_autoscaler: bool,
    /// How many servers were needed.
    pub needed: Option<i32>,
    /// The number that was kept.
    pub kept: Option<i32>,
}

impl Kept {
    /// What is kept of what there was before.
    pub fn of(scaling: &Scaling, live: &Live, before: Before) -> Self {
        let Scaling::Fixed(fixed) = scaling else { return Self::default() };
        let was_scaled = before.has_autoscaler || before.kept.is_some();
        let is_meant = *fixed == 0 || before.needed != Some(*fixed);
        let replicas = live.replicas().filter(|live| was_scaled && !is_meant && *live > 0 && live != fixed);
        Self { replicas, is_recorded: before.kept.is_some() }
    }

    /// Who decides: whoever scales the workload while its number is kept.
    pub fn scaling(self, given: Scaling) -> Scaling {
        if self.replicas.is_some() { Scaling::External { from_zero: false } } else { given }
    }
}
