//! The test runner: one control plane, started for the first test that needs it; for each test a runtime, an environment and a
//! detailed message on failure. Knows no test.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
};

use anyhow::{Context, Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};
use pilothouse_tests::cluster::Cluster;
use tokio::runtime::{Builder, Runtime};

use crate::test_env::TestEnv;

/// The number of tests that run at the same time, unless the command line says otherwise. They mostly wait, so it is more than the
/// number of processors.
const THREADS: usize = 6;

/// All tests.
pub struct Suite {
    trials: Vec<Trial>,
    heavy: Vec<Trial>,
    shared: Arc<Shared>,
}

/// What the tests share.
#[derive(Default)]
struct Shared {
    /// Every test holds it for reading. A timed test holds it for writing, so that it runs alone.
    machine: RwLock<()>,
    /// Held by a heavy test, so that only one of them runs.
    heavy: Mutex<()>,
    cluster: OnceLock<Result<Running>>,
}

/// The control plane and the runtime that it was started in.
struct Running {
    cluster: Arc<Cluster>,
    runtime: Runtime,
}

/// Registers test functions. The name of a test is that of its file and its function.
macro_rules! tests {
    ($suite:expr, $($test:ident),+ $(,)?) => {
        $($suite.test(module_path!(), stringify!($test), $crate::suite::Weight::Light, $test);)+
    };
}
pub(crate) use tests;

/// Registers tests that load the machine for a long time, on control planes of their own. Only one of them runs at a time, beside
/// light tests.
macro_rules! heavy {
    ($suite:expr, $($test:ident),+ $(,)?) => {
        $($suite.test(module_path!(), stringify!($test), $crate::suite::Weight::Heavy, $test);)+
    };
}
pub(crate) use heavy;

/// Registers tests that measure how long something takes. Each of them runs alone.
macro_rules! timed {
    ($suite:expr, $($test:ident),+ $(,)?) => {
        $($suite.test(module_path!(), stringify!($test), $crate::suite::Weight::Alone, $test);)+
    };
}
pub(crate) use timed;

/// Which other tests may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// All but timed ones.
    Light,
    /// Light ones.
    Heavy,
    /// None.
    Alone,
}

impl Suite {
    /// No tests yet.
    pub fn new() -> Self {
        Self { trials: Vec::new(), heavy: Vec::new(), shared: Arc::default() }
    }

    /// Adds a test.
    pub fn test<F>(&mut self, module: &str, name: &str, weight: Weight, test: F)
    where
        F: AsyncFnOnce(&mut TestEnv) -> Result<()> + Send + 'static,
    {
        let subject = module.split_once("::").map_or(module, |(_, subject)| subject);
        let name = format!("{subject}::{name}");
        let (shared, test_name) = (self.shared.clone(), name.clone());
        let trial = move || {
            let heavy = (weight == Weight::Heavy).then(|| shared.heavy.lock().unwrap_or_else(PoisonError::into_inner));
            let result = if weight == Weight::Alone {
                let _machine = shared.machine.write().unwrap_or_else(PoisonError::into_inner);
                run_test(&shared, &test_name, test)
            } else {
                let _machine = shared.machine.read().unwrap_or_else(PoisonError::into_inner);
                run_test(&shared, &test_name, test)
            };
            drop(heavy);
            result.map_err(|error| Failed::from(format!("{error:#}")))
        };
        let trials = if weight == Weight::Heavy { &mut self.heavy } else { &mut self.trials };
        trials.push(Trial::test(name, trial));
    }

    /// Adds a test that cannot run on this machine. It is shown as ignored, with the reason.
    pub fn ignored(&mut self, module: &str, name: &str, why: &str) {
        let subject = module.split_once("::").map_or(module, |(_, subject)| subject);
        eprintln!("{subject}::{name} is ignored: {why}");
        self.trials.push(Trial::test(format!("{subject}::{name}"), || Ok(())).with_ignored_flag(true));
    }

    /// All tests in the order in which they start. The heavy ones are spread, so that few threads wait for one of them.
    fn spread(trials: Vec<Trial>, heavy: Vec<Trial>) -> Vec<Trial> {
        let gap = trials.len() / (heavy.len() + 1) + 1;
        let (mut heavy, mut all) = (heavy.into_iter(), Vec::new());
        for (place, trial) in trials.into_iter().enumerate() {
            // Not at the start of a gap, because the first tests are timed and run alone.
            if place % gap == gap / 2 {
                all.extend(heavy.next());
            }
            all.push(trial);
        }
        all.extend(heavy);
        all
    }

    /// Runs what the command line asks for, then ends the control plane gracefully.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(THREADS);
        let conclusion = libtest_mimic::run(&arguments, Self::spread(self.trials, self.heavy));
        let ended = Arc::into_inner(self.shared).context("a test still runs").and_then(Shared::end);
        match ended {
            Ok(()) => conclusion.exit_code(),
            Err(error) => {
                eprintln!("the control plane did not end well: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}

impl Shared {
    fn cluster(&self) -> Result<Arc<Cluster>> {
        let running = self.cluster.get_or_init(|| {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            let cluster = Arc::new(runtime.block_on(Cluster::start())?);
            Ok(Running { cluster, runtime })
        });
        match running {
            Ok(running) => Ok(running.cluster.clone()),
            Err(error) => Err(anyhow!("the control plane did not start: {error:#}")),
        }
    }

    fn end(self) -> Result<()> {
        match self.cluster.into_inner() {
            Some(Ok(Running { cluster, runtime })) => {
                let cluster = Arc::into_inner(cluster).context("a test still uses it")?;
                runtime.block_on(cluster.stop())
            }
            // Each test has reported already that the control plane did not start.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

/// Runs one test in a runtime and a namespace of its own.
fn run_test<F>(shared: &Shared, name: &str, test: F) -> Result<()>
where
    F: AsyncFnOnce(&mut TestEnv) -> Result<()>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let cluster = shared.cluster()?;
    runtime.block_on(async {
        let mut env = TestEnv::new(cluster, name).await?;
        match test(&mut env).await {
            Ok(()) => Ok(()),
            Err(error) => Err(anyhow!("{error:#}\n{}", env.describe_state().await)),
        }
    })
}
