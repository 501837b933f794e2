//! The time of day is the API server's: hosts on machines whose clocks differ agree on it. How long something lasts does not depend on it.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use pilothouse_tests::{
    cluster::{PATIENCE, api, condition},
    host::Setup,
    machine_clock::MachineClock,
    proxy::Proxy,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{self, LONG, arguments, in_step, until_passed},
    plugin_objects::{next, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// What the log says where clocks differ.
const DIFFERS: &str = "the clock of this machine differs from the API server's";

/// An hour in seconds.
const HOUR: i64 = 3_600;

/// How long the first step of a canary lasts, in seconds.
const STEP: i64 = 15;

/// By how much shorter it may seem: all times have whole seconds, and the Event of a step comes some time after the step has begun.
const LATE: i64 = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_host_whose_clock_is_wrong_goes_by_the_api_servers,
        a_step_lasts_as_long_though_the_clock_of_the_machine_is_set,
        a_step_lasts_as_long_though_the_dates_jump,
        a_host_with_another_clock_goes_on_with_the_step,
    );
}

/// To the host it is the same whether its own clock is behind or the API server's is ahead.
async fn a_host_whose_clock_is_wrong_goes_by_the_api_servers(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.dates().ahead(3_600);
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let object = env.namespace.until("AppService", "web", "to be ready", is_ready).await?;
    let ready = condition(&object, "Ready");
    let since: Timestamp = ready["lastTransitionTime"].as_str().context("no time")?.parse()?;
    let ahead = since.duration_since(Timestamp::now());
    ensure!(ahead > SignedDuration::from_mins(55) && ahead < SignedDuration::from_mins(61), "{ready}: {ahead:?} ahead");
    env.host.logged(DIFFERS).await
}

/// An hour ahead, and back. A host that went by it would end the step at once, or an hour late.
async fn a_step_lasts_as_long_though_the_clock_of_the_machine_is_set(env: &mut TestEnv) -> Result<()> {
    let clock = MachineClock::new()?;
    begin(env, |setup| setup.variables = clock.variables()).await?;
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await?;
    // Afterwards no answer of the API server tells the host better.
    env.metrics_at_rest().await?;
    clock.set_ahead(HOUR)?;
    ensure_goes_on(env).await?;
    for (replicas, ahead) in [(4, HOUR), (5, -HOUR)] {
        clock.set_ahead(ahead)?;
        scale(env, replicas).await?;
        eventually(PATIENCE, "the host to have that clock", async || {
            let is_of_it = |line: &Value| {
                let time = text(&line["timestamp"]).parse::<Timestamp>();
                let ahead = SignedDuration::from_secs(ahead);
                time.is_ok_and(|time| {
                    (time.duration_since(Timestamp::now()) - ahead).abs() < SignedDuration::from_mins(30)
                })
            };
            Ok(Look::of(env.log_lines().iter().any(is_of_it), env.end_of_log()))
        })
        .await?;
    }
    ensure_lasted(env).await
}

/// As if the API servers' clock was set.
async fn a_step_lasts_as_long_though_the_dates_jump(env: &mut TestEnv) -> Result<()> {
    begin(env, |_| {}).await?;
    let proxy = Proxy::start(env.upstream().await?, &env.namespace.name).await?;
    env.host.stop().await?;
    start_with(env, |setup| setup.kubeconfig = proxy.kubeconfig()).await?;
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await?;
    for (replicas, seconds, times) in [(4, 3_600, 1), (5, 0, 2)] {
        if times > 1 {
            ensure_goes_on(env).await?;
        }
        proxy.dates().ahead(seconds);
        // The host learns of the time from the answer to a write.
        scale(env, replicas).await?;
        eventually(PATIENCE, "the host to notice", async || {
            Ok(Look::of(env.host.log().matches(DIFFERS).count() >= times, env.end_of_log()))
        })
        .await?;
    }
    ensure_lasted(env).await
}

/// As on another node. What the step began at is in the status, in the API server's time.
async fn a_host_with_another_clock_goes_on_with_the_step(env: &mut TestEnv) -> Result<()> {
    for ahead in [HOUR, -HOUR] {
        let clock = MachineClock::new()?;
        begin(env, |_| {}).await?;
        store(env, "web", &[&next()?]).await?;
        in_step(env, 1).await?;
        // A host that is killed right after it has written the status tells no more.
        told_of_step(env, 1).await?;
        env.host.kill().await?;
        clock.set_ahead(ahead)?;
        start_with(env, |setup| setup.variables = clock.variables()).await?;
        env.host.logged(DIFFERS).await?;
        ensure_lasted(env).await.with_context(|| format!("{ahead} seconds ahead"))?;
    }
    Ok(())
}

/// The first version with its objects, and a canary for the next one, of a host that is set up in another way.
async fn begin(env: &mut TestEnv, change: impl FnOnce(&mut Setup)) -> Result<()> {
    canary::begin(env, json!([{"objects": 1, "seconds": STEP}, {"objects": 2, "seconds": LONG}])).await?;
    env.host.stop().await?;
    start_with(env, change).await
}

async fn start_with(env: &mut TestEnv, change: impl FnOnce(&mut Setup)) -> Result<()> {
    let of_host = arguments(env, &[]);
    env.set_up_host(|setup| {
        setup.arguments = of_host;
        change(setup);
    })?;
    env.host.resume().await?;
    env.host.ready().await
}

/// Has the host write something for an object.
async fn scale(env: &TestEnv, replicas: u32) -> Result<()> {
    env.namespace.patch("AppService", "web-0", json!({"spec": {"replicas": replicas}})).await?;
    let is_scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
    env.namespace.until("Deployment", "web-0", "to be scaled", is_scaled).await.map(drop)
}

/// Checks that the first step still goes on after two seconds: a host looks at it several times until then.
async fn ensure_goes_on(env: &TestEnv) -> Result<()> {
    until_passed(Timestamp::now(), 2).await?;
    let plugin = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
    ensure!(plugin["status"]["rollout"]["step"] == 1, "the first step is over: {}", plugin["status"]["rollout"]);
    Ok(())
}

/// Waits for the second step, and compares when the API server learnt of both.
async fn ensure_lasted(env: &TestEnv) -> Result<()> {
    in_step(env, 2).await?;
    let (first, second) = (told_of_step(env, 1).await?, told_of_step(env, 2).await?);
    let lasted = second.duration_since(first).as_secs();
    ensure!(lasted >= STEP - LATE, "the step of {STEP} s lasted {lasted} s");
    Ok(())
}

/// When the Event of a step was created.
async fn told_of_step(env: &TestEnv, step: u32) -> Result<Timestamp> {
    let words = format!("in step {step} of 2");
    let is_it = |event: &&Value| event["reason"] == "CanaryStep" && text(&event["message"]).contains(&words);
    eventually(PATIENCE, &format!("the Event of step {step}"), async || {
        // Events about what is in no namespace are in this one.
        let events = api(&env.namespace.client(), "Event", Some("default"))?.list(&ListParams::default()).await?;
        let events: Vec<_> = events.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        Ok(match events.iter().find(is_it) {
            Some(event) => Look::Found(text(&event["metadata"]["creationTimestamp"]).parse()?),
            None => Look::NotYet(format!("{events:?}")),
        })
    })
    .await
}
