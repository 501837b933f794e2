//! What every write of a plan works with. Writes nothing itself.

use kube::{Client, api::PatchParams};

use crate::{object::Object, plugin::ActivePlugin};

/// Parameters of a server-side apply. The API server need not look for unknown and doubled fields: it refuses an apply
/// with unknown ones anyway, nothing that is written here has doubled ones, and to look it reads the body once more.
pub fn applying(manager: &str) -> PatchParams {
    PatchParams::apply(manager).force().validation_ignore()
}

/// What applying needs besides the plan.
#[derive(Clone, Copy)]
pub struct Applier<'a> {
    /// The connection.
    pub client: &'a Client,
    /// The plugin, for its field manager and its watches.
    pub plugin: &'a ActivePlugin,
    /// The object whose children are applied.
    pub object: &'a Object,
}
