//! What one write costs an API server, by the way in which it is made: server-side apply, a merge patch of what differs, PUT, and PUT in
//! protobuf. For the children and the status that the host writes most. A bare client does nothing else; no operator runs.
//!
//!   WRITES_OBJECTS=50 WRITES_TIMES=400 WRITES_ROUNDS=5 make bench-writes

mod protobuf;
mod subject;
mod way;
mod writer;

use std::time::Instant;

use anyhow::{Context, Result};
use kube::Client;
use pilothouse_bench::{
    is_asked_for,
    process::cpu,
    setting,
    table::{Measured, Table},
    times::quantile,
};
use pilothouse_control_plane::Part;
use pilothouse_tests::{app_services::api_server, cluster::create_namespace};

use crate::{
    subject::{SUBJECTS, Subject},
    way::Way,
    writer::Writer,
};

/// What is measured of each way.
const ROWS: [&str; 5] = ["API server CPU, ms", "etcd CPU, ms", "both, ms", "a write: p50, ms", "a write: p99, ms"];

/// How much is done.
struct Plan {
    objects: usize,
    times: usize,
    rounds: usize,
}

/// The processes that answer.
struct Servers {
    api_server: u32,
    etcd: u32,
}

fn main() -> Result<()> {
    if !is_asked_for() {
        return Ok(());
    }
    let plan = Plan {
        objects: setting("WRITES_OBJECTS", 50),
        times: setting("WRITES_TIMES", 400),
        rounds: setting("WRITES_ROUNDS", 5),
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&plan))
}

async fn run(plan: &Plan) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plane = api_server(folder.path().join("control-plane")).await?;
    let client = plane.client().await?;
    let servers = Servers { api_server: plane.pid(Part::ApiServer).await?, etcd: plane.pid(Part::Etcd).await? };
    for subject in &SUBJECTS {
        changes(&client, &servers, subject, plan).await?;
    }
    for subject in SUBJECTS.iter().filter(|subject| !subject.is_status) {
        creations(&client, &servers, subject, plan).await?;
    }
    plane.stop().await
}

/// Changes objects that are there, each way its own ones, so that each has the field owners that its way leads to.
async fn changes(client: &Client, servers: &Servers, subject: &Subject, plan: &Plan) -> Result<()> {
    let ways = Way::of_changes(subject);
    let mut writers = Vec::new();
    for way in &ways {
        let namespace = subject.namespace("change", *way);
        create_namespace(client, &namespace).await?;
        let mut writer = Writer::new(client, subject, *way, namespace).await?;
        for number in 0..plan.objects {
            writer.create(number).await?;
        }
        writers.push((*way, writer));
    }
    let mut table = Table::default();
    // The first round, in which caches and connections warm up, does not count.
    for round in 0..=plan.rounds {
        for (way, writer) in &mut writers {
            let change = |number| (number % plan.objects, 1 + round * plan.times + number);
            let measured = measure(servers, plan.times, async |number| {
                let (object, change) = change(number);
                writer.change(object, change).await.with_context(|| format!("{} by {}", subject.title, way.name()))
            })
            .await?;
            if round > 0 {
                table.add(way.name(), measured);
            }
        }
        // Whoever comes first in one round comes last in the next.
        writers.reverse();
    }
    print(&table, &format!("A change of {}", subject.title), &ways);
    Ok(())
}

/// Creates objects.
async fn creations(client: &Client, servers: &Servers, subject: &Subject, plan: &Plan) -> Result<()> {
    let ways = Way::of_creations(subject);
    let (mut table, mut order) = (Table::default(), ways.clone());
    for round in 0..=plan.rounds {
        for way in &order {
            let namespace = subject.namespace(&format!("create-{round}"), *way);
            create_namespace(client, &namespace).await?;
            let mut writer = Writer::new(client, subject, *way, namespace).await?;
            let measured = measure(servers, plan.times, async |number| {
                writer.create(number).await.with_context(|| format!("{} by {}", subject.title, way.name()))
            })
            .await?;
            if round > 0 {
                table.add(way.name(), measured);
            }
        }
        order.reverse();
    }
    print(&table, &format!("A creation of {}", subject.title), &ways);
    Ok(())
}

fn print(table: &Table, title: &str, ways: &[Way]) {
    print!("{}", table.print(title, &ways.iter().map(|way| way.name()).collect::<Vec<_>>()));
}

/// Does something so many times, one after the other.
async fn measure(
    servers: &Servers,
    times: usize,
    mut work: impl AsyncFnMut(usize) -> Result<()>,
) -> Result<Vec<Measured>> {
    let used = || anyhow::Ok([cpu(servers.api_server)?, cpu(servers.etcd)?]);
    let (before, mut took) = (used()?, Vec::new());
    for number in 0..times {
        let started = Instant::now();
        work(number).await?;
        took.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    let after = used()?;
    took.sort_by(f64::total_cmp);
    let [server, etcd] = [0, 1].map(|which: usize| (after[which] - before[which]) * 1_000.0 / times as f64);
    let values = [server, etcd, server + etcd, quantile(&took, 0.5), quantile(&took, 0.99)];
    Ok(ROWS.into_iter().zip(values).collect())
}
