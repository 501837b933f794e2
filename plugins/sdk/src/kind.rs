//! Which kind of object a Rust type stands for. It says nothing about how much of the object the type reads.

use crate::raw::KindRef;

/// A type that stands for a kind of object, wholly or in part.
///
/// Every type of `k8s-openapi` is one. For a custom kind, or to read only a few fields of a big one, implement it for a
/// type of your own:
///
/// ```
/// # use serde::Deserialize;
/// #[derive(Deserialize)]
/// struct PodPhase {
///     status: Phase,
/// }
///
/// #[derive(Deserialize)]
/// struct Phase {
///     phase: Option<String>,
/// }
///
/// impl pilothouse_sdk::Kind for PodPhase {
///     const API_VERSION: &'static str = "v1";
///     const KIND: &'static str = "Pod";
///     const FIELDS: &'static [&'static str] = &["/status/phase"];
/// }
/// ```
pub trait Kind {
    /// Group and version as in a manifest file: `apps/v1`, or `v1` for the core group.
    const API_VERSION: &'static str;
    /// The kind, in CamelCase and singular.
    const KIND: &'static str;
    /// JSON pointers of the fields that the type reads, such as `/status/phase`: a lookup returns no others, and a change of others
    /// wakes nobody. Empty: all fields.
    const FIELDS: &'static [&'static str] = &[];
}

/// The fields that a lookup of `K` asks for.
pub(crate) fn fields<K: Kind>() -> Vec<String> {
    K::FIELDS.iter().copied().map(str::to_owned).collect()
}

/// The kind `K` as the contract names it.
pub(crate) fn kind_ref<K: Kind>() -> KindRef {
    KindRef { api_version: K::API_VERSION.to_owned(), kind: K::KIND.to_owned() }
}

impl<T: k8s_openapi::Resource> Kind for T {
    const API_VERSION: &'static str = <T as k8s_openapi::Resource>::API_VERSION;
    const KIND: &'static str = <T as k8s_openapi::Resource>::KIND;
}
