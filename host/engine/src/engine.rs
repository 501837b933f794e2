//! The engine: one per process, shared by all plugins. Turns bytes into a [`Plugin`] that can be called.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    component::{Component, ComponentExportIndex, HasSelf, InstancePre, Linker},
};

use crate::{
    CONTRACT_VERSION, CompileError, Compiler, Limits, Manifest, ManifestError, cache::Cache, contract::Imports, digest,
    epoch::Ticker, precompiled, slow::SlowLane, state::CallState,
};

/// Calls that may hold an instance at once, over all plugins; more wait for their turn.
const SLOTS: u32 = 32;

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Private directory for precompiled code, created when missing.
    pub cache: PathBuf,
    /// Where compilation happens.
    pub compiler: Compiler,
    /// The limits of every call.
    pub limits: Limits,
}

/// Why an engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// WebAssembly cannot run here.
    #[error("failed to set up WebAssembly: {0}")]
    Setup(wasmtime::Error),
    /// The cache directory cannot be used.
    #[error("failed to use the cache directory '{path}': {source}", path = path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No thread could be started.
    #[error("failed to start the epoch thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// Why a plugin could not be loaded. Whatever version ran before is not affected.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not a plugin.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The component does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The compiled code could not be stored or loaded.
    #[error("failed to load the compiled component: {0}")]
    Code(String),
    /// It imports what the contract does not offer, or exports another shape.
    #[error("the component does not fit the contract: {0}")]
    Link(String),
}

/// How a load went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadStats {
    /// Time to compile the component; none if the code came from the cache.
    pub compiling: Option<Duration>,
    /// Time of the whole load, compiling included.
    pub duration: Duration,
}

/// Loads plugins. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    linker: Arc<Linker<CallState>>,
    cache: Arc<Cache>,
    compiler: Compiler,
    limits: Limits,
}

/// What calls need of the engine.
pub(crate) struct Shared {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) ticker: Ticker,
    pub(crate) slots: Semaphore,
    pub(crate) slow: SlowLane,
}

/// A loaded plugin: checked, compiled, linked; ready to be called any number of times, also at once.
pub struct Plugin {
    pub(crate) manifest: Manifest,
    pub(crate) digest: String,
    pub(crate) code: Arc<Code>,
    /// How the load went.
    pub stats: LoadStats,
}

/// What a call of a plugin needs, wherever it runs.
pub(crate) struct Code {
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: Limits,
    pub(crate) pre: InstancePre<CallState>,
    pub(crate) reconcile: ComponentExportIndex,
    pub(crate) finalize: Option<ComponentExportIndex>,
    pub(crate) imports_wasi: bool,
}

impl Engine {
    /// Sets up WebAssembly, the cache and the clock.
    ///
    /// # Errors
    /// [`EngineError`], which says what to change.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let wasmtime = wasmtime_engine(false).map_err(EngineError::Setup)?;
        let cache = Cache::open(&config.cache, &wasmtime)
            .map_err(|source| EngineError::Cache { path: config.cache.clone(), source })?;
        let ticker = Ticker::start(&wasmtime).map_err(EngineError::Thread)?;
        let linker = linker(&wasmtime).map_err(EngineError::Setup)?;
        let shared = Shared { wasmtime, ticker, slots: Semaphore::new(SLOTS as usize), slow: SlowLane::default() };
        Ok(Self {
            shared: Arc::new(shared),
            linker: Arc::new(linker),
            cache: Arc::new(cache),
            compiler: config.compiler,
            limits: config.limits,
        })
    }

    /// Reads, checks, compiles (or takes from the cache) and links a plugin.
    ///
    /// # Errors
    /// [`LoadError`], which says what is wrong with the plugin and what to do.
    pub async fn load(&self, bytes: impl Into<Arc<[u8]>>) -> Result<Plugin, LoadError> {
        let (started, bytes) = (Instant::now(), bytes.into());
        let (manifest, digest) = {
            let bytes = bytes.clone();
            aside(move || Ok::<_, ManifestError>((Manifest::read(&bytes)?, digest(&bytes)))).await??
        };
        let (component, compiling) = self.code(&bytes, &digest).await?;
        let pre = self.linker.instantiate_pre(&component).map_err(|error| LoadError::Link(format!("{error:#}")))?;
        let reconcile = export(&component, "reconciler", "reconcile")
            .ok_or_else(|| LoadError::Link("`reconciler.reconcile` is not exported".to_owned()))?;
        let code = Code {
            shared: self.shared.clone(),
            finalize: export(&component, "finalizer", "finalize"),
            imports_wasi: imports_wasi(&component, &self.shared.wasmtime),
            limits: self.limits.clone(),
            pre,
            reconcile,
        };
        let stats = LoadStats { compiling, duration: started.elapsed() };
        Ok(Plugin { manifest, digest, code: Arc::new(code), stats })
    }

    /// The component's code, and how long it took to compile it if it was not in the cache.
    async fn code(&self, bytes: &[u8], digest: &str) -> Result<(Component, Option<Duration>), LoadError> {
        let path = self.cache.path(digest);
        if path.exists() {
            match precompiled::load(&self.shared.wasmtime, &path) {
                Ok(component) => return Ok((component, None)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), "compiling anew, the cached code is damaged: {error:#}")
                }
            }
        }
        let io = |error: std::io::Error| LoadError::Code(error.to_string());
        let scratch = self.cache.scratch().map_err(io)?;
        let output = scratch.path().join("code");
        let started = Instant::now();
        self.compiler.compile(&self.shared.wasmtime, bytes, &output).await?;
        let compiling = started.elapsed();
        self.cache.commit(&output, digest).map_err(io)?;
        let component =
            precompiled::load(&self.shared.wasmtime, &path).map_err(|error| LoadError::Code(format!("{error:#}")))?;
        Ok((component, Some(compiling)))
    }
}

/// Does work of more than a moment where it keeps nobody waiting.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| LoadError::Code(error.to_string()))
}

/// The settings that all engines of this version share; `compile` leaves out what only running needs. Both make code
/// of the same compatibility.
pub(crate) fn wasmtime_engine(compile: bool) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        // Backtraces come from wasmtime's own tables; the system unwinder's registry is slow with many modules.
        .native_unwind_info(false)
        .async_stack_size(1 << 20)
        .max_wasm_stack(512 << 10);
    if !compile {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    }
    wasmtime::Engine::new(&config)
}

/// Room for [`SLOTS`] instances of components with many core modules, as the Python and JavaScript tools make them.
/// Reserves address space, not memory.
fn pool() -> PoolingAllocationConfig {
    let limits = Limits::default();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(SLOTS)
        .total_core_instances(SLOTS * 16)
        .total_memories(SLOTS * 2)
        .total_tables(SLOTS * 8)
        .total_stacks(SLOTS)
        .max_core_instances_per_component(64)
        .max_memories_per_component(2)
        .max_tables_per_component(16)
        .max_tables_per_module(16)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .table_elements(limits.table_elements)
        .max_memory_size(limits.memory_bytes)
        // What an instance usually touches is cleared in place, which is cheaper than giving it back to the system.
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(16 << 10)
        .async_stack_keep_resident(32 << 10)
        .max_unused_warm_slots(8)
        .pagemap_scan(Enabled::Auto);
    pool
}

fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    Imports::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// An exported function of one of the contract's interfaces.
fn export(component: &Component, interface: &str, function: &str) -> Option<ComponentExportIndex> {
    let instance =
        component.get_export_index(None, format!("pilothouse:plugin/{interface}@{CONTRACT_VERSION}").as_str())?;
    component.get_export_index(Some(&instance), function)
}

fn imports_wasi(component: &Component, engine: &wasmtime::Engine) -> bool {
    component.component_type().imports(engine).any(|(name, _)| name.starts_with("wasi:"))
}
