//! What the plugin `training-job` answers for a hundred workers, each call in a fresh instance: first without Pods, then while all run. Needs
//! `make plugins`.

use std::{hint::black_box, path::Path, sync::Arc};

use anyhow::{Context, Result, bail};
use criterion::Criterion;
use jiff::Timestamp;
use pilothouse_engine::{
    CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
    contract::{LiveChild, Readiness, Request, Response},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const WORKERS: usize = 100;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cache = tempfile::tempdir()?;
    let config = EngineConfig {
        cache: cache.path().to_owned(),
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        call_memory: usize::MAX,
    };
    let plugin = runtime.block_on(Engine::new(config)?.load(&plugin_bytes()?[..]))?;
    // Pods come once what they read is there.
    let begun = objects(&answer(&runtime, &plugin, &request(job(Value::Null), &[]))?)?;
    let new = request(job(Value::Null), &begun);
    let made = answer(&runtime, &plugin, &new)?;
    let running = running(&runtime, &plugin, &made)?;
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("TrainingJob of a hundred workers");
    for (name, request) in [("first call", new), ("call while all run", running)] {
        group.bench_function(name, |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { black_box(plugin.call(Verb::Reconcile, request.clone(), context()).await) });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}

fn plugin_bytes() -> Result<Vec<u8>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no parent folder")?;
    let path = repository.join("target/plugins/training-job.wasm");
    std::fs::read(&path).with_context(|| format!("failed to read '{}': run `make plugins`", path.display()))
}

fn context() -> CallContext {
    CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH }
}

fn job(status: Value) -> Value {
    let mut job = json!({
        "apiVersion": "ml.example.com/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": "llama", "namespace": "ml-team", "uid": "1a4f2a16-8a52-44f0-9b55-1f6a0e7c2d11", "generation": 1},
        "spec": {
            "framework": "pytorch", "workers": WORKERS, "gpuPerWorker": 8, "image": "registry.example.com/train:1.2",
            "command": ["torchrun", "/workspace/train.py"], "hyperparameters": {"learningRate": 0.1, "epochs": 90},
        },
    });
    if !status.is_null() {
        job["status"] = status;
    }
    job
}

fn request(object: Value, children: &[Value]) -> Request {
    let live = |child: &Value| LiveChild { object: child.to_string(), readiness: Readiness::current() };
    Request {
        object: object.to_string(),
        children: children.iter().map(live).collect(),
        refused: Vec::new(),
        config: "null".to_owned(),
    }
}

fn answer(runtime: &Runtime, plugin: &Plugin, request: &Request) -> Result<Response> {
    match runtime.block_on(plugin.call(Verb::Reconcile, request.clone(), context())).outcome {
        Outcome::Response(response) => Ok(response),
        other => bail!("the plugin does not answer: {other:?}"),
    }
}

/// The children that the plugin asked for, as they are in the cluster. All Pods run.
fn objects(response: &Response) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (number, child) in response.children.iter().flatten().enumerate() {
        let mut object: Value = serde_json::from_str(&child.object)?;
        object["metadata"]["uid"] = json!(format!("uid-{number}"));
        object["metadata"]["namespace"] = json!("ml-team");
        if object["kind"] == "Pod" {
            object["status"] = json!({"phase": "Running", "containerStatuses": [{
                "name": "pytorch", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "1970-01-01T00:00:00Z"}},
            }]});
        }
        objects.push(object);
    }
    Ok(objects)
}

/// The request once all Pods run and the status says so. The children are those that the plugin asked for.
fn running(runtime: &Runtime, plugin: &Plugin, made: &Response) -> Result<Request> {
    let children = objects(made)?;
    if children.len() <= WORKERS {
        bail!("the plugin asks for {} children only", children.len());
    }
    let mut status = made.status.as_deref().map(serde_json::from_str).transpose()?.unwrap_or(Value::Null);
    // The second answer is about the Pods of the first, the third about a job that runs.
    for _ in 0..2 {
        let answered = answer(runtime, plugin, &request(job(status), &children))?;
        status = serde_json::from_str(&answered.status.context("an answer without a status")?)?;
    }
    if status["active"] != WORKERS {
        bail!("not all run: {status}");
    }
    Ok(request(job(status), &children))
}
