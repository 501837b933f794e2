//! The test runner: one control plane, started for the first test that needs it; for each test a runtime, an environment and a
//! detailed message on failure. Knows no test.

use std::{
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};
use pilothouse_tests::{api_servers::ApiServers, cgroup::Cgroup, cluster::Cluster, languages::Language, thoroughness};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::test_env::TestEnv;

/// The number of tests that run at the same time, unless the command line says otherwise. They mostly wait, so it is more than the
/// number of processors.
const THREADS: usize = 6;

/// How many heavy tests run at the same time: one of them often waits for its control plane or for time to pass.
const HEAVY_AT_ONCE: usize = 2;

/// The number of tests whose times are told at the end, the longest ones: who shortens the suite begins there.
const LONGEST: usize = 20;

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
    /// How many heavy tests run.
    heavy: Mutex<usize>,
    heavy_ended: Condvar,
    times: Mutex<Vec<Time>>,
    cluster: OnceLock<Result<Running>>,
    /// For tests that need an API server for themselves.
    api_servers: Arc<ApiServers>,
}

/// A heavy test that runs.
struct HeavyTest<'s>(&'s Shared);

/// How long a test took, without the time in which it waited for others.
struct Time {
    test: String,
    weight: Weight,
    took: Duration,
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

/// Registers tests that load the machine for a long time, on control planes of their own. Few of them run at a time, beside
/// light tests.
macro_rules! heavy {
    ($suite:expr, $($test:ident),+ $(,)?) => {
        $($suite.test(module_path!(), stringify!($test), $crate::suite::Weight::Heavy, $test);)+
    };
}
pub(crate) use heavy;

/// Registers tests that need something which a machine may lack. Where it is missing, they are shown as ignored.
macro_rules! tests_with {
    ($suite:expr, $needed:expr, $($test:ident),+ $(,)?) => {
        let needed = $needed;
        $($suite.needing(&needed, (module_path!(), stringify!($test)), $crate::suite::Weight::Light, $test);)+
    };
}
pub(crate) use tests_with;

/// Registers heavy tests that need something which a machine may lack. Where it is missing, they are shown as ignored.
macro_rules! heavy_with {
    ($suite:expr, $needed:expr, $($test:ident),+ $(,)?) => {
        let needed = $needed;
        $($suite.needing(&needed, (module_path!(), stringify!($test)), $crate::suite::Weight::Heavy, $test);)+
    };
}
pub(crate) use heavy_with;

/// Registers tests that measure how long something takes, and need something. Each of them runs alone.
macro_rules! timed_with {
    ($suite:expr, $needed:expr, $($test:ident),+ $(,)?) => {
        let needed = $needed;
        $($suite.needing(&needed, (module_path!(), stringify!($test)), $crate::suite::Weight::Alone, $test);)+
    };
}
pub(crate) use timed_with;

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
            let heavy = (weight == Weight::Heavy).then(|| HeavyTest::begin(&shared));
            let result = if weight == Weight::Alone {
                let _machine = shared.machine.write().unwrap_or_else(PoisonError::into_inner);
                run_and_time(&shared, &test_name, weight, test)
            } else {
                let _machine = shared.machine.read().unwrap_or_else(PoisonError::into_inner);
                run_and_time(&shared, &test_name, weight, test)
            };
            drop(heavy);
            result.map_err(|error| Failed::from(format!("{error:#}")))
        };
        let trials = if weight == Weight::Heavy { &mut self.heavy } else { &mut self.trials };
        trials.push(Trial::test(name, trial));
    }

    /// Adds a test, of this module and name, that needs what was looked for. Where that failed, it is shown as ignored.
    pub fn needing<T, F>(&mut self, needed: &Result<T>, (module, name): (&str, &str), weight: Weight, test: F)
    where
        F: AsyncFnOnce(&mut TestEnv) -> Result<()> + Send + 'static,
    {
        match needed {
            Ok(_) => self.test(module, name, weight, test),
            Err(missing) => self.ignored(module, name, &format!("{missing:#}")),
        }
    }

    /// Adds a heavy test of a language, by its name. Where the language's tools are missing, it is shown as ignored, and so it is where a build
    /// takes minutes and nobody has asked for that.
    pub fn of_language<F>(&mut self, module: &str, name: &str, language: Language, test: F)
    where
        F: AsyncFnOnce(&mut TestEnv) -> Result<()> + Send + 'static,
    {
        let name = format!("{name}_{}", language.name());
        let tools = language.has_tools().then_some(()).context("its tools are missing; see scripts/languages.sh");
        let needed = tools.and_then(|()| if language.is_quick() { Ok(()) } else { thoroughness::all() });
        self.needing(&needed, (module, &name), Weight::Heavy, test);
    }

    /// Adds a test whose host runs in a container. Where there can be none, it is shown as ignored.
    pub fn in_container<F>(&mut self, module: &str, name: &str, weight: Weight, test: F)
    where
        F: AsyncFnOnce(&mut TestEnv) -> Result<()> + Send + 'static,
    {
        let groups = Cgroup::is_possible().then_some(());
        let groups = groups.context("this machine has no control groups to limit memory with");
        self.needing(&groups, (module, name), weight, test);
    }

    /// Adds a test that cannot run here. It is shown as ignored, with the reason, and fails where ignored tests are asked for.
    pub fn ignored(&mut self, module: &str, name: &str, why: &str) {
        let subject = module.split_once("::").map_or(module, |(_, subject)| subject);
        eprintln!("{subject}::{name} is ignored: {why}");
        let why = why.to_owned();
        self.trials.push(Trial::test(format!("{subject}::{name}"), || Err(Failed::from(why))).with_ignored_flag(true));
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
        if !arguments.list {
            self.shared.tell_times();
        }
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

impl<'s> HeavyTest<'s> {
    /// Waits until there is room for it.
    fn begin(shared: &'s Shared) -> Self {
        let running = shared.heavy.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = shared.heavy_ended.wait_while(running, |running| *running >= HEAVY_AT_ONCE);
        *wait.unwrap_or_else(PoisonError::into_inner) += 1;
        Self(shared)
    }
}

impl Drop for HeavyTest<'_> {
    fn drop(&mut self) {
        *self.0.heavy.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.heavy_ended.notify_one();
    }
}

impl Shared {
    /// The control plane, and the runtime that lives as long as the suite.
    fn cluster(&self) -> Result<(Arc<Cluster>, Handle)> {
        let running = self.cluster.get_or_init(|| {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            let cluster = Arc::new(runtime.block_on(Cluster::start())?);
            Ok(Running { cluster, runtime })
        });
        match running {
            Ok(running) => Ok((running.cluster.clone(), running.runtime.handle().clone())),
            Err(error) => Err(anyhow!("the control plane did not start: {error:#}")),
        }
    }

    /// Tells how long the tests took: all of each weight together, and the longest of them.
    fn tell_times(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.sort_by_key(|time| std::cmp::Reverse(time.took));
        for (weight, what) in [(Weight::Alone, "alone"), (Weight::Heavy, "heavy"), (Weight::Light, "light")] {
            let of_weight = || times.iter().filter(|time| time.weight == weight);
            let all: Duration = of_weight().map(|time| time.took).sum();
            eprintln!("{} tests, {what}: {:.0} s one after the other", of_weight().count(), all.as_secs_f64());
        }
        for Time { test, weight, took } in times.iter().take(LONGEST) {
            eprintln!("{:6.1} s  {test} ({weight:?})", took.as_secs_f64());
        }
    }

    fn end(self) -> Result<()> {
        match self.cluster.into_inner() {
            Some(Ok(Running { cluster, runtime })) => {
                let cluster = Arc::into_inner(cluster).context("a test still uses it")?;
                let api_servers = Arc::into_inner(self.api_servers).context("a test still uses API servers")?;
                runtime.block_on(async { api_servers.stop().await.and(cluster.stop().await) })
            }
            // Each test has reported already that the control plane did not start.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

/// Runs one test, and keeps how long it took.
fn run_and_time<F>(shared: &Shared, name: &str, weight: Weight, test: F) -> Result<()>
where
    F: AsyncFnOnce(&mut TestEnv) -> Result<()>,
{
    let start = Instant::now();
    let result = run_test(shared, name, test);
    let time = Time { test: name.to_owned(), weight, took: start.elapsed() };
    shared.times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
    result
}

/// Runs one test in a runtime and a namespace of its own.
fn run_test<F>(shared: &Shared, name: &str, test: F) -> Result<()>
where
    F: AsyncFnOnce(&mut TestEnv) -> Result<()>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (cluster, lasting) = shared.cluster()?;
    runtime.block_on(async {
        let mut env = TestEnv::new(cluster, name).await?;
        env.uses(shared.api_servers.clone(), lasting);
        match test(&mut env).await {
            Ok(()) => {
                // A test may have stopped its API server, or changed what that needs. The next one gets a new one.
                env.end()
                    .await
                    .unwrap_or_else(|error| eprintln!("{name}: its API server is not used again: {error:#}"));
                Ok(())
            }
            Err(error) => Err(anyhow!("{error:#}\n{}", env.describe_state().await)),
        }
    })
}
