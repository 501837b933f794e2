//! The engine: one per process, shared by all plugins. Turns bytes into a [`Plugin`] that can be called. Calls nothing itself.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    component::{Component, ComponentExportIndex, HasSelf, InstancePre, Linker},
};

use crate::{
    CompileError, Compiler, ConfigError, ContractSeries, Declaration, Limits, Manifest, ManifestError, Template,
    budget::{Budget, Need, Share},
    cache::{Cache, UsedCode},
    contract::{Imports, v0_1},
    digest,
    epoch::Ticker,
    log_rate::{PluginLog, PluginLogs},
    precompiled,
    resting_code::{CodeInUse, LoadedCode},
    slow::SlowLane,
    state::CallState,
    warm::{WarmInstances, WarmInstancesOfAll},
};

/// The most instances at once, over all plugins; further calls wait.
const MAX_INSTANCES: u32 = 32;

/// How often it is looked whether the machine code in use has to be marked as used or may rest, and whether an instance has waited for long.
const KEEPING_ORDER: Duration = Duration::from_secs(10);

/// What the compiler needs: so many bytes, and so many for each byte of the component. Measured: 36 MiB for 137 KiB, 62 MiB for 726 KiB,
/// 324 MiB for 18 MiB.
const COMPILER_BASE: usize = 40 << 20;
const COMPILER_FACTOR: usize = 20;

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The private directory for precompiled code; created if it is missing.
    pub cache: PathBuf,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// The limits of every call.
    pub limits: Limits,
    /// The bytes of memory that all calls may have together; further calls wait. See
    /// [`call_memory_of_container`](crate::call_memory_of_container).
    pub call_memory: usize,
}

/// Why an engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// WebAssembly cannot run on this machine.
    #[error("failed to set up WebAssembly: {0}")]
    Setup(wasmtime::Error),
    /// The cache directory cannot be used.
    #[error("failed to use the cache directory '{path}'", path = path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No thread could be started.
    #[error("failed to start the epoch thread")]
    Thread(#[source] std::io::Error),
}

/// Why a plugin could not be loaded. The version that runs already is not affected.
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
    /// It imports something outside the contract, or exports other types.
    #[error("the component does not fit the contract: {0}")]
    Link(String),
    /// No instance of it comes to be.
    #[error("the component does not start: {0}")]
    Start(#[from] StartError),
    /// Its manifest comes from its configuration, and that is none that it can use.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why no instance of a component comes to be.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It took longer than this. On a busy machine it may be done next time.
    #[error(
        "it is not done within {0:?} and may loop; correct what it does before it is called, or allow it more time in spec.limits of its Plugin"
    )]
    Deadline(Duration),
    /// It needs more than this number of bytes.
    #[error(
        "it needs more than {} MiB of memory before it is called; correct that, or allow it more in spec.limits of its Plugin",
        .0 >> 20
    )]
    Memory(usize),
    /// It hands more than this number of bytes to the host.
    #[error("it hands more than {} KiB to the host before it is called; correct that", .0 >> 10)]
    Output(usize),
    /// It trapped.
    #[error("{0}; correct what it does before it is called")]
    Trap(String),
}

/// The cost of loading a plugin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadStats {
    /// The time to compile the component; none if the code came from the cache.
    pub compiling: Option<Duration>,
    /// The time of the whole load, compilation included.
    pub duration: Duration,
}

/// Loads plugins. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    linker: Arc<Linker<CallState>>,
    cache: Arc<Cache>,
    compiler: Compiler,
    /// The memory of the compilers at work.
    compiling: Arc<Share>,
    limits: Limits,
}

/// The parts of the engine that calls need.
pub(crate) struct Shared {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) ticker: Ticker,
    pub(crate) budget: Arc<Budget>,
    pub(crate) slow: SlowLane,
    pub(crate) logs: PluginLogs,
    pub(crate) warm: Arc<WarmInstancesOfAll>,
    pub(crate) loaded: LoadedCode,
}

/// A loaded plugin: checked, compiled and linked. It can be called any number of times, also concurrently.
pub struct Plugin {
    pub(crate) manifest: Manifest,
    /// What the component says about itself, where the manifest comes from the configuration.
    pub(crate) template: Option<Template>,
    pub(crate) digest: String,
    pub(crate) code: Arc<Code>,
    /// The cost of loading it.
    pub stats: LoadStats,
}

/// Everything that a call of a plugin needs.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: Limits,
    pub(crate) pre: InstancePre<CallState>,
    /// The version of the contract whose types its functions have.
    pub(crate) contract: ContractSeries,
    pub(crate) reconcile: ComponentExportIndex,
    pub(crate) finalize: Option<ComponentExportIndex>,
    pub(crate) configure: Option<ComponentExportIndex>,
    pub(crate) imports_wasi: bool,
    /// The memory that its calls need. With other limits they need the same.
    pub(crate) need: Arc<Need>,
    /// What its calls have at the moment.
    pub(crate) share: Arc<Share>,
    /// What the plugin may write into the log.
    pub(crate) log: Arc<PluginLog>,
    /// The instances that wait for its next call, where one may answer several.
    pub(crate) warm: Option<Arc<WarmInstances>>,
    /// Its machine code, which rests while nobody calls it.
    pub(crate) in_use: Arc<CodeInUse>,
    /// Keeps the file of the machine code.
    _file: Arc<UsedCode>,
}

impl Engine {
    /// Sets up WebAssembly, the cache and the epoch ticker.
    ///
    /// # Errors
    /// [`EngineError`], which says what to change.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let wasmtime = wasmtime_engine(Purpose::Run).map_err(EngineError::Setup)?;
        let cache = Cache::open(&config.cache, &wasmtime)
            .map_err(|source| EngineError::Cache { path: config.cache.clone(), source })?;
        let ticker = Ticker::start(&wasmtime).map_err(EngineError::Thread)?;
        let linker = linker(&wasmtime).map_err(EngineError::Setup)?;
        let warm = Arc::<WarmInstancesOfAll>::default();
        let reclaim = {
            // Weak, because instances that wait hold a part of the budget.
            let warm = Arc::downgrade(&warm);
            move || warm.upgrade().is_some_and(|warm| warm.give_back())
        };
        let shared = Shared {
            wasmtime,
            ticker,
            budget: Arc::new(Budget::new(config.call_memory, MAX_INSTANCES as usize, Box::new(reclaim))),
            slow: SlowLane::default(),
            logs: PluginLogs::default(),
            warm,
            loaded: LoadedCode::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            linker: Arc::new(linker),
            cache: Arc::new(cache),
            compiler: config.compiler,
            compiling: Arc::default(),
            limits: config.limits,
        })
    }

    /// Reads, checks, compiles (or takes from the cache), links and starts a plugin.
    ///
    /// # Errors
    /// [`LoadError`], which says what is wrong with the plugin and what to do.
    pub async fn load(&self, bytes: impl Into<Arc<[u8]>>) -> Result<Plugin, LoadError> {
        self.load_within(bytes, self.limits.clone()).await
    }

    /// The limits of calls, where a plugin has none of its own.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The bytes of memory that all calls may have together.
    pub fn call_memory(&self) -> usize {
        self.shared.budget.bytes()
    }

    /// Whether the machine code of the component with this digest is in the cache. It may still turn out to be damaged.
    pub fn is_compiled(&self, digest: &str) -> bool {
        self.cache.path(digest).exists()
    }

    /// Keeps the machine code of the components with these digests, for the next start of the host. Of other code that is not used any more,
    /// the last few versions stay.
    pub fn keep_compiled(&self, digests: BTreeSet<String>) {
        self.cache.keep(digests);
    }

    /// Keeps order, for ever: lets instances go that have waited for long, gives back the memory of machine code that nobody calls, and marks
    /// the machine code in use as used, because what nobody has used for long is removed when a host starts, and this one may run for longer.
    pub async fn keep_order(&self) {
        loop {
            self.cache.mark_used();
            self.shared.warm.drop_old();
            self.shared.loaded.rest();
            tokio::time::sleep(KEEPING_ORDER).await;
        }
    }

    /// Loads a plugin whose calls have limits of their own. Its memory stays below the limit of the engine all the same.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub async fn load_within(&self, bytes: impl Into<Arc<[u8]>>, limits: Limits) -> Result<Plugin, LoadError> {
        self.load_configured(bytes, limits, None).await
    }

    /// As [`load_within`](Self::load_within), for a plugin whose kinds may come from this configuration, JSON text. For others it does not
    /// matter here.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub async fn load_configured(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        limits: Limits,
        config: Option<&str>,
    ) -> Result<Plugin, LoadError> {
        let (started, bytes) = (Instant::now(), bytes.into());
        let (declaration, digest) = {
            let bytes = bytes.clone();
            run_blocking(move || Ok::<_, ManifestError>((Declaration::read(&bytes)?, digest(&bytes)))).await??
        };
        if let Declaration::Configured(template) = &declaration {
            // What does not even fit the schema needs no compiler.
            template.check_config(config)?;
        }
        // What does not come to be used is unused, whatever stops it.
        let used = self.cache.begin_use(&digest);
        let CompiledComponent { component, compiling } = self.compiled(&bytes, &digest).await?;
        let pre = self.linker.instantiate_pre(&component).map_err(|error| LoadError::Link(format!("{error:#}")))?;
        let contract = match &declaration {
            Declaration::Fixed(manifest) => manifest.series(),
            Declaration::Configured(template) => ContractSeries::of(&template.contract).unwrap_or_default(),
        };
        let reconcile = export(&component, contract, ("reconciler", "reconcile"))
            .ok_or_else(|| LoadError::Link("`reconciler.reconcile` is not exported".to_owned()))?;
        let code = Code {
            shared: self.shared.clone(),
            contract,
            finalize: export(&component, contract, ("finalizer", "finalize")),
            configure: export(&component, contract, ("configurator", "configure")),
            imports_wasi: imports_wasi(&component, &self.shared.wasmtime),
            limits: self.capped(limits),
            pre,
            reconcile,
            need: Arc::default(),
            share: Arc::default(),
            log: Arc::default(),
            warm: None,
            in_use: self.shared.loaded.add(component),
            _file: Arc::new(used),
        };
        // What it writes before it is called is nobody's yet: anything can bear a plugin's name.
        let code = Arc::new(code);
        let (manifest, template) = match declaration {
            Declaration::Fixed(manifest) => {
                code.try_start().await?;
                (*manifest, None)
            }
            // To be asked is to be started.
            Declaration::Configured(template) => (code.configure(&template, config).await?, Some(template)),
        };
        let code = self.code_of(&manifest, &code);
        let stats = LoadStats { compiling, duration: started.elapsed() };
        Ok(Plugin { manifest, template, digest, code, stats })
    }

    /// The same component with another configuration, JSON text: where its kinds come from it, it may be another plugin.
    ///
    /// # Errors
    /// [`LoadError`] if the plugin cannot use it.
    pub async fn reconfigured(&self, plugin: &Plugin, config: Option<&str>) -> Result<Plugin, LoadError> {
        let Plugin { manifest, template, digest, code, stats } = plugin;
        let (manifest, code) = match template {
            None => (manifest.clone(), code.clone()),
            Some(template) => {
                template.check_config(config)?;
                let manifest = code.configure(template, config).await?;
                let code = self.code_of(&manifest, code);
                (manifest, code)
            }
        };
        Ok(Plugin { manifest, template: template.clone(), digest: digest.clone(), code, stats: *stats })
    }

    /// Whether a plugin still starts, within the limits that it has by now.
    ///
    /// # Errors
    /// [`LoadError::Start`].
    pub async fn try_start(&self, plugin: &Plugin) -> Result<(), LoadError> {
        plugin.code.try_start().await
    }

    /// The same plugin, whose calls have other limits. Nothing is compiled for that.
    pub fn limited(&self, plugin: &Plugin, limits: Limits) -> Plugin {
        let Plugin { manifest, template, digest, code, stats } = plugin;
        let code = self.code_of(manifest, &Code { limits: self.capped(limits), ..Code::clone(code) });
        let (manifest, template, digest) = (manifest.clone(), template.clone(), digest.clone());
        Plugin { manifest, template, digest, code, stats: LoadStats { compiling: None, ..*stats } }
    }

    /// The code as that of the plugin with this manifest. No instance of before answers its calls.
    fn code_of(&self, manifest: &Manifest, code: &Code) -> Arc<Code> {
        let log = self.shared.logs.of(&manifest.name);
        let most_calls = manifest.calls_per_instance.unwrap_or(1).min(code.limits.calls_per_instance);
        let warm = (most_calls > 1).then(|| self.shared.warm.of_plugin(most_calls));
        Arc::new(Code { log, warm, ..Code::clone(code) })
    }

    fn capped(&self, limits: Limits) -> Limits {
        Limits { memory_bytes: limits.memory_bytes.min(self.limits.memory_bytes), ..limits }
    }

    /// Takes the code from the cache, or compiles the component.
    async fn compiled(&self, bytes: &[u8], digest: &str) -> Result<CompiledComponent, LoadError> {
        let path = self.cache.path(digest);
        if self.cache.has(digest).map_err(|error| LoadError::Code(error.to_string()))? {
            match precompiled::load(&self.shared.wasmtime, &path) {
                Ok(component) => return Ok(CompiledComponent { component, compiling: None }),
                Err(error) => {
                    tracing::warn!(path = %path.display(), "the cached code is damaged, compiling again: {error:#}")
                }
            }
        }
        if let Some(why) = self.cache.refusal(digest) {
            return Err(CompileError::Refused(why).into());
        }
        let io = |error: std::io::Error| LoadError::Code(error.to_string());
        let scratch = self.cache.scratch().map_err(io)?;
        let output = scratch.path().join("code");
        // What the compiler needs is not free for calls. As it reserves nearly all there is for a large component, there is hardly ever
        // more than one of them at work.
        let budget = &self.shared.budget;
        let needed = COMPILER_BASE + bytes.len().saturating_mul(COMPILER_FACTOR);
        let _reservation = budget.reserve_memory(&self.compiling, needed).await;
        let started = Instant::now();
        let compiled = self.compiler.compile(&self.shared.wasmtime, bytes, &output, budget.bytes()).await;
        if let Err(error @ (CompileError::Deadline | CompileError::Memory(_))) = &compiled {
            self.cache.remember_refusal(digest, &error.to_string()).map_err(io)?;
        }
        compiled?;
        let compiling = started.elapsed();
        self.cache.commit(&output, digest).map_err(io)?;
        let component =
            precompiled::load(&self.shared.wasmtime, &path).map_err(|error| LoadError::Code(format!("{error:#}")))?;
        Ok(CompiledComponent { component, compiling: Some(compiling) })
    }
}

/// A component with its machine code.
struct CompiledComponent {
    component: Component,
    /// The time to compile it; none if it came from the cache.
    compiling: Option<Duration>,
}

/// What a wasmtime engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To compile only.
    Compile,
    /// To run code too.
    Run,
}

/// Runs long computations on another thread, so that they do not block the runtime.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| LoadError::Code(error.to_string()))
}

/// A wasmtime engine with the settings of this host. An engine that only compiles has no instance pool; its code is compatible
/// with an engine that runs.
pub(crate) fn wasmtime_engine(purpose: Purpose) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        // The contract has no async functions. Without the support, a store is created without its data structures.
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        // Backtraces use wasmtime's own tables. The registry of the system's unwinder is slow with many modules.
        .native_unwind_info(false)
        // Functions of the host run on the same stack. For them, the difference of the two sizes is left.
        .async_stack_size(1 << 20)
        .max_wasm_stack(512 << 10);
    if purpose == Purpose::Run {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    }
    wasmtime::Engine::new(&config)
}

/// The core instances, memories and tables of one component at most. Those of Python have some twenty instances, those of JavaScript
/// three memories.
const INSTANCES_PER_COMPONENT: u32 = 64;
const MEMORIES_PER_COMPONENT: u32 = 4;
const TABLES_PER_COMPONENT: u32 = 16;

/// A pool in which [`MAX_INSTANCES`] components have room, whatever they are made of: a full pool would be a fault of the host that
/// some plugin is blamed for. Reserves address space, not memory.
fn pool() -> PoolingAllocationConfig {
    let limits = Limits::default();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(MAX_INSTANCES)
        .total_core_instances(MAX_INSTANCES * INSTANCES_PER_COMPONENT)
        .total_memories(MAX_INSTANCES * MEMORIES_PER_COMPONENT)
        .total_tables(MAX_INSTANCES * TABLES_PER_COMPONENT)
        .total_stacks(MAX_INSTANCES)
        .max_core_instances_per_component(INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_tables_per_module(TABLES_PER_COMPONENT)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .table_elements(limits.table_elements)
        .max_memory_size(limits.memory_bytes)
        // Clearing the memory that most instances touch is cheaper than returning it to the system.
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(16 << 10)
        .async_stack_keep_resident(32 << 10)
        // A slot keeps the memory of the plugin that used it last. Reusing few slots keeps an idle host small.
        .max_unused_warm_slots(8)
        .pagemap_scan(Enabled::Auto);
    pool
}

fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    Imports::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
    v0_1::Imports::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// The export of a function in an interface of a version of the contract.
fn export(
    component: &Component,
    contract: ContractSeries,
    (interface, function): (&str, &str),
) -> Option<ComponentExportIndex> {
    let version = contract.version();
    let instance = component.get_export_index(None, format!("pilothouse:plugin/{interface}@{version}").as_str())?;
    component.get_export_index(Some(&instance), function)
}

fn imports_wasi(component: &Component, engine: &wasmtime::Engine) -> bool {
    component.component_type().imports(engine).any(|(name, _)| name.starts_with("wasi:"))
}
