//! The arguments that all writes of a plan share. Writes nothing itself.

use kube::{Client, api::PatchParams};

use crate::{object::Object, plugin::ActivePlugin};

/// The parameters of a server-side apply. Field validation is off because it costs a second parse of the body: an apply with
/// unknown fields is refused anyway, and our JSON never has duplicate fields.
pub fn applying(manager: &str) -> PatchParams {
    PatchParams::apply(manager).force().validation_ignore()
}

/// The parameters of a merge patch by a field manager.
pub fn merging(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

/// What the writes do to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They change it.
    Lasting,
    /// The client makes dry runs of them, so that the log may not say that anything is done.
    DryRun,
}

/// The context of all writes of a plan.
#[derive(Clone, Copy)]
pub struct Applier<'a> {
    /// The host's own client, for the owner.
    pub host_client: &'a Client,
    /// The client for the children, which acts as the plugin's account if it has one.
    pub client: &'a Client,
    /// The plugin, for its field manager and its watches.
    pub plugin: &'a ActivePlugin,
    /// The owner of the children.
    pub object: &'a Object,
    /// What the writes do. Says it only: the clients decide about it.
    pub effect: Effect,
}

impl Applier<'_> {
    /// The version of the plugin, which its children are marked with.
    pub fn version(&self) -> &str {
        &self.plugin.manifest().version
    }
}
