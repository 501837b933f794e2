//! The simulated plugin as a WebAssembly component, run by the engine as any other plugin. Slower than the native function, and nothing
//! else may differ.

use std::{fs, io, path::Path, sync::Arc, thread};

use pilothouse_engine::{
    Call, CallContext, Compiler, Engine, EngineConfig, EngineError, Limits, LoadError, Outcome, Plugin, Reconciler,
    Usage, Verb, contract::Request,
};

use super::version::Version;

/// The loaded component. Clones share it.
#[derive(Clone)]
pub struct Component(Arc<Plugin>);

/// Why a component cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The file cannot be read, or there is no thread for it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The component cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Component {
    /// Loads a component from a file. Its machine code is kept in a folder.
    ///
    /// # Errors
    /// [`ComponentError`].
    pub fn load(file: &Path, cache: &Path) -> Result<Self, ComponentError> {
        let config = EngineConfig {
            cache: cache.to_owned(),
            compiler: Compiler::InProcess,
            limits: Limits::default(),
            call_memory: usize::MAX,
        };
        let (engine, bytes) = (Engine::new(config)?, fs::read(file)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self(Arc::new(runtime.block_on(engine.load(bytes))?)))
    }

    /// Calls a version of the plugin. Blocks until it has answered, for the simulated time stands still meanwhile.
    pub(super) fn call(&self, version: Version, verb: Verb, mut request: Request, context: CallContext) -> Call {
        request.config = serde_json::to_string(&version).unwrap_or_default();
        let call = thread::scope(|scope| scope.spawn(|| self.call_in_real_time(verb, request, context)).join());
        let failed = || Call {
            outcome: Outcome::Trap("the call could not be made".to_owned()),
            usage: Usage::default(),
            recorded: Default::default(),
        };
        // How long it took follows from the machine and not from the seed.
        Call { usage: Usage::default(), ..call.ok().flatten().unwrap_or_else(failed) }
    }

    /// On a runtime of its own: the limits of a call are about real time.
    fn call_in_real_time(&self, verb: Verb, request: Request, context: CallContext) -> Option<Call> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
        Some(runtime.block_on(self.0.call(verb, request, context)))
    }
}
