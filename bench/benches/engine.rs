//! The engine: compile, load from the cache, instantiate, a fresh call; and the same reconcile function linked natively.
//! Needs `make plugins`.

use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

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
    criterion.final_summary();
    Ok(())
}

fn plugin_bytes() -> Result<Vec<u8>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no parent folder")?;
    let path = repository.join("target/plugins/app-service.wasm");
    std::fs::read(&path).with_context(|| format!("failed to read '{}': run `make plugins`", path.display()))
}

fn engine(cache: &Path) -> Result<Engine> {
    let config = EngineConfig { cache: cache.to_owned(), compiler: Compiler::InProcess, limits: Limits::default() };
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
