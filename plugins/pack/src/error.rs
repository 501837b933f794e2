//! Why something cannot be packed, in sentences that say what to do. It never names files: the caller knows them.

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
    #[error(
        "the core module cannot become a component (was it built with bindings of pilothouse:plugin?): {0}"
    )]
    Encode(String),
    /// There is no manifest anywhere.
    #[error(
        "there is no manifest: the input has no custom section `pilothouse:manifest` (the SDK's macro `plugin!` makes one) \
         and none was given with --manifest"
    )]
    NoManifest,
    /// More than one plugin went into the module.
    #[error("there are {0} manifests in the input: one module holds one plugin")]
    ManyManifests(usize),
    /// The manifest is not what a manifest is.
    #[error("the manifest is wrong: {0}")]
    Manifest(String),
    /// The component is not a plugin.
    #[error("the component does not export pilothouse:plugin/reconciler; it exports: {0}")]
    NoReconciler(String),
    /// The component was built for another contract than the manifest says.
    #[error(
        "the manifest says contract {manifest} but the component exports pilothouse:plugin/reconciler@{component}"
    )]
    OtherContract {
        /// The version that the manifest names.
        manifest: String,
        /// The version that the component exports.
        component: String,
    },
}
