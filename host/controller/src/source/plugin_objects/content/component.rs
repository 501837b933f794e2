//! A component on its way from its source to the loader. Values only.

use std::sync::Arc;

use pilothouse_artifact::Evidence;

/// The most bytes of an unpacked component. A component of Python has some 20 MiB.
pub const MAX_BYTES: u64 = 64 << 20;

/// What the names of files and of keys end with that hold Sigstore bundles, as cosign names its files.
pub(super) const BUNDLE: &str = ".sigstore.json";

/// A component, judged.
#[derive(Debug)]
pub struct Component {
    /// The component. Shared with the engine: a large one shall be in memory once.
    pub bytes: Arc<[u8]>,
    /// Its SHA-256 in hexadecimal digits.
    pub digest: String,
    /// The digest of its manifest, if it comes from a registry.
    pub manifest_digest: Option<String>,
    /// What it was judged by.
    pub evidence: Vec<Evidence>,
}

/// What a source gives, not judged yet.
pub struct Fetched {
    /// The component.
    pub bytes: Vec<u8>,
    /// What signatures are about.
    pub origin: Origin,
    /// The signatures that are there.
    pub evidence: Vec<Evidence>,
}

/// What signatures are about.
pub enum Origin {
    /// The bytes of the component.
    Bytes,
    /// A manifest in a registry, by its digest.
    Manifest(String),
}
