//! Lookups that the manifest confines to some labels or to metadata: the host asks for no more, and keeps no more in its memory.

use std::{fs::File, ops::Range, os::unix::fs::FileExt};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::{repacked, with_manifest},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, scripted},
};

/// The letters of a word that is looked for.
const WORD: usize = 24;

/// The bytes of a page of memory, and of what the system says of each.
const PAGE: u64 = 4096;
const ENTRY: u64 = 8;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        what_a_lookup_is_confined_from_is_not_in_the_hosts_memory,
        a_secret_that_nobody_looks_up_is_not_in_the_hosts_memory,
        an_object_that_gets_or_loses_the_label_wakes_who_looked_it_up,
        each_plugin_is_confined_to_its_own_labels,
        the_api_server_is_asked_for_no_more,
        a_label_selector_that_cannot_be_read_refuses_the_plugin,
    );
}

/// Secrets of others, and the contents of what is looked up for its metadata alone. What is looked up is there, so the search finds.
async fn what_a_lookup_is_confined_from_is_not_in_the_hosts_memory(env: &mut TestEnv) -> Result<()> {
    let (looked_up, of_others, contents, metadata) = (word(), word(), word(), word());
    let secret = |name: &str, labels: Value, data: &str| {
        let metadata = json!({"name": name, "labels": labels});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "immutable": true, "stringData": {"key": data}})
    };
    // The API server shows the data of Secrets in base64.
    env.namespace.apply(secret("ours", json!({"shared": "yes"}), "x")).await?;
    env.namespace.patch("Secret", "ours", json!({"metadata": {"annotations": {"word": &looked_up}}})).await?;
    env.namespace.apply(secret("theirs", json!({}), "x")).await?;
    env.namespace.patch("Secret", "theirs", json!({"metadata": {"annotations": {"word": &of_others}}})).await?;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "annotations": {"word": &metadata}},
        "data": {"key": &contents},
    });
    env.namespace.apply(map).await?;
    start(env).await?;
    let lookups = json!([{"kind": "Secret", "name": "ours"}, {"kind": "ConfigMap", "name": "map"}]);
    let status = json!({
        "phase": {"$found": "ours", "at": "/data/key"},
        "note": {"$found": "map", "at": "/data/key"},
    });
    env.namespace
        .apply(scripted("web", json!({"lookups": lookups, "response": {"children": [], "status": status}})))
        .await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["phase"] == "eA==", "the Secret was not found whole: {object}");
    ensure!(object["status"]["note"].is_null(), "the plugin is shown more than the metadata: {object}");

    let pid = env.host.pid()?;
    let is_there = |word: &str| is_in_memory(pid, word.as_bytes());
    ensure!(is_there(&looked_up)? && is_there(&metadata)?, "the search does not find what the host has");
    ensure!(!is_there(&of_others)?, "a Secret that nobody may look up is in the host's memory");
    ensure!(
        !is_there(&contents)?,
        "the contents of a ConfigMap of which only the metadata is looked up are in its memory"
    );
    Ok(())
}

/// The manifest confines nothing: what counts is what objects look up, by a name or by labels.
async fn a_secret_that_nobody_looks_up_is_not_in_the_hosts_memory(env: &mut TestEnv) -> Result<()> {
    let (named, selected, of_others, changed) = (word(), word(), word(), word());
    for (name, data) in [("named", &named), ("selected", &selected), ("others", &of_others)] {
        let metadata = json!({"name": name, "labels": {"app": name}});
        env.namespace
            .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": data}}))
            .await?;
    }
    env.start(&["scripted"]).await?;
    let finds = |name: &str, lookup: Value| {
        let status = json!({"phase": {"$found": "it", "at": "/data/key"}, "note": {"$names": "it"}});
        scripted(name, json!({"lookups": [lookup], "response": {"children": [], "status": status}}))
    };
    let pid = env.host.pid()?;
    let is_there = |word: &str| is_in_memory(pid, word.as_bytes());
    env.namespace.apply(finds("by-name", json!({"kind": "Secret", "name": "named", "as": "it"}))).await?;
    env.namespace.until("Scripted", "by-name", "to have the Secret", |it| it["status"]["phase"] == *named).await?;
    ensure!(is_there(&named)?, "the search does not find what the host has");
    ensure!(
        !is_there(&selected)? && !is_there(&of_others)?,
        "a Secret that nobody has looked up is in the host's memory"
    );

    env.namespace.apply(finds("by-label", json!({"kind": "Secret", "selector": "app=selected", "as": "it"}))).await?;
    let found = format!("{}/selected", env.namespace.name);
    env.namespace.until("Scripted", "by-label", "to have found one", |it| it["status"]["note"] == *found).await?;
    ensure!(is_there(&selected)? && !is_there(&of_others)?, "something else was read than what the labels select");

    env.namespace.patch("Secret", "named", json!({"data": {"key": &changed}})).await?;
    env.namespace.until("Scripted", "by-name", "to have what is new", |it| it["status"]["phase"] == *changed).await?;
    env.namespace.delete("Secret", "named").await?;
    env.namespace.until("Scripted", "by-name", "to find nothing", |it| it["status"]["phase"].is_null()).await?;
    ensure!(!is_there(&of_others)?, "a Secret that nobody has looked up is in the host's memory");
    Ok(())
}

/// A word that is nowhere else, and is valid base64. No letter comes twice: where an object has what another text has as well, the host keeps it
/// once, so the word would not be in one piece.
fn word() -> String {
    let mut letters: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    fastrand::shuffle(&mut letters);
    letters.into_iter().take(WORD).collect()
}

async fn an_object_that_gets_or_loses_the_label_wakes_who_looked_it_up(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ours"}, "stringData": {"key": "x"}});
    env.namespace.apply(secret).await?;
    let lookups = json!([{"kind": "Secret", "selector": "", "as": "all"}]);
    let response = json!({"children": [], "status": {"note": {"$names": "all"}}});
    env.namespace.apply(scripted("web", json!({"lookups": lookups, "response": response}))).await?;
    let found = format!("{}/ours", env.namespace.name);
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    for (label, expected) in [("yes", &*found), ("no", ""), ("yes", &*found)] {
        env.namespace.patch("Secret", "ours", json!({"metadata": {"labels": {"shared": label}}})).await?;
        let sees = |object: &Value| object["status"]["note"] == expected;
        env.namespace.until("Scripted", "web", "to see which Secrets it may look up", sees).await?;
    }
    Ok(())
}

/// Two plugins look up the same kind: the host watches it once for each of them, and neither finds what only the other one may.
async fn each_plugin_is_confined_to_its_own_labels(env: &mut TestEnv) -> Result<()> {
    for (name, label) in [("first", "shared"), ("second", "private"), ("both", "shared"), ("neither", "other")] {
        let metadata = json!({"name": name, "labels": {label: "yes"}});
        env.namespace.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).await?;
    }
    env.namespace.patch("Secret", "both", json!({"metadata": {"labels": {"private": "yes"}}})).await?;
    let second = repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["name"] = "second".into();
        manifest["reconciles"]["kind"] = "Farewell".into();
        manifest["children"] = json!([]);
        manifest["lookups"] = json!([{"apiVersion": "v1", "kind": "Secret", "labelSelector": "private=yes"}]);
    })
    .await?;
    env.host.install(second.path(), "second.wasm")?;
    start(env).await?;
    let lookups = json!([{"kind": "Secret", "selector": "", "as": "all"}]);
    let response = json!({"children": [], "status": {"note": {"$names": "all"}}});
    let spec = json!({"lookups": lookups, "response": response});
    env.namespace.apply(scripted("web", spec.clone())).await?;
    let metadata = json!({"name": "web"});
    let other = json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "Farewell", "metadata": metadata, "spec": spec});
    env.namespace.apply(other).await?;
    let namespace = env.namespace.name.clone();
    let finds = async |kind: &str, names: &[&str]| {
        let expected = names.iter().map(|name| format!("{namespace}/{name}")).collect::<Vec<_>>().join(",");
        let what = format!("to find {expected}");
        env.namespace.until(kind, "web", &what, |object| object["status"]["note"] == *expected).await.map(drop)
    };
    finds("Scripted", &["both", "first"]).await?;
    finds("Farewell", &["both", "second"]).await?;
    // What it wrote itself may be about to reconcile it once more.
    env.metrics_at_rest().await?;
    let before = env.reconciles("scripted").await?;
    env.namespace.patch("Secret", "neither", json!({"metadata": {"labels": {"private": "yes"}}})).await?;
    finds("Farewell", &["both", "neither", "second"]).await?;
    let woken = env.reconciles("scripted").await? - before;
    ensure!(woken == 0.0, "what only the other plugin may look up woke this one {woken} times");
    Ok(())
}

/// Nothing but metadata where the manifest says so, and of each kind only what one of the plugins may look up.
async fn the_api_server_is_asked_for_no_more(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    start(env).await?;
    let watches = proxy.watches();
    // The host is ready when it has the lists: the watches may open after that.
    eventually(
        PATIENCE,
        "the metadata of Secrets with the label and of ConfigMaps to be watched, and nothing else",
        async || {
            let open = (watches.open("secrets"), watches.open("configmaps").len());
            let for_metadata = (watches.open_for_metadata("secrets"), watches.open_for_metadata("configmaps"));
            let is_no_more = open == (vec!["shared%3Dyes".to_owned()], 1) && for_metadata == (1, 1);
            Ok(Look::of(is_no_more, (open, for_metadata)))
        },
    )
    .await?;
    Ok(())
}

async fn a_label_selector_that_cannot_be_read_refuses_the_plugin(env: &mut TestEnv) -> Result<()> {
    let plugin = with_manifest(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] = json!([]);
        manifest["lookups"] = json!([{"apiVersion": "v1", "kind": "Secret", "labelSelector": "shared in (yes"}]);
    })?;
    env.host.install(plugin.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.logged("the plugin was not loaded").await?;
    let log = env.host.log();
    let words = ["`lookups`", "of `v1 Secret`", "'shared in (yes'", "malformed"];
    ensure!(words.iter().all(|word| log.contains(word)), "the log does not say what is wrong: {log}");
    Ok(())
}

/// Starts a host with a plugin that may look up Secrets with a label, and of ConfigMaps the metadata.
async fn start(env: &mut TestEnv) -> Result<()> {
    let plugin = repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] = json!([]);
        manifest["lookups"] = json!([
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": "shared=yes"},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadataOnly": true},
        ]);
    })
    .await?;
    env.host.install(plugin.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.ready().await
}

/// Whether these bytes are anywhere in the memory that a process can write.
fn is_in_memory(pid: u32, wanted: &[u8]) -> Result<bool> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let (memory, pages) = (File::open(format!("/proc/{pid}/mem"))?, File::open(format!("/proc/{pid}/pagemap"))?);
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"))) {
        let (first, last) = line.split(' ').next().and_then(|range| range.split_once('-')).context("no range")?;
        let (first, last) = (u64::from_str_radix(first, 16)?, u64::from_str_radix(last, 16)?);
        if present(&pages, first, last)?.into_iter().any(|run| holds(&memory, run, wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The parts of a mapping that are in memory: most of what the host reserves never is.
fn present(pages: &File, first: u64, last: u64) -> Result<Vec<Range<u64>>> {
    let mut entries = vec![0; usize::try_from((last - first) / PAGE * ENTRY)?];
    pages.read_exact_at(&mut entries, first / PAGE * ENTRY)?;
    let mut runs: Vec<Range<u64>> = Vec::new();
    // The highest bit of the last byte.
    let is_present = entries.chunks(ENTRY as usize).map(|entry| entry.last().is_some_and(|byte| byte & 0x80 != 0));
    for page in
        is_present.enumerate().filter(|(_, is_present)| *is_present).map(|(number, _)| first + number as u64 * PAGE)
    {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += PAGE,
            _ => runs.push(page..page + PAGE),
        }
    }
    Ok(runs)
}

fn holds(memory: &File, run: Range<u64>, wanted: &[u8]) -> bool {
    let mut bytes = vec![0; (run.end - run.start) as usize];
    // What went since holds nothing.
    if memory.read_exact_at(&mut bytes, run.start).is_err() {
        return false;
    }
    let mut rest = &*bytes;
    while let Some(place) = rest.iter().position(|byte| Some(byte) == wanted.first()) {
        if rest[place..].starts_with(wanted) {
            return true;
        }
        rest = &rest[place + 1..];
    }
    false
}
