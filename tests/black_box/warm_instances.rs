//! Instances that answer several calls, as the manifest of the guest `tally` allows. It says how many its instance has answered.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use jiff::Timestamp;
use pilothouse_engine::{
    Call, CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
    contract::Request,
};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    plugin_objects::{plugin_object, resume, store},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
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
        what_a_call_leaves_in_the_memory_is_gone_before_the_next,
        a_failure_is_never_that_of_the_calls_before,
        an_instance_that_waits_keeps_nothing_of_its_call,
        a_cancelled_call_gives_back_its_place,
        the_instances_of_a_hundred_plugins_that_wait_are_bounded,
        a_place_is_free_once_its_instance_is_gone,
        a_greedy_plugin_starves_nobody,
        what_a_slow_call_logs_names_its_object,
        a_call_in_flight_ends_under_the_limits_with_which_it_began,
        a_plugin_object_that_forbids_it_is_followed_while_calls_run,
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
        counts.push(tally.count(json!({"act": {"keep": 4}})).await?);
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
        let acts =
            [json!("loop"), json!("count"), json!({"need": 3}), json!("count"), json!({"keep": 4}), json!("count")];
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
    let tally = Tally::new(Limits { log_bytes: 18, ..Limits::default() }, 1 << 30).await?;
    for (hour, act, reads) in [(1, "tell-time", true), (2, "count", false), (3, "tell-time", true)] {
        let now = format!("2026-11-29T0{hour}:00:00Z");
        let call = tally.call_at(now.parse()?, json!({"act": act})).await;
        let Outcome::Response(response) = call.outcome else { bail!("{act}: {:?}", call.outcome) };
        let status: Value = serde_json::from_str(response.status.as_deref().unwrap_or_default())?;
        ensure!(call.recorded.clock_read == reads, "{act} at {now}");
        ensure!(!reads || status["time"] == *now, "{status}");
    }
    // One line of eleven bytes fits into eighteen, two would not.
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
    let after = tally.limited(Limits { output_bytes: 4 << 10, ..Limits::default() }).count(json!({})).await?;
    let beside = tally.beside().await?.count(json!({})).await?;
    ensure!((before, after, beside) == ([1, 2], 1, 1), "{before:?}, {after}, {beside}");
    Ok(())
}

async fn a_host_calls_an_instance_again_for_another_object(env: &mut TestEnv) -> Result<()> {
    env.start(&["tally"]).await?;
    let mut counts = Vec::new();
    for number in 0..6 {
        let name = [format!("tally-{number}")];
        apply_tallies(env, &name, "count").await?;
        counts.extend(counts_of(env, &name).await?);
    }
    // A host may ask twice for one object, for reasons of its own.
    let goes_on = counts.windows(2).any(|pair| pair[1] == pair[0] + 1);
    ensure!(goes_on && counts.iter().all(|count| (1..=CALLS).contains(count)), "{counts:?}");
    Ok(())
}

/// Else it would grow by each request and each answer.
async fn what_a_call_leaves_in_the_memory_is_gone_before_the_next(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    let spec = json!({"padding": "x".repeat(256 << 10), "act": {"say": 256}});
    let mut peaks = Vec::new();
    for expected in 1..=CALLS {
        let call = tally.call(spec.clone()).await;
        ensure!(count_of(&call)? == expected, "call {expected}: {}", count_of(&call)?);
        peaks.push(call.usage.memory_peak >> 10);
    }
    ensure!(peaks.last() == peaks.get(1), "in KiB: {peaks:?}");
    Ok(())
}

/// A plugin that keeps what it should not has its own faults. What its object is told is that of its own call.
async fn a_failure_is_never_that_of_the_calls_before(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    // What the second one needs fits into the limit, but not beside what the first one keeps.
    for acts in [[json!({"keep": 40}), json!({"need": 100})], [json!("count"), json!("trap-again")]] {
        for act in &acts {
            let count = tally.count(json!({"act": act})).await.with_context(|| act.to_string())?;
            ensure!(count == 1, "{act}: {count}");
        }
        tally.call(json!({"act": "trap"})).await;
    }
    Ok(())
}

async fn an_instance_that_waits_keeps_nothing_of_its_call(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    for expected in [1, 2] {
        let lookups = Arc::new(NoLookups);
        let context = CallContext { lookups: lookups.clone(), now: Timestamp::UNIX_EPOCH };
        let call = tally.plugin.call(Verb::Reconcile, request(json!({})), context).await;
        ensure!(count_of(&call)? == expected, "{call:?}");
        ensure!(Arc::strong_count(&lookups) == 1, "call {expected}: its lookups are still held");
    }
    Ok(())
}

async fn a_cancelled_call_gives_back_its_place(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits { cpu: Duration::from_secs(60), ..Limits::default() }, 1 << 30).await?;
    // More than there are places, each of them on an instance that has answered before.
    for number in 0..40 {
        let before = tally.count(json!({})).await?;
        ensure!(before == 1, "{number}: {before}");
        let mut call = std::pin::pin!(tally.call(json!({"act": "loop"})));
        // Polled once, it has used up its first slice, and then it is dropped.
        ensure!(futures::poll!(&mut call).is_pending(), "{number}: it ended");
    }
    Ok(())
}

async fn the_instances_of_a_hundred_plugins_that_wait_are_bounded(_: &mut TestEnv) -> Result<()> {
    let first = Tally::new(Limits::default(), 1 << 30).await?;
    let mut tallies = Vec::new();
    for _ in 0..100 {
        tallies.push(first.beside().await?);
    }
    let mut counts = Vec::new();
    for tally in tallies.iter().chain(tallies.iter().rev()) {
        counts.push(tally.count(json!({})).await?);
    }
    let (before, after) = counts.split_at(100);
    ensure!(before.iter().all(|count| *count == 1), "{before:?}");
    ensure!(after[..16] == [2; 16] && after[16..].iter().all(|count| *count == 1), "{after:?}");
    let at_once = join_all(tallies.iter().map(|tally| tally.count(json!({})))).await;
    at_once.into_iter().collect::<Result<Vec<_>>>().map(drop)
}

/// Else a call that gets it finds no room in the pool, and its plugin is blamed.
async fn a_place_is_free_once_its_instance_is_gone(_: &mut TestEnv) -> Result<()> {
    for calls_per_instance in [1, u32::MAX] {
        let first = Tally::new(Limits { calls_per_instance, ..Limits::default() }, 1 << 30).await?;
        let mut tallies = Vec::new();
        for _ in 0..6 {
            tallies.push(first.beside().await?);
        }
        // More memory than the pool keeps takes a while to give back.
        let acts = [json!({"need": 8}), json!("count"), json!({"need": 4})];
        let calls_of_a_thread = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for _ in 0..2 {
                let calls = tallies.iter().flat_map(|tally| (0..30).map(move |number| (tally, number)));
                let calls = calls.map(|(tally, number)| tally.call(json!({"act": acts[number % acts.len()]})));
                for call in runtime.block_on(join_all(calls)) {
                    count_of(&call)?;
                }
            }
            Ok::<_, anyhow::Error>(())
        };
        // What one of them gives back, the other one takes.
        std::thread::scope(|scope| {
            let threads = [scope.spawn(calls_of_a_thread), scope.spawn(calls_of_a_thread)];
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(done) => done,
                Err(_) => bail!("a thread panicked"),
            })
        })?;
    }
    Ok(())
}

async fn a_greedy_plugin_starves_nobody(_: &mut TestEnv) -> Result<()> {
    // With places for all but little memory, and the other way round.
    for call_memory in [24 << 20, 1 << 30] {
        let greedy = Tally::new(Limits::default(), call_memory).await?;
        let mut others = Vec::new();
        for _ in 0..10 {
            others.push(greedy.beside().await?);
        }
        let is_done = std::sync::atomic::AtomicBool::new(false);
        let is_done = &is_done;
        let greedy = &greedy;
        let again = |act: Value| async move {
            let mut calls = 0;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                greedy.count(json!({"act": act})).await?;
                calls += 1;
                tokio::task::yield_now().await;
            }
            Ok::<_, anyhow::Error>(calls)
        };
        let acts = [json!("count"), json!({"need": 3}), json!("count"), json!({"need": 2})];
        let greedy_calls = join_all((0..40).map(|number| again(acts[number % acts.len()].clone())));
        let other_calls = async {
            for round in 0..5 {
                for other in &others {
                    other.count(json!({"act": {"need": 4}})).await.with_context(|| format!("round {round}"))?;
                }
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, anyhow::Error>(())
        };
        let both = futures::future::join(greedy_calls, other_calls);
        let (_, others) = tokio::time::timeout(Duration::from_secs(60), both).await.context("it takes for ever")?;
        others?;
    }
    Ok(())
}

async fn what_a_slow_call_logs_names_its_object(env: &mut TestEnv) -> Result<()> {
    env.start(&["tally"]).await?;
    for act in ["log", "log-late"] {
        let name = [act.to_owned()];
        apply_tallies(env, &name, act).await?;
        counts_of(env, &name).await?;
        let lines = env.log_lines();
        let words = format!("{act}: call");
        let line = lines.iter().find(|line| line["message"].as_str().is_some_and(|said| said.starts_with(&words)));
        let line = line.with_context(|| format!("no line with '{words}'"))?;
        ensure!(line["span"]["object"].as_str().is_some_and(|object| object.ends_with(act)), "{line}");
    }
    Ok(())
}

/// As where a `Plugin` gets other limits. Its instance answers nobody any more.
async fn a_call_in_flight_ends_under_the_limits_with_which_it_began(_: &mut TestEnv) -> Result<()> {
    let tally = Tally::new(Limits::default(), 1 << 30).await?;
    for round in 0..3 {
        let before = tally.limited(Limits { output_bytes: 1 << 20, ..Limits::default() });
        ensure!(before.count(json!({})).await? == 1, "round {round}");
        let mut call = std::pin::pin!(before.call(json!({"act": {"say-late": 256}})));
        ensure!(futures::poll!(&mut call).is_pending(), "round {round}: it ended within a slice");
        let after = tally.limited(Limits { output_bytes: 64 << 10, calls_per_instance: 1, ..Limits::default() });
        let meanwhile = after.count(json!({})).await?;
        let count = count_of(&call.await).with_context(|| format!("round {round}"))?;
        let refused = after.call(json!({"act": {"say": 256}})).await.outcome;
        let counts = [count, meanwhile, after.count(json!({})).await?];
        ensure!(counts == [2, 1, 1] && matches!(refused, Outcome::OutputLimit(_)), "{round}: {counts:?}, {refused:?}");
    }
    Ok(())
}

async fn a_plugin_object_that_forbids_it_is_followed_while_calls_run(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml", "tests/guests/tally/crd.yaml"]).await?;
    resume(env).await?;
    env.host.ready().await?;
    store(env, "tally", &[&std::fs::read(artifacts::guest("tally")?)?]).await?;
    env.namespace.apply(plugin_object("tally", json!({"source": {"configMap": {"name": "tally"}}}))).await?;
    env.namespace.until("Plugin", "tally", "to be ready", is_ready).await?;
    let several: Vec<_> = (0..6).map(|number| format!("before-{number}")).collect();
    apply_tallies(env, &several, "count").await?;
    let counts = counts_of(env, &several).await?;
    ensure!(counts.iter().any(|count| *count > 1), "no instance answers twice: {counts:?}");

    let slow: Vec<_> = (0..4).map(|number| format!("slow-{number}")).collect();
    apply_tallies(env, &slow, "log-late").await?;
    let patched = env.namespace.patch("Plugin", "tally", json!({"spec": {"limits": {"callsPerInstance": 1}}})).await?;
    let generation = patched["metadata"]["generation"].clone();
    let is_followed = |plugin: &Value| is_ready(plugin) && plugin["status"]["observedGeneration"] == generation;
    env.namespace.until("Plugin", "tally", "to be followed", is_followed).await?;
    counts_of(env, &slow).await?;
    let later: Vec<_> = (0..6).map(|number| format!("after-{number}")).collect();
    apply_tallies(env, &later, "count").await?;
    let counts = counts_of(env, &later).await?;
    ensure!(counts.iter().all(|count| *count == 1), "{counts:?}");
    Ok(())
}

async fn apply_tallies(env: &TestEnv, names: &[String], act: &str) -> Result<()> {
    for name in names {
        let (metadata, spec) = (json!({"name": name}), json!({"act": act}));
        let object =
            json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "Tally", "metadata": metadata, "spec": spec});
        env.namespace.apply(object).await?;
    }
    Ok(())
}

/// What their statuses say, once they say something.
async fn counts_of(env: &TestEnv, names: &[String]) -> Result<Vec<u64>> {
    let mut counts = Vec::new();
    for name in names {
        let counted = |object: &Value| object["status"]["calls"].is_u64();
        let object = env.namespace.until("Tally", name, "to be counted", counted).await?;
        counts.extend(object["status"]["calls"].as_u64());
    }
    Ok(counts)
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

    /// The same plugin under other limits.
    fn limited(&self, limits: Limits) -> Self {
        let plugin = self.engine.limited(&self.plugin, limits);
        Self { engine: self.engine.clone(), plugin, _cache: None }
    }

    /// The same component as another plugin of the same engine.
    async fn beside(&self) -> Result<Self> {
        let plugin = load(&self.engine, &artifacts::guest("tally")?).await?;
        Ok(Self { engine: self.engine.clone(), plugin, _cache: None })
    }

    async fn call(&self, spec: Value) -> Call {
        self.call_at(Timestamp::UNIX_EPOCH, spec).await
    }

    async fn call_at(&self, now: Timestamp, spec: Value) -> Call {
        self.plugin.call(Verb::Reconcile, request(spec), context(now)).await
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

fn context(now: Timestamp) -> CallContext {
    CallContext { lookups: Arc::new(NoLookups), now }
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
