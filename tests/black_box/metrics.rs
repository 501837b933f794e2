//! The host's metrics: those that dashboards for controller-runtime expect, and the host's own. They are complete, valid,
//! documented, and present from the start.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::PATIENCE,
    lint::lint,
    metrics::{Dialect, Samples},
    wait::{Look, eventually},
};
use serde_json::json;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, misbehaver},
};

/// The `Accept` headers of Prometheus for OpenMetrics and of a client without a preference, each with the expected content type and
/// dialect.
const ACCEPTS: [(&str, &str, Dialect); 2] = [
    (
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        "application/openmetrics-text",
        Dialect::OpenMetrics,
    ),
    ("*/*", "text/plain; version=0.0.4", Dialect::Classic),
];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_metric_is_documented_and_valid,
        names_labels_and_buckets_are_those_of_controller_runtime,
        everything_begins_at_zero,
        reconciles_are_counted,
        faults_are_counted_by_what_they_are,
        the_queue_is_measured,
        requests_are_counted,
        the_process_is_measured,
        swaps_and_versions_are_reported,
    );
}

/// Every served metric is documented and every documented metric is served, in both formats.
async fn every_metric_is_documented_and_valid(env: &mut TestEnv) -> Result<()> {
    env.start_measured().await?;
    let documented = documented()?;
    for (accept, content_type, dialect) in ACCEPTS {
        let head = format!("GET /metrics HTTP/1.1\r\nAccept: {accept}\r\n");
        let answer = env.host.ask("metrics", &head, "").await?;
        ensure!(answer.head.contains(&format!("content-type: {content_type}")), "to {accept}: {}", answer.head);
        let samples = Samples::read(&answer.body, dialect).with_context(|| format!("as {dialect:?}"))?;
        let wrong = lint(&samples);
        ensure!(wrong.is_empty(), "as {dialect:?}: {wrong:#?}");
        let served = samples.families.into_iter().map(|(name, family)| (name, (family.kind, family.labels)));
        let served: BTreeMap<_, _> = served.collect();
        for (name, facts) in &served {
            ensure!(documented.get(name) == Some(facts), "{name} is {facts:?}; its page: {:?}", documented.get(name));
        }
        let missing: Vec<_> = documented.keys().filter(|name| !served.contains_key(*name)).collect();
        ensure!(missing.is_empty(), "documented but not served as {dialect:?}: {missing:?}");
    }
    Ok(())
}

/// Buckets of the queue's durations: from ten nanoseconds, each ten times the one before.
const WAITS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3];

/// Buckets of a reconcile's time.
const RECONCILES: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The metrics of controller-runtime v0.24 and client-go for a controller, its queue, its requests and the process: name, type,
/// labels, buckets. Those of webhooks, certificates and the Go runtime do not apply here.
const FOREIGN: [(&str, &str, &str, &[f64]); 23] = [
    ("controller_runtime_reconcile_total", "counter", "controller result", &[]),
    ("controller_runtime_reconcile_errors_total", "counter", "controller", &[]),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", "controller", &[]),
    ("controller_runtime_reconcile_panics_total", "counter", "controller", &[]),
    ("controller_runtime_reconcile_timeouts_total", "counter", "controller", &[]),
    ("controller_runtime_reconcile_time_seconds", "histogram", "controller", RECONCILES),
    ("controller_runtime_max_concurrent_reconciles", "gauge", "controller", &[]),
    ("controller_runtime_active_workers", "gauge", "controller", &[]),
    ("workqueue_depth", "gauge", "controller name priority", &[]),
    ("workqueue_adds_total", "counter", "controller name", &[]),
    ("workqueue_retries_total", "counter", "controller name", &[]),
    ("workqueue_queue_duration_seconds", "histogram", "controller name", WAITS),
    ("workqueue_work_duration_seconds", "histogram", "controller name", WAITS),
    ("workqueue_unfinished_work_seconds", "gauge", "controller name", &[]),
    ("workqueue_longest_running_processor_seconds", "gauge", "controller name", &[]),
    ("rest_client_requests_total", "counter", "code host method", &[]),
    ("leader_election_master_status", "gauge", "name", &[]),
    ("leader_election_slowpath_total", "counter", "name", &[]),
    ("process_cpu_seconds_total", "counter", "", &[]),
    ("process_resident_memory_bytes", "gauge", "", &[]),
    ("process_virtual_memory_bytes", "gauge", "", &[]),
    ("process_start_time_seconds", "gauge", "", &[]),
    ("process_open_fds", "gauge", "", &[]),
];

/// The host has not reconciled anything yet, but every series that can be known exists.
async fn names_labels_and_buckets_are_those_of_controller_runtime(env: &mut TestEnv) -> Result<()> {
    let namespace = env.namespace.name.clone();
    env.set_up_host(|setup| {
        setup.arguments = vec!["--leader-elect".to_owned(), format!("--host-namespace={namespace}")];
    })?;
    env.start(&["app-service"]).await?;
    // A replica that stands by is ready, too. As in controller-runtime, the controller's series begin when it leads.
    env.host.logged("plugin at work").await?;
    let metrics = env.metrics().await?;
    for (name, kind, labels, buckets) in FOREIGN {
        let family = metrics.families.get(name).with_context(|| format!("no {name}"))?;
        let has: Vec<_> = family.labels.iter().map(String::as_str).collect();
        ensure!(family.kind == kind && has.join(" ") == labels, "{name} is {family:?}");
        let bucket = format!("{name}_bucket");
        let bounds = metrics.matching(&bucket, &[]).filter_map(|sample| sample.label("le")?.parse::<f64>().ok());
        let bounds: Vec<_> = bounds.filter(|bound| bound.is_finite()).collect();
        ensure!(bounds == buckets, "the buckets of {name} are {bounds:?}");
    }
    Ok(())
}

/// The metrics in the tables of `docs/metrics.md`: name, type and labels.
fn documented() -> Result<BTreeMap<String, (String, BTreeSet<String>)>> {
    let page = std::fs::read_to_string(artifacts::repository().join("docs/metrics.md"))?;
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        let labels = cells.get(3)?.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        Some((name.to_owned(), ((*cells.get(2)?).to_owned(), labels.filter(|label| !label.is_empty()).collect())))
    });
    Ok(rows.collect())
}

async fn everything_begins_at_zero(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let metrics = env.metrics().await?;
    for name in [
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_count",
        "controller_runtime_active_workers",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_work_duration_seconds_count",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "pilothouse_plugin_calls_total",
        "pilothouse_plugin_calls_skipped_total",
        "pilothouse_plugin_call_seconds_count",
        "pilothouse_plugin_call_memory_peak_bytes_count",
        "pilothouse_plugin_swaps_total",
        "pilothouse_drift_repaired_total",
        "pilothouse_rights_missing",
        "pilothouse_faults_total",
        "pilothouse_measurements_dropped_total",
    ] {
        let label = (if name.starts_with("pilothouse_") { "plugin" } else { "controller" }, "app-service");
        ensure!(metrics.has(name, &[label]), "no series of {name}");
        ensure!(metrics.sum(name, &[label]) == 0.0, "{name} is not zero");
    }
    for result in ["success", "error", "requeue", "requeue_after"] {
        let labels = [("controller", "app-service"), ("result", result)];
        ensure!(metrics.has("controller_runtime_reconcile_total", &labels), "no series for {result}");
    }
    for outcome in ["response", "trap", "deadline", "memory_limit", "output_limit", "contract", "host_memory"] {
        let labels = [("plugin", "app-service"), ("outcome", outcome)];
        ensure!(metrics.has("pilothouse_plugin_calls_total", &labels), "no series for {outcome}");
    }
    for reason in warnings()? {
        let labels = [("plugin", "app-service"), ("reason", reason.as_str())];
        ensure!(metrics.has("pilothouse_faults_total", &labels), "no series for {reason}");
    }
    let reasons = metrics.matching("pilothouse_faults_total", &[]).count();
    ensure!(reasons == warnings()?.len(), "{reasons} reasons are counted, others are documented");
    ensure!(metrics.sum("controller_runtime_max_concurrent_reconciles", &[]) == 4.0, "not the default concurrency");
    ensure!(metrics.has("pilothouse_plugin_load_failures_total", &[]), "no series for load failures");
    Ok(())
}

/// The reasons that `docs/conditions.md` marks as Warning Events: those before a `W`.
fn warnings() -> Result<BTreeSet<String>> {
    let page = std::fs::read_to_string(artifacts::repository().join("docs/conditions.md"))?;
    let rows = page.lines().filter_map(|line| Some(line.split('|').nth(1)?.split_once(" W")?.0));
    let reasons: BTreeSet<_> = rows
        .flat_map(|row| row.split(','))
        .map(|reason| reason.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned())
        .collect();
    ensure!(reasons.contains("PluginTrapped"), "the page is written in another way: {reasons:?}");
    Ok(reasons)
}

async fn reconciles_are_counted(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.reconcile_often("web", 2).await?;
    let metrics = env.metrics_at_rest().await?;
    let of_plugin = [("controller", "app-service")];
    let reconciles = metrics.sum("controller_runtime_reconcile_total", &of_plugin);
    let timed = metrics.sum("controller_runtime_reconcile_time_seconds_count", &of_plugin);
    ensure!(reconciles == timed && timed >= 3.0, "{reconciles} reconciles are counted, {timed} are timed");
    ensure!(metrics.sum("controller_runtime_reconcile_errors_total", &of_plugin) == 0.0, "errors are counted");
    let called = [("plugin", "app-service")];
    let answered = metrics.sum("pilothouse_plugin_calls_total", &[called[0], ("outcome", "response")]);
    ensure!(answered >= 3.0, "{answered} calls are counted");
    for part in ["call_seconds_count", "call_memory_peak_bytes_count"] {
        let measured = metrics.sum(&format!("pilothouse_plugin_{part}"), &called);
        ensure!(measured == answered, "{part} is {measured} after {answered} calls");
    }
    let peak = metrics.sum("pilothouse_plugin_call_memory_peak_bytes_sum", &called) / answered;
    ensure!((65_536.0..134_217_728.0).contains(&peak), "a call has {peak} bytes at most");
    Ok(())
}

/// Each act raises certain metrics and no others, and its reconciles have a certain result.
async fn faults_are_counted_by_what_they_are(env: &mut TestEnv) -> Result<()> {
    const RUNTIME: [&str; 4] =
        ["reconcile_errors", "terminal_reconcile_errors", "reconcile_timeouts", "reconcile_panics"];
    env.start(&["misbehaver"]).await?;
    for (act, raised, result) in [
        ("well", &[][..], "success"),
        ("invalid", &["reconcile_errors", "terminal_reconcile_errors"], "error"),
        ("loop", &["reconcile_errors", "reconcile_timeouts"], "error"),
        ("trap", &["reconcile_errors"], "error"),
        ("wait", &[], "requeue_after"),
    ] {
        let of_plugin = ("controller", "misbehaver");
        let before = env.metrics().await?;
        let mut object = misbehaver(act, act);
        object["spec"]["number"] = json!(600);
        env.namespace.apply(object).await?;
        let raises =
            |now: &Samples, name: &str, labels: &[(&str, &str)]| now.sum(name, labels) > before.sum(name, labels);
        eventually(PATIENCE, &format!("{act} to be counted"), async || {
            let now = env.metrics().await?;
            let labels = [of_plugin, ("result", result)];
            let done = raises(&now, "controller_runtime_reconcile_total", &labels)
                && raised.iter().all(|name| raises(&now, &format!("controller_runtime_{name}_total"), &[of_plugin]));
            Ok(Look::of(done, raised))
        })
        .await?;
        let now = env.metrics().await?;
        for name in RUNTIME.iter().filter(|name| !raised.contains(name)) {
            ensure!(!raises(&now, &format!("controller_runtime_{name}_total"), &[of_plugin]), "{act} raises {name}");
        }
        // A failing object is retried for ever and would be counted for the next act, too.
        env.namespace.delete("Misbehaver", act).await?;
        env.namespace.until_gone("Misbehaver", act).await?;
        env.metrics_at_rest().await?;
    }
    Ok(())
}

async fn the_queue_is_measured(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let queue = [("name", "misbehaver"), ("controller", "misbehaver")];
    // A call that loops lasts long enough to be seen in progress.
    env.namespace.apply(misbehaver("endless", "loop")).await?;
    eventually(PATIENCE, "work under way", async || {
        let now = env.metrics().await?;
        let (longest, all) = (
            now.sum("workqueue_longest_running_processor_seconds", &queue),
            now.sum("workqueue_unfinished_work_seconds", &queue),
        );
        Ok(Look::of(longest > 0.0 && all >= longest, (longest, all)))
    })
    .await?;
    eventually(PATIENCE, "a retry", async || {
        let retries = env.metrics().await?.sum("workqueue_retries_total", &queue);
        Ok(Look::of(retries > 0.0, retries))
    })
    .await?;
    env.namespace.delete("Misbehaver", "endless").await?;
    env.namespace.until_gone("Misbehaver", "endless").await?;
    let now = env.metrics_at_rest().await?;
    let adds = now.sum("workqueue_adds_total", &queue);
    let counted = |part: &str| now.sum(&format!("workqueue_{part}_duration_seconds_count"), &queue);
    let (waited, worked) = (counted("queue"), counted("work"));
    ensure!(adds == waited && waited == worked && adds >= 2.0, "{adds} adds, {waited} waits, {worked} works");
    let reconciles = now.sum("controller_runtime_reconcile_total", &[("controller", "misbehaver")]);
    ensure!(reconciles <= worked, "{reconciles} reconciles, {worked} works");
    for priority in ["0", "-100"] {
        ensure!(now.has("workqueue_depth", &[queue[0], queue[1], ("priority", priority)]), "no priority {priority}");
    }
    Ok(())
}

async fn requests_are_counted(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let metrics = env.metrics_at_rest().await?;
    let server = env.cluster.plane.url().trim_start_matches("https://").to_owned();
    for (method, code) in [("GET", "200"), ("PATCH", "200"), ("PATCH", "201")] {
        let labels = [("method", method), ("code", code), ("host", server.as_str())];
        ensure!(metrics.sum("rest_client_requests_total", &labels) >= 1.0, "no {method} with {code} of {server}");
    }
    let writes = env.host_writes().await?.len() as f64;
    let counted: f64 = metrics.sum("rest_client_requests_total", &[("method", "PATCH")]);
    ensure!(counted >= writes, "{counted} of {writes} writes are counted");
    Ok(())
}

async fn the_process_is_measured(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let metrics = env.metrics().await?;
    let value = |name: &str| metrics.sum(&format!("process_{name}"), &[]);
    let (resident, whole) = (value("resident_memory_bytes"), value("virtual_memory_bytes"));
    ensure!(resident > 1e6 && whole > resident, "{resident} of {whole} bytes");
    ensure!(value("cpu_seconds_total") > 0.0, "no time on processors");
    let (open, most) = (value("open_fds"), value("max_fds"));
    ensure!(open > 3.0 && most > open, "{open} of {most} files");
    ensure!(value("threads") >= 2.0, "{} threads", value("threads"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    let age = now - value("start_time_seconds");
    ensure!((-2.0..600.0).contains(&age), "the host is {age} s old");
    Ok(())
}

async fn swaps_and_versions_are_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let plugin = [("plugin", "app-service")];
    ensure!(
        env.metrics().await?.sum("pilothouse_plugin_loaded", &[plugin[0], ("version", "0.1.0")]) == 1.0,
        "not reported"
    );
    env.host.install(&artifacts::guest("app-service-next")?, "app-service.wasm")?;
    eventually(PATIENCE, "the new version to be at work", async || {
        let now = env.metrics().await?;
        let versions: Vec<_> =
            now.matching("pilothouse_plugin_loaded", &plugin).filter_map(|sample| sample.label("version")).collect();
        let swaps = now.sum("pilothouse_plugin_swaps_total", &plugin);
        Ok(Look::of(versions == ["0.2.0"] && swaps == 1.0, (versions, swaps)))
    })
    .await?;
    let loads = env.metrics().await?.sum("pilothouse_plugin_load_seconds_count", &plugin);
    ensure!(loads == 2.0, "{loads} loads are timed");
    Ok(())
}
