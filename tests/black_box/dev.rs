//! `pilothouse dev`: what an author sees and what the cluster gets, from saving a file on. The plugin is in C, whose build takes a moment;
//! builds of the other languages are tested elsewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kube::{
    Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use pilothouse_tests::{
    cluster::{Awaited, PATIENCE, api},
    dev_loop::DevLoop,
    languages::Language,
    project::Project,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::{file, pilothouse},
    plugin_objects::plugin_object,
    suite::{Suite, heavy, tests},
    test_env::{TestEnv, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, dev_asks_before_it_works_on_a_cluster_elsewhere);
    if Language::C.has_tools() {
        tests!(
            suite,
            a_saved_change_comes_to_work_and_a_mistake_keeps_the_version_before,
            deletes_that_are_held_back_are_confirmed_by_the_author,
            a_kind_that_the_cluster_reconciles_already_is_refused,
            in_a_terminal_it_takes_the_screen_and_gives_it_back,
        );
        heavy!(suite, an_author_needs_no_cluster);
    } else {
        suite.ignored(
            module_path!(),
            "a_saved_change_comes_to_work",
            "C's tools are missing; see scripts/languages.sh",
        );
    }
}

/// Starts the command for folders, in the namespace of the test.
pub fn start(env: &TestEnv, folders: &[&Path]) -> Result<DevLoop> {
    let setup = env.namespace.setup();
    let place =
        ["--namespace".as_ref(), env.namespace.name.as_ref(), "--kubeconfig".as_ref(), setup.kubeconfig.as_os_str()];
    let (first, others) = folders.split_first().context("no folder")?;
    DevLoop::start(first, &setup.cache, others.iter().map(|folder| folder.as_os_str()).chain(place))
}

async fn a_saved_change_comes_to_work_and_a_mistake_keeps_the_version_before(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let mut project = Project::new(Language::C)?;
    let mut dev = start(env, &[&project.root()])?;
    dev.says("applied CustomResourceDefinition websites.example.com").await?;
    dev.says("5 cases: 5 passed, 0 failed").await?;
    dev.says("is at work").await?;
    env.namespace.apply(website()).await?;
    env.namespace.until("Deployment", "web", "to be made", |it| container(it) == "app").await?;
    dev.says("ms each").await?;

    project.rename_container("app", "site")?;
    dev.says("FAIL").await?;
    dev.says("5 cases: ").await?;
    dev.says("~ ").await?;
    dev.says("/spec/template/spec/containers").await?;
    dev.says("is at work").await?;
    env.namespace.until("Deployment", "web", "to follow the new version", |it| container(it) == "site").await?;

    project.break_sources()?;
    dev.says("mistake").await?;
    dev.says("goes on").await?;
    env.namespace.delete("Deployment", "web").await?;
    let again = Awaited { kind: "Deployment", name: "web", what: "to be made again by the version before" };
    env.namespace.until_within(PATIENCE, &again, |it| container(it) == "site").await?;

    dev.stop().await?;
    ensure!(env.namespace.get("Deployment", "web").await?.is_some(), "the child is gone with the command");
    Ok(())
}

async fn deletes_that_are_held_back_are_confirmed_by_the_author(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let project = Project::new(Language::C)?;
    std::fs::write(project.root().join("plugin.c"), PARTS)?;
    project.edit("plugin.yaml", "apiVersion: apps/v1, kind: Deployment", "apiVersion: v1, kind: ConfigMap")?;
    std::fs::remove_dir_all(project.root().join("cases"))?;
    let mut dev = start(env, &[&project.root()])?;
    dev.says("is at work").await?;
    env.namespace.apply(website()).await?;
    env.namespace.until("Website", "web", "to be ready", is_ready).await?;

    project.edit("plugin.c", "PARTS 12", "PARTS 1")?;
    dev.says("type y and Enter").await?;
    ensure!(env.namespace.get("ConfigMap", "part-11").await?.is_some(), "it was deleted without a word");
    dev.type_in("y").await?;
    dev.says("the deletes are confirmed").await?;
    env.namespace.until_gone("ConfigMap", "part-11").await?;
    ensure!(env.namespace.get("ConfigMap", "part-0").await?.is_some(), "what is asked for was deleted, too");
    dev.stop().await
}

/// A plugin whose objects have a number of ConfigMaps.
const PARTS: &str = r#"#include "pilothouse/pilothouse.h"
#define PARTS 12
void ph_reconcile(const ph_request *request, ph_response *response) {
  for (int part = 0; part < PARTS; part++) {
    ph_add_child(response, ph_json(
      "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"part-%d\"}}", part));
  }
}
"#;

async fn a_kind_that_the_cluster_reconciles_already_is_refused(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    let project = Project::new(Language::C)?;
    env.namespace.apply(plugin_object("sites", json!({"source": {"configMap": {"name": "sites"}}}))).await?;
    let status = json!({"status": {"reconciles": {"apiVersion": "example.com/v1", "kind": "Website"}}});
    env.namespace.api("Plugin")?.patch_status("sites", &PatchParams::default(), &Patch::Merge(status)).await?;
    let mut dev = start(env, &[&project.root()])?;
    dev.says("is reconciled by the Plugin 'sites' of the cluster").await?;

    env.namespace.patch("Plugin", "sites", json!({"spec": {"suspended": true}})).await?;
    // What was refused is tried again as soon as anything is saved, or by hand.
    dev.type_in("").await?;
    dev.says("is at work").await?;
    dev.stop().await
}

async fn in_a_terminal_it_takes_the_screen_and_gives_it_back(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let mut project = Project::new(Language::C)?;
    let setup = env.namespace.setup();
    let place =
        ["--namespace".as_ref(), env.namespace.name.as_ref(), "--kubeconfig".as_ref(), setup.kubeconfig.as_os_str()];
    let mut dev = DevLoop::start_in_terminal(&project.root(), &setup.cache, place, TERMINAL)?;
    shows(&dev, "its plugin at work", |rows| {
        rows[0].starts_with("● web-site  0.1.0 (") && rows[0].ends_with("at work  │  cases 5 of 5")
    })
    .await?;
    env.namespace.apply(website()).await?;
    env.namespace.until("Deployment", "web", "to be made", |it| container(it) == "app").await?;
    shows(&dev, "the calls", |rows| rows[0].contains("ms each")).await?;

    dev.press("b").await?;
    let builds = |rows: &[String]| rows.iter().filter(|row| *row == "web-site: building").count();
    shows(&dev, "another build", |rows| builds(rows) == 2).await?;
    project.break_sources()?;
    shows(&dev, "what goes on", |rows| rows[0].contains("failed; 0.1.0 (") && rows[0].contains(") goes on")).await?;
    let rows = screen(&dev)?.1;
    ensure!(rows.last().is_some_and(|keys| keys.ends_with(" q  end")), "{rows:#?}");

    dev.press("q").await?;
    dev.ends().await?;
    let (is_taken, rows) = screen(&dev)?;
    ensure!(!is_taken && rows.iter().any(|row| row.contains("goes on")), "what was told last stays: {rows:#?}");
    Ok(())
}

/// The rows and columns of a terminal.
const TERMINAL: (u16, u16) = (30, 120);

/// Waits until the terminal shows something.
async fn shows(dev: &DevLoop, what: &str, is_shown: impl Fn(&[String]) -> bool) -> Result<()> {
    eventually(PATIENCE, &format!("the terminal to show {what}"), async || {
        let (is_taken, rows) = screen(dev)?;
        Ok(Look::of(is_taken && is_shown(&rows), rows.join("\n")))
    })
    .await?;
    Ok(())
}

/// Whether the terminal is taken by a program as a whole, and its rows.
fn screen(dev: &DevLoop) -> Result<(bool, Vec<String>)> {
    let mut terminal = vt100::Parser::new(TERMINAL.0, TERMINAL.1, 0);
    terminal.process(&dev.bytes()?);
    let screen = terminal.screen();
    let rows = screen.rows(0, TERMINAL.1).map(|row| row.trim_end().to_owned()).collect();
    Ok((screen.alternate_screen(), rows))
}

async fn an_author_needs_no_cluster(env: &mut TestEnv) -> Result<()> {
    let project = Project::new(Language::C)?;
    let mut dev = DevLoop::start(&project.root(), &env.namespace.setup().cache, ["--local"])?;
    dev.says("export KUBECONFIG=").await?;
    dev.says("is at work").await?;
    let output = dev.output()?;
    let line = output.lines().find_map(|line| line.strip_prefix("export KUBECONFIG=")).context("no such line")?;
    let kubeconfig = PathBuf::from(line);
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(&kubeconfig)?, &options).await?;
    let client = Client::try_from(config)?;
    let websites = api(&client, "Website", Some("default"))?;
    websites.create(&PostParams::default(), &serde_json::from_value(website())?).await?;
    eventually(PATIENCE, "the Pods of its Deployment to run", async || {
        let object = websites.get("web").await?;
        Ok(Look::of(object.data["status"]["readyReplicas"] == 1, object))
    })
    .await?;
    dev.stop().await?;
    ensure!(!kubeconfig.exists(), "its files stay");
    ensure!(websites.get("web").await.is_err(), "the API server still answers");
    Ok(())
}

async fn dev_asks_before_it_works_on_a_cluster_elsewhere(_: &mut TestEnv) -> Result<()> {
    let kubeconfig = file(
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "far",
            "clusters": [{"name": "far", "cluster": {"server": "https://192.0.2.1:6443"}}],
            "contexts": [{"name": "far", "context": {"cluster": "far", "user": "far"}}],
            "users": [{"name": "far", "user": {}}],
        })
        .to_string()
        .as_bytes(),
    )?;
    let folder = tempfile::tempdir()?;
    let run = async |folder: PathBuf| {
        pilothouse(["dev".as_ref(), folder.as_os_str(), "--kubeconfig".as_ref(), kubeconfig.path().as_os_str()]).await
    };
    run(folder.path().to_owned()).await?.failed_with(&["nothing was changed", "--yes"])?;
    run(folder.path().join("missing")).await?.failed_with(&["there is no folder", "missing"])
}

pub fn website() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web"}, "spec": {"image": "web:1"}})
}

pub fn container(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["name"]
}
