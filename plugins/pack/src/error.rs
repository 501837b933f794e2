//! Why something cannot be packed, in sentences that say what to do. It never names files: the caller knows them.

use pilothouse_wit::CONTRACT_VERSION;

/// Why the input cannot become a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a core module nor a component.
    #[error("this is not WebAssembly: it begins neither as a core module nor as a component")]
    NotWasm,
    /// The binary is damaged.
    #[error("the WebAssembly is malformed: {0}")]
    Malformed(#[from] wasmparser::BinaryReaderError),
    /// The core module cannot become a component.
    #[error("the core module cannot become a component (was it built with bindings of pilothouse:plugin?): {0}")]
    Encode(String),
    /// The core module has neither component types nor the names by which they are known.
    #[error(
        "the core module exports no `pilothouse:plugin/reconciler@VERSION#reconcile` of a version from {CONTRACT_VERSION} on, and has no \
         embedded component types: was it built with an SDK of Pilothouse?"
    )]
    NoReconcile,
    /// What comes out is not a plugin.
    #[error(transparent)]
    Plugin(#[from] pilothouse_wit::ManifestError),
}
