//! Plugins as objects of the cluster whose components are files of the directory that the host is given (`--plugin-files`).

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use rcgen::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    canary::arguments,
    plugin_objects::{degraded, install_crds, next, plugin, plugin_object, sha256, text, works},
    registries::{bundle, reported},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// The file that the `Plugin` web names.
const FILE: &str = "app-service.wasm";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_file_is_loaded_as_its_plugin_says_and_never_by_itself,
        a_file_that_takes_the_place_of_another_takes_over,
        a_mounted_config_map_with_files_is_followed,
        a_file_that_is_missing_or_broken_is_told_and_the_version_before_goes_on,
        a_host_starts_without_the_file_of_what_is_named_by_its_digest,
        of_two_plugins_that_name_one_file_the_older_is_at_work,
        a_file_counts_only_with_a_signature_beside_it,
        no_name_leads_out_of_the_directory,
        a_host_without_the_directory_says_what_to_do,
    );
}

/// Neither before there is a `Plugin`, nor after it is deleted, nor in a host that starts then.
async fn a_file_is_loaded_as_its_plugin_says_and_never_by_itself(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    put(&files, FILE, &plugin()?)?;
    fs::copy(artifacts::guest("misbehaver")?, files.path().join("misbehaver.wasm"))?;
    env.namespace.apply(plugin_object("misbehaver", source("misbehaver.wasm"))).await?;
    // The host has seen the directory by then.
    env.namespace.until("Plugin", "misbehaver", "to be ready", is_ready).await?;
    ensure!(loaded(env).await? == ["misbehaver"], "a file that no Plugin names is at work: {}", env.host.log());

    let mut refusing = source(FILE);
    refusing["grants"] = json!({"children": []});
    env.namespace.apply(plugin_object("web", refusing)).await?;
    reported(env, "NotGranted", "spec.grants.children").await?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["digest"] == sha256(&plugin()?), "{object}");
    works(env, "shop").await?;

    env.namespace.delete("Plugin", "web").await?;
    env.host.logged("plugin removed").await?;
    ensure!(loaded(env).await? == ["misbehaver"], "it is at work without its Plugin");
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.namespace.until("Plugin", "misbehaver", "to be ready", is_ready).await?;
    env.namespace.apply(crate::test_env::misbehaver("object", "well")).await?;
    env.namespace.until("ConfigMap", "object", "to be there", |_| true).await?;
    ensure!(loaded(env).await? == ["misbehaver"], "a host that starts loads it by itself");
    ensure!(env.namespace.get("Deployment", "shop").await?.is_some(), "what it has made is gone");
    Ok(())
}

/// By a rename, and written in place: half a file changes nothing.
async fn a_file_that_takes_the_place_of_another_takes_over(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    put(&files, FILE, &plugin()?)?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;
    put(&files, FILE, &next()?)?;
    is_next(env, "shop").await?;
    env.namespace.until("Plugin", "web", "to show the new version", shows("0.2.0")).await?;

    let good = plugin()?;
    let file = files.path().join(FILE);
    fs::write(&file, &good[..good.len() / 2])?;
    let object = degraded(env, "NoPlugin").await?;
    ensure!(object["status"]["version"] == "0.2.0", "the version before does not go on: {object}");
    fs::write(&file, &good)?;
    env.namespace.until("Plugin", "web", "to show the whole file", shows("0.1.0")).await.map(drop)
}

/// The kubelet swaps one symbolic link for all files at once, and removes what it led to.
async fn a_mounted_config_map_with_files_is_followed(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    let publish = |revision: &str, plugin: &Path| -> Result<()> {
        let data = files.path().join(revision);
        fs::create_dir(&data)?;
        fs::copy(plugin, data.join(FILE))?;
        symlink(revision, files.path().join("..data_tmp"))?;
        Ok(fs::rename(files.path().join("..data_tmp"), files.path().join("..data"))?)
    };
    publish("..2026_01", &artifacts::plugin("app-service")?)?;
    symlink(Path::new("..data").join(FILE), files.path().join(FILE))?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;
    publish("..2026_02", &artifacts::guest("app-service-next")?)?;
    fs::remove_dir_all(files.path().join("..2026_01"))?;
    is_next(env, "shop").await?;
    env.namespace.until("Plugin", "web", "to show the new version", shows("0.2.0")).await.map(drop)
}

async fn a_file_that_is_missing_or_broken_is_told_and_the_version_before_goes_on(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    let object = reported(env, "FileMissing", "put it there").await?;
    ensure!(condition(&object, "Stalled")["reason"] == "FileMissing", "nobody knows that it is stuck: {object}");
    put(&files, FILE, &plugin()?)?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    let broken = [
        (None, "FileMissing", "version 0.1.0 goes on"),
        (Some(b"not WebAssembly".to_vec()), "NoPlugin", "not a whole WebAssembly file"),
        (Some(vec![0x1f, 0x8b, 8, 0]), "PackingDamaged", "failed to unpack"),
        (Some(vec![0; (64 << 20) + 1]), "TooLarge", "more than 64 MiB"),
    ];
    for ((bytes, reason, words), replicas) in broken.into_iter().zip(2..) {
        match bytes {
            Some(bytes) => put(&files, FILE, &bytes)?,
            None => fs::remove_file(files.path().join(FILE))?,
        }
        let is_told = |object: &Value| {
            let degraded = condition(object, "Degraded");
            degraded["reason"] == reason && text(&degraded["message"]).contains(words)
        };
        let object = env.namespace.until("Plugin", "web", &format!("to be degraded for {reason}"), is_told).await?;
        ensure!(object["status"]["version"] == "0.1.0", "{reason}: {object}");
        env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": replicas}})).await?;
        let is_scaled = |child: &Value| child["spec"]["replicas"] == replicas;
        env.namespace.until("Deployment", "shop", "to be scaled", is_scaled).await?;
    }
    put(&files, FILE, &next()?)?;
    env.namespace.until("Plugin", "web", "to show the new version", shows("0.2.0")).await.map(drop)
}

/// From what it has kept. That the file is away is told all the same, and another file is not loaded.
async fn a_host_starts_without_the_file_of_what_is_named_by_its_digest(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    put(&files, FILE, &plugin()?)?;
    let mut spec = source(FILE);
    spec["digest"] = sha256(&plugin()?).into();
    env.namespace.apply(plugin_object("web", spec)).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    put(&files, FILE, &next()?)?;
    let object = degraded(env, "DigestMismatch").await?;
    ensure!(is_ready(&object) && object["status"]["version"] == "0.1.0", "{object}");
    env.host.kill().await?;
    fs::remove_file(files.path().join(FILE))?;
    env.host.resume().await?;
    env.host.ready().await?;
    works(env, "shop").await?;
    let is_at_work = |object: &Value| condition(object, "Degraded")["reason"] == "FileMissing" && is_ready(object);
    env.namespace.until("Plugin", "web", "to be at work without its file", is_at_work).await?;
    put(&files, FILE, &plugin()?)?;
    let is_well = |object: &Value| condition(object, "Degraded").is_null() && is_ready(object);
    env.namespace.until("Plugin", "web", "to have its file again", is_well).await.map(drop)
}

async fn of_two_plugins_that_name_one_file_the_older_is_at_work(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    put(&files, FILE, &plugin()?)?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    // Of two that were created within a second, the name says which one is older.
    env.namespace.apply(plugin_object("web-too", source(FILE))).await?;
    let is_refused = |object: &Value| condition(object, "Stalled")["reason"] == "NameTaken";
    let object = env.namespace.until("Plugin", "web-too", "to be refused", is_refused).await?;
    let message = text(&condition(&object, "Stalled")["message"]);
    ensure!(message.contains("the Plugin 'web'"), "it does not say what is in its way: {message}");
    env.namespace.delete("Plugin", "web").await?;
    env.namespace.until("Plugin", "web-too", "to be ready", is_ready).await?;
    works(env, "shop").await
}

async fn a_file_counts_only_with_a_signature_beside_it(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    let (ours, theirs, bytes) = (KeyPair::generate()?, KeyPair::generate()?, plugin()?);
    let mut spec = source(FILE);
    spec["verification"] = json!({"keys": [ours.public_key_pem()], "transparencyLog": "Ignore"});
    put(&files, FILE, &bytes)?;
    // That of another file is none of this one.
    put(&files, "other.wasm.sigstore.json", bundle(&ours, &bytes)?.to_string().as_bytes())?;
    env.namespace.apply(plugin_object("web", spec)).await?;
    reported(env, "NotVerified", "it has no signature").await?;
    put(&files, &format!("{FILE}.sigstore.json"), bundle(&theirs, &bytes)?.to_string().as_bytes())?;
    reported(env, "NotVerified", "erification").await?;
    put(&files, &format!("{FILE}.team.sigstore.json"), bundle(&ours, &bytes)?.to_string().as_bytes())?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    // Who may write the directory cannot bring in another one.
    put(&files, FILE, &next()?)?;
    let object = degraded(env, "NotVerified").await?;
    ensure!(object["status"]["version"] == "0.1.0", "the other one is at work: {object}");
    Ok(())
}

/// The API server refuses paths, and the host a link to what is outside.
async fn no_name_leads_out_of_the_directory(env: &mut TestEnv) -> Result<()> {
    let files = start(env).await?;
    for name in ["../app-service.wasm", "/tmp/app-service.wasm", "a/b.wasm", ".hidden.wasm", "app-service", ".wasm"] {
        let refused = env.namespace.apply(plugin_object("web", source(name))).await;
        let said = refused.err().with_context(|| format!("'{name}' is accepted"))?.to_string();
        ensure!(said.contains("fileName"), "'{name}': {said}");
    }
    let both = json!({"source": {"directory": {"fileName": FILE}, "configMap": {"name": "web"}}});
    for spec in [both, json!({"source": {}})] {
        let said = env.namespace.apply(plugin_object("web", spec)).await.err().context("not one source")?.to_string();
        ensure!(said.contains("name one source: configMap, oci or directory"), "{said}");
    }
    let outside = artifacts::plugin("app-service")?;
    symlink(&outside, files.path().join(FILE))?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    reported(env, "SourceInvalid", "leads out of the directory").await?;
    fs::remove_file(files.path().join(FILE))?;
    fs::create_dir(files.path().join(FILE))?;
    reported(env, "FileUnreadable", "no file").await?;
    fs::remove_dir(files.path().join(FILE))?;
    put(&files, FILE, &plugin()?)?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

async fn a_host_without_the_directory_says_what_to_do(env: &mut TestEnv) -> Result<()> {
    crate::plugin_objects::start(env).await?;
    env.namespace.apply(plugin_object("web", source(FILE))).await?;
    reported(env, "DirectoryMissing", "--plugin-files DIR").await?;
    env.host.stop().await?;

    // Each file of --plugins is loaded by itself.
    let plugins = env.host.plugins();
    let ended = crate::command::pilothouse(with(env, &plugins, &plugins)).await?;
    ended.failed_with(&["--plugins and --plugin-files name one directory", "another directory"])?;
    let nowhere = plugins.join("nowhere");
    let ended = crate::command::pilothouse(with(env, &plugins, &nowhere)).await?;
    ended.failed_with(&["nowhere' cannot be used", "name another with --plugin-files DIR"])
}

/// The arguments of a host with these directories.
fn with(env: &TestEnv, plugins: &Path, files: &Path) -> Vec<String> {
    let setup = env.namespace.setup();
    let named = [
        ("--plugins", plugins),
        ("--plugin-files", files),
        ("--kubeconfig", &setup.kubeconfig),
        ("--cache-dir", &setup.cache),
    ]
    .map(|(flag, path)| format!("{flag}={}", path.display()));
    let addresses = ["--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"].map(str::to_owned);
    std::iter::once("run".to_owned()).chain(arguments(env, &[])).chain(named).chain(addresses).collect()
}

/// Starts a host with a directory, which is empty.
async fn start(env: &mut TestEnv) -> Result<TempDir> {
    install_crds(env).await?;
    let files = tempfile::tempdir()?;
    let arguments = arguments(env, &["--plugin-files", &files.path().to_string_lossy()]);
    env.set_up_host(|setup| setup.arguments = arguments)?;
    env.host.resume().await?;
    env.host.ready().await?;
    Ok(files)
}

/// Puts a file into the directory in one step, in the place of another one.
fn put(files: &TempDir, name: &str, bytes: &[u8]) -> Result<()> {
    let unfinished: PathBuf = files.path().join(format!(".{name}.unfinished"));
    fs::write(&unfinished, bytes)?;
    Ok(fs::rename(unfinished, files.path().join(name))?)
}

fn source(name: &str) -> Value {
    json!({"source": {"directory": {"fileName": name}}})
}

fn shows(version: &str) -> impl Fn(&Value) -> bool {
    move |object| object["status"]["version"] == version && is_ready(object)
}

async fn is_next(env: &TestEnv, name: &str) -> Result<()> {
    let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
    env.namespace.until("Deployment", name, "to have the marks of the new version", is_next).await.map(drop)
}

/// The names of the plugins at work.
async fn loaded(env: &TestEnv) -> Result<Vec<String>> {
    let metrics = env.metrics().await?;
    let known = ["app-service", "misbehaver"];
    let is_loaded = |name: &&str| metrics.has("pilothouse_plugin_loaded", &[("plugin", name)]);
    Ok(known.into_iter().filter(is_loaded).map(str::to_owned).collect())
}
