//! What the cluster says of a plugin, beside its component: its configuration, its account, and where it works. Values only.

use std::{sync::Arc, time::Duration};

use pilothouse_engine::Limits;

use super::Grants;
use crate::{identity::Account, selector::Selector};

/// What a plugin may use, where that is not what every plugin may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginLimits {
    /// The bytes of memory of a call.
    pub memory_bytes: Option<usize>,
    /// The computing time of a call.
    pub cpu: Option<Duration>,
    /// The time of a call, with all that it waits for.
    pub wall: Option<Duration>,
    /// The bytes of an answer.
    pub output_bytes: Option<usize>,
    /// How many of its objects are reconciled at once.
    pub concurrency: Option<usize>,
}

impl PluginLimits {
    /// The limits of its calls, where those of every plugin are `limits`.
    pub fn of_calls(&self, limits: Limits) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes.unwrap_or(limits.memory_bytes),
            cpu: self.cpu.unwrap_or(limits.cpu),
            wall: self.wall.unwrap_or(limits.wall),
            output_bytes: self.output_bytes.unwrap_or(limits.output_bytes),
            ..limits
        }
    }
}

/// What the cluster says of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// Its configuration as JSON text; none for that of the command line.
    pub config: Option<Arc<str>>,
    /// What it may do at most.
    pub grants: Grants,
    /// The account that it works with; none for the host's own.
    pub account: Option<Account>,
    /// What it may use.
    pub limits: PluginLimits,
    /// The namespaces whose objects it reconciles; none for all.
    pub namespaces: Option<Selector>,
    /// Whether it is there.
    pub presence: Presence,
}

/// Whether a plugin is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    #[default]
    AtWork,
    /// It is gone, and only the objects that it leaves behind are looked after.
    Departed,
}
