//! Many objects and many plugins: objects at rest cost nothing, and resources are shared. On a separate control plane, so that
//! other tests do not have to wait.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Patch, PatchParams};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::Cluster,
    copies::copy,
    metrics::Samples,
    thoroughness,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    copies,
    suite::{Suite, heavy, heavy_with},
    test_env::{TestEnv, app, misbehaver},
};

/// The number of objects at rest.
const OBJECTS: usize = 2_000;

/// The number of copies of a plugin, and of the objects of each.
const PLUGINS: usize = 100;
const OBJECTS_EACH: usize = 10;

/// The number of waiting objects, the number of changes of another plugin's object, and the most calls for waiting objects that may
/// end before such a change is carried out: those that are in progress at once, and one more.
const WAITING: usize = 5_000;
const CHANGES: usize = 10;
const A_FEW: f64 = 5.0;

/// The number of requests at the same time.
const PARALLEL: usize = 32;

/// The time limit for many objects on a busy machine.
const LONG: Duration = Duration::from_secs(180);

/// The most reads of a host that do not depend on the number of objects: discovery, and a list or watch for each kind.
const OWN_READS: f64 = 40.0;

pub fn register(suite: &mut Suite) {
    heavy!(suite, two_thousand_objects_at_rest_cost_nothing);
    heavy_with!(
        suite,
        thoroughness::all(),
        a_hundred_plugins_share_what_they_can,
        five_thousand_waiting_objects_delay_no_other_plugin,
    );
}

async fn two_thousand_objects_at_rest_cost_nothing(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    copies::define(env, 0, &["v1"]).await?;
    let objects: Vec<_> = (0..OBJECTS).map(|object| (0, object)).collect();
    many(&objects, async |object| apply(env, *object, "one").await).await?;
    env.start(&["copies"]).await?;
    // Two writes for each object: a child and a status.
    until(env, "all objects to be made real", |host| writes(host) >= 2.0 * OBJECTS as f64).await?;
    let made = env.metrics().await?;
    ensure!(writes(&made) == 2.0 * OBJECTS as f64, "{} writes", writes(&made));

    // After a restart, the plugin is called once for every object, and nothing is written.
    env.host.stop().await?;
    set_up_host(env, &["--resync", "5s"])?;
    env.start(&["copies"]).await?;
    until(env, "a restart to be over", |host| calls(host) >= OBJECTS as f64).await?;
    // Two resyncs without a change lead to no call.
    until(env, "two resyncs", |host| skipped(host) >= 2.0 * OBJECTS as f64).await?;
    let rest = env.metrics().await?;
    ensure!(calls(&rest) == OBJECTS as f64, "{} calls of a plugin that knows all", calls(&rest));
    ensure!(writes(&rest) == 0.0 && reads(&rest) < OWN_READS, "{} writes, {} reads", writes(&rest), reads(&rest));

    // A touch leads to a call, but to no write.
    many(&objects, async |object| touch(env, *object).await).await?;
    until(env, "all touches to be seen", |host| calls(host) >= 2.0 * OBJECTS as f64).await?;
    let touched = env.metrics().await?;
    ensure!(
        writes(&touched) == 0.0 && reads(&touched) < OWN_READS,
        "{} writes, {} reads",
        writes(&touched),
        reads(&touched)
    );
    Ok(())
}

async fn a_hundred_plugins_share_what_they_can(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    set_up_host(env, &[])?;
    let folder = tempfile::tempdir()?;
    let original = fs::read(artifacts::guest("copies")?)?;
    for number in 0..PLUGINS {
        let plugin = folder.path().join("copy.wasm");
        fs::write(&plugin, copy(&original, number))?;
        env.host.install(&plugin, &format!("copy-{number:03}.wasm"))?;
        copies::define(env, number, &["v1"]).await?;
    }
    let objects: Vec<_> =
        (0..PLUGINS).flat_map(|plugin| (0..OBJECTS_EACH).map(move |object| (plugin, object))).collect();
    many(&objects, async |object| apply(env, *object, "one").await).await?;
    env.host.resume().await?;
    // A debug build of the host takes most of a second to compile each plugin.
    until(env, "all plugins to be loaded", |host| loaded(host) == PLUGINS as f64).await?;
    env.host.ready().await?;
    until_all_say(env, "one").await?;
    many(&objects, async |object| apply(env, *object, "two").await).await?;
    until_all_say(env, "two").await?;

    let host = env.metrics().await?;
    // For each plugin: discovery and schema of its kind, a list and a watch of its objects, and the record of kinds. All share one
    // watch of children.
    let most = 5.0 * PLUGINS as f64 + OWN_READS;
    ensure!(reads(&host) <= most, "{} reads: something is watched more than once", reads(&host));
    let resident = host.sum("process_resident_memory_bytes", &[]) / f64::from(1 << 20);
    eprintln!("{PLUGINS} plugins with {OBJECTS_EACH} objects each: {resident:.0} MiB resident, {} reads", reads(&host));

    env.host.stop().await?;
    env.host.resume().await?;
    until(env, "all plugins to be loaded again", |host| loaded(host) == PLUGINS as f64).await?;
    let compiled = env.log_lines().into_iter().filter(|line| line["cached"] == false).count();
    ensure!(compiled == 0, "{compiled} plugins are compiled again at the next start");
    Ok(())
}

/// One plugin computes for a second for each of its many waiting objects. The test counts how many of these calls end between a
/// change of the other plugin's only object and the write of its child.
async fn five_thousand_waiting_objects_delay_no_other_plugin(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    set_up_host(env, &[])?;
    env.start(&["app-service", "misbehaver"]).await?;
    let names: Vec<_> = (0..WAITING).map(|number| format!("waiting-{number}")).collect();
    many(&names, async |name| env.namespace.apply(misbehaver(name, "loop")).await.map(drop)).await?;
    env.namespace.apply(app("web")).await?;
    let mut between = Vec::new();
    for number in 0..CHANGES {
        let before = env.metrics().await?;
        let waiting = before.sum("workqueue_depth", &[("name", "misbehaver")]);
        ensure!(waiting > 0.9 * WAITING as f64, "only {waiting} objects wait");
        let image = format!("example.com/web:{number}");
        env.namespace.patch("AppService", "web", json!({"spec": {"image": image}})).await?;
        let has_it = |child: &Value| child["spec"]["template"]["spec"]["containers"][0]["image"] == *image;
        env.namespace.until("Deployment", "web", "to have the image", has_it).await?;
        between.push(calls_of(&env.metrics().await?, "misbehaver") - calls_of(&before, "misbehaver"));
    }
    eprintln!("calls of a plugin with {WAITING} waiting objects before another plugin's only one: {between:?}");
    ensure!(between.iter().all(|calls| *calls <= A_FEW), "more than a few calls went before: {between:?}");
    Ok(())
}

/// Sets up a host whose watches last longer than the test, because their renewal would count as a read.
fn set_up_host(env: &mut TestEnv, more: &[&str]) -> Result<()> {
    let arguments = ["--watch-renewal", "290s"].iter().chain(more).map(ToString::to_string).collect();
    env.set_up_host(|setup| setup.arguments = arguments)
}

/// Waits until the child of every object has this value.
async fn until_all_say(env: &TestEnv, value: &str) -> Result<()> {
    let says = |child: &&Value| child["data"]["spec"].as_str().is_some_and(|spec| spec.contains(value));
    eventually(LONG, &format!("all children to say {value}"), async || {
        let children = env.namespace.list("ConfigMap").await?.iter().filter(says).count();
        Ok(Look::of(children == PLUGINS * OBJECTS_EACH, format!("{children} children")))
    })
    .await
}

async fn apply(env: &TestEnv, (plugin, object): (usize, usize), value: &str) -> Result<()> {
    let name = format!("object-{plugin}-{object}");
    let body = json!({
        "apiVersion": "copies.pilothouse.dev/v1",
        "kind": format!("Copy{plugin:03}"),
        "metadata": {"name": name},
        "spec": {"value": value},
    });
    let parameters = PatchParams::apply("user").force();
    copies::api(env, plugin, "v1").patch(&name, &parameters, &Patch::Apply(body)).await?;
    Ok(())
}

/// Sets an annotation that nobody reads.
async fn touch(env: &TestEnv, (plugin, object): (usize, usize)) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"tests.pilothouse.dev/touched": "yes"}}});
    let name = format!("object-{plugin}-{object}");
    copies::api(env, plugin, "v1").patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Does something for each item, a few at the same time.
async fn many<T>(items: &[T], work: impl AsyncFn(&T) -> Result<()>) -> Result<()> {
    stream::iter(items).map(|item| work(item)).buffer_unordered(PARALLEL).try_collect().await
}

async fn until(env: &TestEnv, what: &str, holds: impl Fn(&Samples) -> bool) -> Result<()> {
    eventually(LONG, what, async || {
        let host = env.metrics().await?;
        let seen = BTreeMap::from([
            ("writes", writes(&host)),
            ("calls", calls(&host)),
            ("skipped", skipped(&host)),
            ("loaded", loaded(&host)),
        ]);
        Ok(Look::of(holds(&host), format!("{seen:?}")))
    })
    .await
}

/// The writes of children and statuses. The record of kinds is created by a POST and does not count.
fn writes(host: &Samples) -> f64 {
    requests(host, "PATCH") + requests(host, "PUT") + requests(host, "DELETE")
}

fn reads(host: &Samples) -> f64 {
    requests(host, "GET")
}

fn requests(host: &Samples, method: &str) -> f64 {
    host.sum("rest_client_requests_total", &[("method", method)])
}

fn calls_of(host: &Samples, plugin: &str) -> f64 {
    host.sum("pilothouse_plugin_calls_total", &[("plugin", plugin)])
}

fn calls(host: &Samples) -> f64 {
    host.sum("pilothouse_plugin_calls_total", &[])
}

fn loaded(host: &Samples) -> f64 {
    host.sum("pilothouse_plugin_loaded", &[])
}

fn skipped(host: &Samples) -> f64 {
    host.sum("pilothouse_plugin_calls_skipped_total", &[])
}
