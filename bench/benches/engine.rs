//! The engine: compile, load from the cache, instantiate, a fresh call; and the same reconcile function linked natively.
//! Needs `make plugins`.

use std::{
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use criterion::Criterion;
use jiff::Timestamp;
use pilothouse_bench::{native, sample};
use pilothouse_engine::{
    CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
};
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wasm = plugin_bytes()?;
    let cache = tempfile::tempdir()?;
    let plugin = runtime.block_on(engine(cache.path())?.load(&wasm[..]))?;
    same_answers(&runtime, &plugin)?;
    let mut criterion = Criterion::default().configure_from_args();
    loading(&mut criterion, &runtime, &wasm, cache.path())?;
    calling(&mut criterion, &runtime, &plugin);
    calling_amid_other_work(&mut criterion, &runtime, &plugin);
    criterion.final_summary();
    Ok(())
}

fn plugin_bytes() -> Result<Vec<u8>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no parent folder")?;
    let path = repository.join("target/plugins/app-service.wasm");
    std::fs::read(&path).with_context(|| format!("failed to read '{}': run `make plugins`", path.display()))
}

fn engine(cache: &Path) -> Result<Engine> {
    let config = EngineConfig {
        cache: cache.to_owned(),
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        call_memory: usize::MAX,
    };
    Ok(Engine::new(config)?)
}

/// The two sides must do the same work.
fn same_answers(runtime: &Runtime, plugin: &Plugin) -> Result<()> {
    let call = runtime.block_on(plugin.call(Verb::Reconcile, sample::request(), context()));
    match call.outcome {
        Outcome::Response(response) if response == native::reconcile(sample::request()) => Ok(()),
        other => bail!("the plugin and the native function answer differently: {other:?}"),
    }
}

fn context() -> CallContext {
    CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH }
}

fn loading(criterion: &mut Criterion, runtime: &Runtime, wasm: &[u8], cache: &Path) -> Result<()> {
    let mut group = criterion.benchmark_group("load");
    let cached = engine(cache)?;
    group.bench_function("from cache", |bencher| {
        bencher.to_async(runtime).iter(|| async { black_box(cached.load(wasm).await.is_ok()) });
    });
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    let scratch = tempfile::tempdir()?;
    let cold = engine(scratch.path())?;
    group.bench_function("compile", |bencher| {
        bencher.to_async(runtime).iter(|| async {
            let cleared = clear(scratch.path());
            black_box(cleared.is_ok() && cold.load(wasm).await.is_ok())
        });
    });
    group.finish();
    Ok(())
}

fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

fn calling(criterion: &mut Criterion, runtime: &Runtime, plugin: &Plugin) {
    let mut group = criterion.benchmark_group("AppService with two observed children");
    group.bench_function("instantiate", |bencher| {
        bencher.to_async(runtime).iter(|| async { black_box(plugin.instantiate().await.is_ok()) });
    });
    let (request, context) = (sample::request(), context());
    group.bench_function("fresh call", |bencher| {
        bencher
            .to_async(runtime)
            .iter(|| async { black_box(plugin.call(Verb::Reconcile, request.clone(), context.clone()).await) });
    });
    group.bench_function("native function", |bencher| {
        bencher.iter(|| black_box(native::reconcile(request.clone())));
    });
    group.finish();
}

/// What a call takes in a busy host, whose other work has taken the processor's caches since the last call. Only the calls
/// are timed.
fn calling_amid_other_work(criterion: &mut Criterion, runtime: &Runtime, plugin: &Plugin) {
    let mut group = criterion.benchmark_group("AppService amid other work");
    group.sample_size(50);
    let mut other = OtherWork::default();
    group.bench_function("instantiate", |bencher| {
        bencher.iter_custom(|calls| other.between(calls, || black_box(runtime.block_on(plugin.instantiate()).is_ok())));
    });
    let (request, context) = (sample::request(), context());
    group.bench_function("fresh call", |bencher| {
        bencher.iter_custom(|calls| {
            other.between(calls, || {
                black_box(runtime.block_on(plugin.call(Verb::Reconcile, request.clone(), context.clone())))
            })
        });
    });
    group.bench_function("native function", |bencher| {
        bencher.iter_custom(|calls| other.between(calls, || black_box(native::reconcile(request.clone()))));
    });
    group.finish();
}

/// Work that leaves nothing of a call in the caches near the processor.
struct OtherWork(Vec<u64>);

impl Default for OtherWork {
    /// Twice the second-level cache of the processors that servers have.
    fn default() -> Self {
        Self(vec![1; (4 << 20) / size_of::<u64>()])
    }
}

impl OtherWork {
    /// The time of so many calls, with other work before each.
    fn between<T>(&mut self, calls: u64, mut call: impl FnMut() -> T) -> Duration {
        let mut taken = Duration::ZERO;
        for _ in 0..calls {
            self.0.iter_mut().for_each(|word| *word = word.wrapping_mul(3));
            black_box(&self.0);
            let started = Instant::now();
            call();
            taken += started.elapsed();
        }
        taken
    }
}
