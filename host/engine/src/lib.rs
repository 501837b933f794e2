//! Loads and calls reconcile plugins: WebAssembly components that implement the contract in `wit/`. Has no Kubernetes client and
//! makes no request of any kind. The caller answers a plugin's lookups through [`Lookups`].
//!
//! # Flow
//!
//! 1. [`Manifest::read`] reads the manifest from the bytes. Nothing of the plugin runs.
//! 2. [`Engine::load`] compiles the component or takes its code from the cache, and links it once.
//! 3. [`Plugin::call`](Reconciler::call) creates a new instance for each call, runs it under [`Limits`] and drops it. Where the manifest
//!    lets an instance answer several calls, one that has answered waits for the next call instead.
//!
//! # Guarantees
//!
//! - A call always ends with an [`Outcome`]: a plugin cannot block, crash or exhaust the process.
//! - Nothing leaks from one call into the next, unless the manifest of the plugin allows it.
//! - A call depends only on its request and on what it reads through imports, which is recorded ([`Recorded`]).
//! - Code that was not compiled by this host is never run as machine code.
//!
//! # Caveats
//!
//! - A call that takes longer than a time slice continues on another thread.
//! - [`Fingerprint`]s are valid within one process only.
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use pilothouse_engine::{
//!     CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Reconciler, Verb, contract::Request,
//! };
//!
//! # async fn run(bytes: Vec<u8>, request: Request) -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::new(EngineConfig {
//!     cache: "/var/cache/pilothouse".into(),
//!     compiler: Compiler::InProcess,
//!     limits: Limits::default(),
//!     call_memory: 1 << 30,
//! })?;
//! let plugin = engine.load(bytes).await?;
//! let context = CallContext { lookups: Arc::new(NoLookups), now: jiff::Timestamp::now() };
//! match plugin.call(Verb::Reconcile, request, context).await.outcome {
//!     Outcome::Response(response) => println!("{:?}", response.verdict),
//!     failed => println!("{} failed: {failed:?}", plugin.manifest().name),
//! }
//! # Ok(())
//! # }
//! ```

mod budget;
mod cache;
mod call;
mod compile;
pub mod contract;
mod digest;
mod engine;
mod epoch;
mod fingerprint;
mod imports;
mod kept_memory;
mod limits;
mod log_rate;
pub mod lookups;
mod precompiled;
mod reconciler;
mod resting_code;
mod slow;
mod start;
mod state;
mod token_bucket;
mod warm;
mod wasi;

pub use budget::{call_memory_of_container, memory_of_container};
pub use cache::KEPT_FOR;
pub use call::{Call, CallContext, Outcome, Usage, Verb};
pub use compile::{CompileError, Compiler, compile_file, limit_computing_time};
pub use digest::digest;
pub use engine::{Engine, EngineConfig, EngineError, LoadError, LoadStats, Plugin, StartError};
pub use fingerprint::Fingerprint;
pub use kept_memory::kept_by;
pub use limits::Limits;
pub use lookups::{Answer, AnsweredLookup, DeniedLookup, Lookups, NoLookups, Query, Recorded, Scope, Target};
pub use pilothouse_wit::{
    CONTRACT_VERSION, ChildReadiness, ChildReads, ConfigError, ConfigSchema, ContractSeries, Declaration, Decorates,
    EvaluationError, Expression, Interfaces, Lookup, MalformedRequirement, Manifest, ManifestError, Measurement,
    MeasurementKind, Requirement, Selector, Template, is_json_pointer,
};
pub use reconciler::Reconciler;
pub use token_bucket::{Admission, Rate, Refusals, TokenBucket};
