//! How much one host carries when nothing but its own thread limits it: the host's own code, with an API server in memory that answers at
//! once. The time in which that server computes does not count. With a plugin that does nothing, and with AppService linked natively.
//! Needs nothing but a compiler.
//!
//!   SATURATION_OBJECTS=5000 SATURATION_ROUNDS=3 make bench-saturation

mod server;

use std::{sync::Arc, time::Instant};

use anyhow::{Context, Result};
use pilothouse_bench::{
    is_asked_for,
    native::Native,
    setting,
    table::{Measured, Table},
};
use pilothouse_controller::{
    client::{self, Limits, REQUEST_TIMEOUT},
    host::{Host, HostConfig},
    metrics::Metrics,
    plugin::PluginSettings,
};
use tokio::sync::oneshot;

use crate::server::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A plugin, and how many writes a new object costs and a changed one.
struct Subject {
    name: &'static str,
    plugin: fn() -> serde_json::Result<Native>,
    created: usize,
    changed: usize,
}

const SUBJECTS: [Subject; 2] = [
    Subject { name: "a plugin that does nothing", plugin: Native::nothing, created: 1, changed: 1 },
    Subject { name: "AppService", plugin: Native::app_service, created: 3, changed: 2 },
];

fn main() -> Result<()> {
    if !is_asked_for() {
        return Ok(());
    }
    let (objects, rounds) = (setting("SATURATION_OBJECTS", 5_000), setting("SATURATION_ROUNDS", 3));
    let mut table = Table::default();
    for _ in 0..rounds {
        for subject in &SUBJECTS {
            // The process has one thread, which does nothing else.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            table.add(subject.name, runtime.block_on(measure(subject, objects))?);
        }
    }
    let title = format!("What one thread carries, with {objects} objects");
    print!("{}", table.print(&title, &SUBJECTS.map(|subject| subject.name)));
    Ok(())
}

async fn measure(subject: &Subject, objects: usize) -> Result<Vec<Measured>> {
    let server = Server::new()?;
    let (host, stop, ended) = start(&server);
    host.install(Arc::new((subject.plugin)()?), PluginSettings::default());
    // What a start costs does not count: the first object is made real before.
    server.create(0)?;
    server.until_written(subject.created).await.with_context(|| host.not_ready().join("; "))?;
    let created = run(&server, objects, subject.created, Server::create).await?;
    let changed = run(&server, objects, subject.changed, Server::change).await?;
    stop.send(()).ok().context("the host has ended by itself")?;
    ended.await?;
    Ok(vec![
        ("created objects, per second", created.per_second),
        ("changed objects, per second", changed.per_second),
        ("a created object: requests", created.requests),
        ("a changed object: requests", changed.requests),
    ])
}

/// A host over the server. It works until the sender sends, and the task ends with it.
fn start(server: &Arc<Server>) -> (Arc<Host>, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let (metrics, config) = (Metrics::new(), HostConfig::default());
    let limits = Limits {
        requests: metrics.requests(),
        fence: config.fence.clone(),
        clock: config.clock.clone(),
        timeout: REQUEST_TIMEOUT,
    };
    let host = Host::new(client::over(server.connection(), limits, "default"), metrics, config);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = host.clone();
    let ended = tokio::spawn(async move {
        running
            .run(async move {
                // A sender that is gone asks for the end, too.
                stopped.await.unwrap_or_default();
            })
            .await;
    });
    (host, stop, ended)
}

/// What was measured of a phase.
struct Phase {
    per_second: f64,
    requests: f64,
}

/// Has somebody write so many objects at once, and waits until the host has written as often as that asks for.
async fn run(
    server: &Server,
    objects: usize,
    writes_each: usize,
    write: fn(&Server, usize) -> Result<()>,
) -> Result<Phase> {
    let (before, began) = (server.counts(), Instant::now());
    (1..=objects).try_for_each(|number| write(server, number))?;
    server.until_written(before.writes + objects * writes_each).await?;
    let (took, counts) = (began.elapsed(), server.counts());
    let own = took.saturating_sub(counts.spent - before.spent);
    let (count, requests) = (objects as f64, (counts.requests - before.requests) as f64);
    Ok(Phase { per_second: count / own.as_secs_f64(), requests: requests / count })
}
