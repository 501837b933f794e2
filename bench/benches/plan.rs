//! `pilothouse plan --eventual` over many objects that have no children yet, on an API server of its own: how long the command takes, with the
//! machine code of the plugin in its cache. It ends with an error where that is more than ten seconds for five hundred objects, or where the
//! command wrote anything. Needs `make plugins` and a host; `make bench-plan` builds both.
//!
//!   PLAN_OBJECTS=500 PLAN_REPEATS=3 make bench-plan

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_bench::{has_host, setting};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    audit::Writes,
    cluster::{Cluster, HOST_USER, Namespace, install_crd},
};
use serde_json::{Value, json};
use tokio::process::Command;

/// The longest that a plan may take, for each of this many objects.
const LIMIT: (Duration, usize) = (Duration::from_secs(10), 500);

/// Requests at the same time.
const PARALLEL: usize = 16;

/// The exit code of a plan with which something would change.
const CHANGES: i32 = 2;

fn main() -> Result<()> {
    if !has_host("plan") {
        return Ok(());
    }
    let (objects, repeats) = (setting("PLAN_OBJECTS", LIMIT.1), setting("PLAN_REPEATS", 3));
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(objects, repeats))
}

async fn run(objects: usize, repeats: usize) -> Result<()> {
    let cluster = Cluster::with(Parts::Api).await?;
    let namespace = cluster.namespace("plan").await?;
    install_crd(&namespace.client(), &artifacts::repository().join("crds/appservices.apps.example.com.yaml")).await?;
    let applies = (0..objects).map(|number| namespace.apply(app(number)));
    stream::iter(applies).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    // The first one compiles the plugin.
    plan(&namespace, objects).await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..repeats {
        let took = plan(&namespace, objects).await?;
        println!("a plan over {objects} objects took {:.2} s", took.as_secs_f64());
        slowest = slowest.max(took);
    }
    let written = Writes::read(&cluster.plane.audit_log_path(), HOST_USER, &namespace.name)?;
    ensure!(written.answered.is_empty() && written.under_way.is_empty(), "it wrote: {written:?}");
    cluster.stop().await?;
    let limit = LIMIT.0.mul_f64((objects as f64 / LIMIT.1 as f64).max(1.0));
    ensure!(slowest <= limit, "the slowest one took {slowest:?}, which is more than {limit:?}");
    Ok(())
}

/// Makes a plan by the host's user, and checks that it is about all objects. Returns how long it took.
async fn plan(namespace: &Namespace, objects: usize) -> Result<Duration> {
    let mut command = Command::new(artifacts::host_binary()?);
    command.arg("plan").arg(artifacts::plugin("app-service")?).args(["--eventual", "--output", "json"]);
    command.arg("--kubeconfig").arg(namespace.setup().kubeconfig).args(["--namespace", &namespace.name]);
    command.args(["--without-plugin-object", "--cache-dir"]).arg(namespace.setup().cache);
    command.env_remove("KUBECONFIG").stdin(Stdio::null()).kill_on_drop(true);
    let begun = Instant::now();
    let output = command.output().await?;
    let took = begun.elapsed();
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(CHANGES), "{}: {}", output.status, errors());
    let report: Value = serde_json::from_slice(&output.stdout).with_context(errors)?;
    ensure!(report["counts"]["changed"] == objects, "it is not about all objects: {}", report["counts"]);
    Ok(took)
}

fn app(number: usize) -> Value {
    json!({
        "apiVersion": "apps.example.com/v1",
        "kind": "AppService",
        "metadata": {"name": format!("web-{number}")},
        "spec": {"replicas": 3, "image": "nginx:1.27"},
    })
}
