//! A change of a good plugin's object, alone and beside plugins that take all they may.

use std::time::Duration;

use anyhow::{Result, ensure};
use pilothouse_bench::{
    process::memory,
    setting,
    table::Measured,
    times::{one_by_one, quantile},
};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    app_services::AppServices,
    artifacts,
    cgroup::Cgroup,
    cluster::{Cluster, Namespace, install_crd},
    host::Host,
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::CONTAINER;

/// Objects whose plugin allocates until it is refused, and such whose plugin computes until it is stopped. More than there are instances.
const GREEDY: usize = 48;

/// How long the greedy plugin may take to have everything.
const PATIENCE: Duration = Duration::from_secs(300);

/// By how much a change takes longer beside them: the median, and of a hundred the slowest but one.
pub const MORE: [&str; 2] = ["a change beside greedy plugins: p50 above alone, ms", "... p99 above alone, ms"];

/// The acts of greedy objects: the rows of the median and of p99, and how a call of it ends.
const ACTS: [(&str, [&str; 2], &str); 2] = [
    ("allocate", ["a change beside plugins that allocate: p50, ms", "... that allocate: p99, ms"], "memory_limit"),
    ("loop", ["a change beside plugins that compute: p50, ms", "... that compute: p99, ms"], "deadline"),
];

/// Measures it.
pub async fn measure(measured: &mut Vec<Measured>) -> Result<()> {
    let changes = setting("NEIGHBOURS_CHANGES", 200);
    let cluster = Cluster::with(Parts::Api).await?;
    let namespace = cluster.namespace("neighbours").await?;
    for crd in ["crds/appservices.apps.example.com.yaml", "tests/guests/misbehaver/crd.yaml"] {
        install_crd(&namespace.client(), &artifacts::repository().join(crd)).await?;
    }
    let container = Cgroup::with_memory(CONTAINER)?;
    let mut setup = namespace.setup();
    setup.cgroup = Some(container.folder().to_owned());
    let mut host = Host::prepare(setup)?;
    host.install(&artifacts::guest("misbehaver")?, "misbehaver.wasm")?;
    host.install(&artifacts::plugin("app-service")?, "app-service.wasm")?;
    host.resume().await?;
    host.ready().await?;
    let pid = host.pid()?;
    let web = AppServices::new(&namespace.client(), &namespace.name)?;
    let children = web.follow_children().await?;
    web.create(1).await?;
    children.until("web-0", |_| true).await;

    let mut turn = 0;
    let mut times = async || {
        turn += 1;
        let image = |number: usize| format!("example.com/web:{turn}-{number}");
        one_by_one(changes, async |number| web.change(&children, 0, &image(number)).await).await
    };
    let alone = times().await?;
    measured.extend([
        ("a change alone: p50, ms", quantile(&alone, 0.5)),
        ("a change alone: p99, ms", quantile(&alone, 0.99)),
    ]);
    let mut slowest = [0.0_f64; 2];
    for (act, rows, outcome) in ACTS {
        create(&namespace, act).await?;
        let calls = async || Samples::parse(&host.metrics().await?).map(|samples| ended(&samples, outcome));
        eventually(PATIENCE, "the greedy plugin to take what it may", async || {
            let calls = calls().await?;
            Ok(Look::of(calls > 0.0, calls))
        })
        .await?;
        let before = calls().await?;
        // It is asked again and again, for what has failed is left alone for longer each time.
        let times = tokio::select! {
            times = times() => times?,
            ended = wake(&namespace, act) => return ended,
        };
        ensure!(calls().await? > before, "no call ended by {outcome} meanwhile, so nobody was greedy");
        for ((row, share), (most, alone)) in
            rows.into_iter().zip([0.5, 0.99]).zip(slowest.iter_mut().zip([0.5, 0.99].map(|it| quantile(&alone, it))))
        {
            let took = quantile(&times, share);
            measured.push((row, took));
            *most = most.max(took - alone);
        }
        remove(&namespace, act).await?;
    }
    measured.extend(MORE.into_iter().zip(slowest));
    measured.push(("beside greedy plugins: host's peak of RSS, MiB", memory(pid)?.1));
    ensure!(host.pid()? == pid, "the host was ended");
    host.stop().await?;
    cluster.stop().await
}

fn ended(samples: &Samples, outcome: &str) -> f64 {
    samples.sum("pilothouse_plugin_calls_total", &[("plugin", "misbehaver"), ("outcome", outcome)])
}

fn name(act: &str, number: usize) -> String {
    format!("{act}-{number}")
}

async fn create(namespace: &Namespace, act: &str) -> Result<()> {
    for number in 0..GREEDY {
        let object: Value = json!({
            "apiVersion": "test.pilothouse.dev/v1", "kind": "Misbehaver", "metadata": {"name": name(act, number)},
            "spec": {"act": act},
        });
        namespace.apply(object).await?;
    }
    Ok(())
}

/// Changes them one after the other, for ever.
async fn wake(namespace: &Namespace, act: &str) -> Result<()> {
    for turn in 0_u32.. {
        for number in 0..GREEDY {
            namespace.patch("Misbehaver", &name(act, number), json!({"spec": {"number": turn}})).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

async fn remove(namespace: &Namespace, act: &str) -> Result<()> {
    for number in 0..GREEDY {
        namespace.delete("Misbehaver", &name(act, number)).await?;
    }
    Ok(())
}
