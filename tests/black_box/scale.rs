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
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    copies,
    suite::{Suite, heavy},
    test_env::{TestEnv, app, misbehaver},
};

/// Objects at rest.
const OBJECTS: usize = 2_000;

/// Copies of a plugin, and objects of each.
const PLUGINS: usize = 100;
const OBJECTS_EACH: usize = 10;

/// Objects that wait, changes of another one, and how many of those that wait may be called in between: as many as are
/// under way at once anyway, and one more.
const WAITING: usize = 5_000;
const CHANGES: usize = 10;
const A_FEW: f64 = 5.0;

/// Requests at once.
const PARALLEL: usize = 32;

/// How long many objects may take on a busy machine.
const LONG: Duration = Duration::from_secs(180);

/// Reads that a host makes for itself, however many objects there are: which kinds there are, one list or watch each.
const OWN_READS: f64 = 40.0;

pub fn register(suite: &mut Suite) {
    heavy!(
        suite,
        two_thousand_objects_at_rest_cost_nothing,
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
    // A child and a status each.
    until(env, "all objects to be made real", |host| writes(host) >= 2.0 * OBJECTS as f64).await?;
    let made = env.metrics().await?;
    ensure!(writes(&made) == 2.0 * OBJECTS as f64, "{} writes", writes(&made));

    // A restart asks the plugin about every object once, and finds nothing to do.
    env.host.stop().await?;
    set_up_host(env, &["--resync", "5s"])?;
    env.start(&["copies"]).await?;
    until(env, "a restart to be over", |host| calls(host) >= OBJECTS as f64).await?;
    // A resync and one more: nothing has changed, so nobody is asked.
    until(env, "two resyncs", |host| skipped(host) >= 2.0 * OBJECTS as f64).await?;
    let rest = env.metrics().await?;
    ensure!(calls(&rest) == OBJECTS as f64, "{} calls of a plugin that knows all", calls(&rest));
    ensure!(writes(&rest) == 0.0 && reads(&rest) < OWN_READS, "{} writes, {} reads", writes(&rest), reads(&rest));

    // A touch is something new to the plugin, but not to the cluster.
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
    // A debug build compiles each for most of a second.
    until(env, "all plugins to be loaded", |host| loaded(host) == PLUGINS as f64).await?;
    env.host.ready().await?;
    until_all_say(env, "one").await?;
    many(&objects, async |object| apply(env, *object, "two").await).await?;
    until_all_say(env, "two").await?;

    let host = env.metrics().await?;
    // Per plugin: which kinds its group has and their schemas, a list and a watch of its objects, its record. One watch of
    // children for all.
    let most = 5.0 * PLUGINS as f64 + OWN_READS;
    ensure!(reads(&host) <= most, "{} reads: something is watched more than once", reads(&host));
    let resident = host.sum("process_resident_memory_bytes", &[]) / f64::from(1 << 20);
    eprintln!("{PLUGINS} plugins with {OBJECTS_EACH} objects each: {resident:.0} MiB resident, {} reads", reads(&host));
    Ok(())
}

/// A plugin that computes a second for each of its objects, which all wait; the calls of it are counted that end between a
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

/// A host whose watches last longer than the test: their renewal is a read.
fn set_up_host(env: &mut TestEnv, more: &[&str]) -> Result<()> {
    let arguments = ["--watch-renewal", "290s"].iter().chain(more).map(ToString::to_string).collect();
    env.set_up_host(|setup| setup.arguments = arguments)
}

/// Waits until the child of every object says what the object says.
async fn until_all_say(env: &TestEnv, value: &str) -> Result<()> {
    let says = |child: &&Value| child["data"]["spec"].as_str().is_some_and(|spec| spec.contains(value));
    eventually(LONG, &format!("all children to say {value}"), async || {
        let children = env.namespace.list("ConfigMap").await?.iter().filter(says).count();
        Ok(Look::of(children == PLUGINS * OBJECTS_EACH, format!("{children} children")))
    })
    .await
}

/// The plugin under the number of a copy.
fn copy(original: &[u8], number: usize) -> Vec<u8> {
    let named = copies::replaced(original, "copy-000", &format!("copy-{number:03}"));
    copies::replaced(&named, "Copy000", &format!("Copy{number:03}"))
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

/// Sets an annotation that nobody cares about.
async fn touch(env: &TestEnv, (plugin, object): (usize, usize)) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"tests.pilothouse.dev/touched": "yes"}}});
    let name = format!("object-{plugin}-{object}");
    copies::api(env, plugin, "v1").patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Does something for each of many, some at once.
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

/// Writes of children and statuses. The host's own record of kinds is made by a POST.
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
