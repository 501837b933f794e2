//! What the first look at all objects of a kind costs an API server, by the way in which it is made: pages of a list, or a watch that
//! begins with all objects (`WatchList`, KEP-3157). A bare client reads and forgets; no operator runs.
//!
//!   LISTS_OBJECTS=20000 LISTS_ROUNDS=5 make bench-lists

use std::{fs, time::Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, ObjectList, PostParams, Request, WatchEvent, WatchParams},
};
use pilothouse_bench::{
    is_asked_for,
    process::{cpu, memory},
    setting,
    table::{Measured, Table},
};
use pilothouse_control_plane::Part;
use pilothouse_tests::{app_services::api_server, cluster::create_namespace};
use serde_json::json;

const NAMESPACE: &str = "lists";

const PATH: &str = "/api/v1/configmaps";

/// The page of kube's watcher and of client-go's reflector.
const PAGE: u32 = 500;

/// How many bytes an object holds besides its metadata.
const CONTENT: usize = 2_000;

/// How many objects are created at once.
const PARALLEL: usize = 16;

/// What marks the end of what was there when a watch began.
const END: &str = "k8s.io/initial-events-end";

/// A way to read all objects.
#[derive(Clone, Copy)]
enum Way {
    Pages,
    Stream,
    StreamOfAnyVersion,
}

impl Way {
    const ALL: [Self; 3] = [Self::Pages, Self::Stream, Self::StreamOfAnyVersion];

    fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Stream => "a stream",
            Self::StreamOfAnyVersion => "a stream of any version",
        }
    }

    /// Reads all objects. Returns how many there are.
    async fn read(self, client: &Client) -> Result<usize> {
        match self {
            Self::Pages => pages(client).await,
            Self::Stream => streamed(client, "").await,
            Self::StreamOfAnyVersion => streamed(client, "0").await,
        }
    }
}

fn main() -> Result<()> {
    if !is_asked_for() {
        return Ok(());
    }
    let (objects, rounds) = (setting("LISTS_OBJECTS", 20_000), setting("LISTS_ROUNDS", 5));
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(objects, rounds))
}

async fn run(objects: usize, rounds: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plane = api_server(folder.path().join("control-plane")).await?;
    let (client, server) = (plane.client().await?, plane.pid(Part::ApiServer).await?);
    create_namespace(&client, NAMESPACE).await?;
    create(&client, objects).await?;
    let (mut table, mut ways) = (Table::default(), Way::ALL);
    // The first round, in which caches warm up, does not count.
    for round in 0..=rounds {
        for way in ways {
            let measured = measure(&client, server, way, objects).await.with_context(|| way.name())?;
            if round > 0 {
                table.add(way.name(), measured);
            }
        }
        // Whoever comes first in one round comes last in the next.
        ways.reverse();
    }
    print!("{}", table.print(&format!("The first look at {objects} objects"), &Way::ALL.map(Way::name)));
    plane.stop().await
}

async fn create(client: &Client, objects: usize) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let create = async |number: usize| {
        let object =
            json!({"metadata": {"name": format!("object-{number}")}, "data": {"content": "x".repeat(CONTENT)}});
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        anyhow::Ok(())
    };
    eprintln!("lists: creating {objects} objects");
    stream::iter(0..objects).map(create).buffer_unordered(PARALLEL).try_collect().await
}

async fn measure(client: &Client, server: u32, way: Way, objects: usize) -> Result<Vec<Measured>> {
    // From here on the kernel counts the most memory anew (proc_pid_clear_refs(5)).
    fs::write(format!("/proc/{server}/clear_refs"), "5")?;
    let (used, (before, _), began) = (cpu(server)?, memory(server)?, Instant::now());
    let read = way.read(client).await?;
    let took = began.elapsed();
    if read < objects {
        bail!("{read} of {objects} objects were read");
    }
    let (_, most) = memory(server)?;
    Ok(vec![
        ("API server CPU, ms", (cpu(server)? - used) * 1_000.0),
        ("API server memory on top, MiB", most - before),
        ("all read, ms", took.as_secs_f64() * 1_000.0),
    ])
}

async fn pages(client: &Client) -> Result<usize> {
    let (mut read, mut parameters) = (0, ListParams::default().limit(PAGE));
    loop {
        let page: ObjectList<ConfigMap> = client.request(Request::new(PATH).list(&parameters)?).await?;
        read += page.items.len();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            None => return Ok(read),
            token => parameters.continue_token = token,
        }
    }
}

async fn streamed(client: &Client, version: &str) -> Result<usize> {
    let request = Request::new(PATH).watch(&WatchParams::default().initial_events(), version)?;
    let mut events = Box::pin(client.request_events::<ConfigMap>(request).await?);
    let mut read = 0;
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(_) => read += 1,
            WatchEvent::Bookmark(bookmark) if bookmark.metadata.annotations.contains_key(END) => return Ok(read),
            WatchEvent::Error(status) => bail!("{}", status.message),
            WatchEvent::Bookmark(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_) => {}
        }
    }
    bail!("the watch ended before all objects came")
}
