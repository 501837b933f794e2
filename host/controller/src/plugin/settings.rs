//! What the cluster says of a plugin, beside its component: its configuration, its account, and where it works. Values only.

use std::sync::Arc;

use super::Grants;
use crate::{identity::Account, selector::Selector};

/// What the cluster says of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// Its configuration as JSON text; none for that of the command line.
    pub config: Option<Arc<str>>,
    /// What it may do at most.
    pub grants: Grants,
    /// The account that it works with; none for the host's own.
    pub account: Option<Account>,
    /// The namespaces whose objects it reconciles; none for all.
    pub namespaces: Option<Selector>,
}
