//! The kinds that can be children, without an API server to ask: all of them, with the scopes that are known.

use pilothouse_controller::{pipeline::check::KnownKinds, schema::Schema};
use pilothouse_engine::contract::KindRef;

/// All kinds, as installed.
pub(crate) struct AllKinds;

impl KnownKinds for AllKinds {
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool> {
        Some(!kind.is_known_cluster_scoped())
    }

    fn schema(&self, _: &KindRef) -> Option<&Schema> {
        None
    }
}
