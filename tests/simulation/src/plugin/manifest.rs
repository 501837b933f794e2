//! The manifests of the versions of the plugin. Values only.

use pilothouse_engine::{Manifest, contract::KindRef};

use super::{
    scope::{API_VERSION, Scope},
    spec::ChildKind,
    version::Version,
};

/// The name of the plugin.
pub const PLUGIN: &str = "simulated";

/// The manifest of a version that reconciles the objects of a scope.
pub fn manifest(version: Version, scope: Scope) -> Manifest {
    let children = ChildKind::all(scope).iter().filter(|kind| version.declares(**kind));
    Manifest {
        children: children.map(|kind| KindRef::new(kind.api_version(), kind.as_str())).collect(),
        lookups: vec![KindRef::new("v1", "ConfigMap").into()],
        finalizes: version == Version::Finalizing,
        orders_children: version.orders(),
        ..Manifest::new(PLUGIN, version.as_str(), KindRef::new(API_VERSION, scope.kind()))
    }
}
