//! `pilothouse dev` in each language: the time from saving a source until the child in the cluster is another one, with a warm build. Needs
//! a host, and the tools of the languages; `make bench-dev` sees to both. A language without tools is left out.
//!
//!   DEV_REPEATS=5 make bench-dev

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::DynamicObject,
    runtime::watcher::{self, watch_object},
};
use pilothouse_bench::{has_host, setting};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    cluster::{Cluster, Namespace},
    dev_loop::DevLoop,
    languages::Language,
    project::Project,
};
use serde_json::json;

fn main() -> Result<()> {
    if !has_host("dev") {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(setting("DEV_REPEATS", 5)))
}

async fn run(repeats: usize) -> Result<()> {
    let cluster = Cluster::with(Parts::Api).await?;
    println!("| language | shortest, s | half of the saves, s | longest, s |");
    println!("|---|---|---|---|");
    for language in Language::ALL {
        if !language.has_tools() {
            eprintln!("dev: {} is left out: {}", language.title(), language.install());
            continue;
        }
        let namespace = cluster.namespace(&format!("dev {}", language.name())).await?;
        let mut times = saves(&namespace, language, repeats).await?;
        times.sort();
        let seconds = |at: usize| times.get(at).map_or(f64::NAN, Duration::as_secs_f64);
        let (half, last) = (times.len() / 2, times.len().saturating_sub(1));
        println!("| {} | {:.1} | {:.1} | {:.1} |", language.title(), seconds(0), seconds(half), seconds(last));
    }
    cluster.stop().await
}

/// How long each of so many saves took to come to the child.
async fn saves(namespace: &Namespace, language: Language, repeats: usize) -> Result<Vec<Duration>> {
    let project = Project::new(language)?.equip()?;
    let setup = namespace.setup();
    let place =
        ["--namespace".as_ref(), namespace.name.as_ref(), "--kubeconfig".as_ref(), setup.kubeconfig.as_os_str()];
    let mut dev = DevLoop::start(&project.root(), &setup.cache, place)?;
    dev.says("is at work").await?;
    let spec = json!({"image": "web:1"});
    namespace
        .apply(json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web"}, "spec": spec}))
        .await?;
    let deployments = namespace.api("Deployment")?;
    until_called(&deployments, "app").await?;
    let mut times = Vec::new();
    let mut before = "app".to_owned();
    for number in 0..repeats {
        let name = format!("app-{number}");
        let saved = Instant::now();
        project.rename_container(&before, &name)?;
        until_called(&deployments, &name).await?;
        times.push(saved.elapsed());
        // The round is over, so that the next one does not wait for its end.
        dev.says("is at work").await?;
        before = name;
    }
    dev.stop().await?;
    Ok(times)
}

/// Waits until the container of the Deployment has a name.
async fn until_called(deployments: &Api<DynamicObject>, name: &str) -> Result<()> {
    let is_called = |object: &DynamicObject| object.data["spec"]["template"]["spec"]["containers"][0]["name"] == name;
    // None while it is not there.
    let states = watch_object(deployments.clone(), "web").try_filter_map(async |object| Ok(object));
    let mut called = std::pin::pin!(states.try_filter(|object| std::future::ready(is_called(object))));
    called.next().await.context("the watch ended")?.map_err(watcher_error)?;
    Ok(())
}

fn watcher_error(error: watcher::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("failed to watch the Deployment")
}
