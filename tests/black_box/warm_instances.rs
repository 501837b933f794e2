//! Instances that answer several calls, as the manifest of the guest `tally` allows. It says how many its instance has answered.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use pilothouse_engine::{
    Call, CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
    contract::Request,
};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// How many calls an instance of the guest may answer.
const CALLS: u64 = 5;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_instance_answers_as_many_calls_as_its_manifest_says,
        the_limit_of_the_host_counts_too,
        an_instance_that_did_not_answer_is_never_called_again,
        an_instance_whose_memory_grows_is_given_up,
        calls_at_once_have_instances_of_their_own,
        each_call_has_a_clock_and_a_log_of_its_own,
        what_waits_gives_its_memory_to_whoever_needs_it,
        other_code_and_other_limits_begin_anew,
        a_host_calls_an_instance_again_for_another_object,
    );
}

async fn an_instance_answers_as_many_calls_as_its_manifest_says(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    let mut counts = Vec::new();
    for _ in 0..12 {
        counts.push(tally.count(json!({})).await?);
    }
    ensure!(counts == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2], "{counts:?}");
    Ok(())
}

async fn the_limit_of_the_host_counts_too(_: &mut TestEnv) -> Result<()> {
    for (most, expected) in [(1, [1, 1, 1, 1]), (3, [1, 2, 3, 1])] {
        let tally = Tally::new(Limits { calls_per_instance: most, ..Limits::default() }, 1 << 30).await?;
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = tally.count(json!({})).await?;
        }
        ensure!(counts == expected, "with at most {most}: {counts:?}");
    }
    Ok(())
}

async fn an_instance_that_did_not_answer_is_never_called_again(_: &mut TestEnv) -> Result<()> {
    let limits = Limits { cpu: Duration::from_millis(20), memory_bytes: 8 << 20, ..Limits::default() };
    let tally = Tally::new(limits, 1 << 30).await?;
    for act in [json!("trap"), json!("loop"), json!({"need": 9})] {
        let before = [tally.count(json!({})).await?, tally.count(json!({})).await?];
        let failed = tally.call(json!({"act": act})).await.outcome;
        let as_expected = match act.as_str() {
            Some("trap") => matches!(&failed, Outcome::Trap(why) if why.contains("as the object wants it")),
            Some(_) => matches!(failed, Outcome::Deadline(_)),
            None => matches!(failed, Outcome::MemoryLimit(_)),
        };
        ensure!(before == [1, 2] && as_expected, "{act}: {before:?}, {failed:?}");
        let after = tally.count(json!({})).await?;
        ensure!(after == 1, "{act}: {after}");
        // Nobody else's turn shall be the next one's.
        tally.call(json!({"act": "trap"})).await;
    }
    Ok(())
}

/// A leak would end in a call that fails, and hold memory until then.
async fn an_instance_whose_memory_grows_is_given_up(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    let mut counts = Vec::new();
    for _ in 0..6 {
        counts.push(tally.count(json!({"act": "leak"})).await?);
    }
    ensure!(counts == [1, 2, 3, 1, 2, 3], "{counts:?}");
    let large = Tally::new(Limits { memory_bytes: 16 << 20, ..Limits::default() }, 1 << 30).await?;
    let counts = [large.count(json!({"act": {"need": 9}})).await?, large.count(json!({})).await?];
    ensure!(counts == [1, 1], "it has more than half of what it may have: {counts:?}");
    Ok(())
}

async fn calls_at_once_have_instances_of_their_own(_: &mut TestEnv) -> Result<()> {
    let limits = Limits { cpu: Duration::from_millis(50), ..Limits::default() };
    let tally = Tally::new(limits, 1 << 30).await?;
    for _ in 0..10 {
        // One that takes its time beside those that are quick.
        let acts = [json!("loop"), json!("count"), json!({"need": 3}), json!("count"), json!("leak"), json!("count")];
        let calls = join_all(acts.iter().map(|act| tally.call(json!({"act": act})))).await;
        for (act, call) in acts.iter().zip(calls) {
            match call.outcome {
                Outcome::Response(response) => {
                    let count = count_in(response.status.as_deref())?;
                    ensure!((1..=CALLS).contains(&count), "{act}: {count}");
                }
                Outcome::Deadline(_) => ensure!(act == "loop", "{act}"),
                other => bail!("{act}: {other:?}"),
            }
        }
    }
    Ok(())
}

async fn each_call_has_a_clock_and_a_log_of_its_own(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits { log_bytes: 10, ..Limits::default() }, 1 << 30).await?;
    for (hour, act, reads) in [(1, "tell-time", true), (2, "count", false), (3, "tell-time", true)] {
        let now = format!("2026-11-29T0{hour}:00:00Z");
        let call = tally.call_at(&now, json!({"act": act})).await?;
        let Outcome::Response(response) = call.outcome else { bail!("{act}: {:?}", call.outcome) };
        let status: Value = serde_json::from_str(response.status.as_deref().unwrap_or_default())?;
        ensure!(call.recorded.clock_read == reads, "{act} at {now}");
        ensure!(!reads || status["time"] == *now, "{status}");
    }
    // One line of six bytes fits into ten, two would not.
    for _ in 0..2 {
        let call = tally.call(json!({"act": "log"})).await;
        ensure!(call.usage.log_lines_dropped == 0, "{call:?}");
    }
    Ok(())
}

async fn what_waits_gives_its_memory_to_whoever_needs_it(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 24 << 20).await?;
    let other = tally.beside().await?;
    for round in 0..3 {
        let first = [tally.count(json!({"act": {"need": 12}})).await?, tally.count(json!({})).await?];
        ensure!(first == [1, 2], "round {round}: {first:?}");
        // More than is left beside an instance with twelve MiB.
        let grown = other.count(json!({"act": {"need": 16}})).await?;
        ensure!(grown == 1, "round {round}: {grown}");
    }
    Ok(())
}

async fn other_code_and_other_limits_begin_anew(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    let before = [tally.count(json!({})).await?, tally.count(json!({})).await?];
    let limited = tally.engine.limited(&tally.plugin, Limits { output_bytes: 4 << 10, ..Limits::default() });
    let after = count_of(&limited.call(Verb::Reconcile, request(json!({})), context(None)?).await)?;
    let beside = tally.beside().await?.count(json!({})).await?;
    ensure!((before, after, beside) == ([1, 2], 1, 1), "{before:?}, {after}, {beside}");
    Ok(())
}

async fn a_host_calls_an_instance_again_for_another_object(env: &mut TestEnv) -> Result<()> {
    env.start(&["tally"]).await?;
    let mut counts = Vec::new();
    for number in 0..6 {
        let name = format!("tally-{number}");
        env.namespace
            .apply(json!({
                "apiVersion": "test.pilothouse.dev/v1", "kind": "Tally", "metadata": {"name": name}, "spec": {"act": "count"},
            }))
            .await?;
        let counted = |object: &Value| object["status"]["calls"].is_u64();
        let object = env.namespace.until("Tally", &name, "to be counted", counted).await?;
        counts.push(object["status"]["calls"].as_u64().unwrap_or_default());
    }
    // A host may ask twice for one object, for reasons of its own.
    let goes_on = counts.windows(2).any(|pair| pair[1] == pair[0] + 1);
    ensure!(goes_on && counts.iter().all(|count| (1..=CALLS).contains(count)), "{counts:?}");
    Ok(())
}

/// The guest, in an engine of its own.
struct Tally {
    engine: Engine,
    plugin: Plugin,
    _cache: Option<tempfile::TempDir>,
}

impl Tally {
    async fn new(limits: Limits, call_memory: usize) -> Result<Self> {
        let cache = tempfile::tempdir()?;
        let config =
            EngineConfig { cache: cache.path().to_owned(), compiler: Compiler::InProcess, limits, call_memory };
        let engine = Engine::new(config)?;
        let plugin = load(&engine, &artifacts::guest("tally")?).await?;
        Ok(Self { engine, plugin, _cache: Some(cache) })
    }

    /// The same component as another plugin of the same engine.
    async fn beside(&self) -> Result<Self> {
        let plugin = load(&self.engine, &artifacts::guest("tally")?).await?;
        Ok(Self { engine: self.engine.clone(), plugin, _cache: None })
    }

    async fn call(&self, spec: Value) -> Call {
        let context = CallContext { lookups: Arc::new(NoLookups), now: jiff::Timestamp::UNIX_EPOCH };
        self.plugin.call(Verb::Reconcile, request(spec), context).await
    }

    async fn call_at(&self, now: &str, spec: Value) -> Result<Call> {
        Ok(self.plugin.call(Verb::Reconcile, request(spec), context(Some(now))?).await)
    }

    /// How many calls the instance has answered.
    async fn count(&self, spec: Value) -> Result<u64> {
        count_of(&self.call(spec).await)
    }
}

async fn load(engine: &Engine, file: &Path) -> Result<Plugin> {
    let bytes = std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))?;
    Ok(engine.load(bytes).await?)
}

fn context(now: Option<&str>) -> Result<CallContext> {
    let now = now.map_or(Ok(jiff::Timestamp::UNIX_EPOCH), str::parse)?;
    Ok(CallContext { lookups: Arc::new(NoLookups), now })
}

fn request(spec: Value) -> Request {
    let object = json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Tally",
        "metadata": {"name": "tally", "namespace": "ns", "uid": "1", "generation": 1}, "spec": spec,
    });
    Request { object: object.to_string(), children: Vec::new(), refused: Vec::new(), config: "null".to_owned() }
}

fn count_of(call: &Call) -> Result<u64> {
    match &call.outcome {
        Outcome::Response(response) => count_in(response.status.as_deref()),
        other => bail!("it gave no answer: {other:?}"),
    }
}

fn count_in(status: Option<&str>) -> Result<u64> {
    let status: Value = serde_json::from_str(status.context("no status")?)?;
    status["calls"].as_u64().with_context(|| format!("no count in {status}"))
}
