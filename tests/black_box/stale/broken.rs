//! Watches that are cut, refused, silent or wrong: they are restarted, and no change is missed.

use anyhow::{Context, Result, ensure};
use axum::http::StatusCode;
use pilothouse_tests::{
    cluster::{PATIENCE, revision},
    proxy::{Expiry, Moment, Proxy},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{begin, change, deletes, ready, returns_to, start, state, stays_quiet};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        watches_that_are_cut_and_refused_go_on,
        a_watch_from_a_compacted_revision_is_replaced_by_a_list,
        a_watch_with_an_expired_error_in_its_stream_is_restarted,
        a_silent_watch_is_restarted,
        a_child_that_is_deleted_during_a_write_is_created_again,
        malformed_objects_end_no_watch,
    );
}

async fn watches_that_are_cut_and_refused_go_on(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    for (port, refusal) in
        [(81, None), (82, Some(StatusCode::SERVICE_UNAVAILABLE)), (80, Some(StatusCode::TOO_MANY_REQUESTS))]
    {
        if let Some(status) = refusal {
            proxy.watches().refuse(status);
        }
        proxy.watches().cut();
        env.namespace.delete("ConfigMap", "web-a").await?;
        env.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
        proxy.watches().admit();
        change(env, port).await?;
        env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    returns_to(env, &before).await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    stays_quiet(env, &proxy).await
}

/// The API server has compacted the earlier revisions. It says so in an event or in its answer to the watch. What was deleted in
/// the meantime is noticed.
async fn a_watch_from_a_compacted_revision_is_replaced_by_a_list(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    for (port, expiry) in [(81, Expiry::Event), (80, Expiry::Answer)] {
        let touched = env.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
        env.namespace.delete("ConfigMap", "web-a").await?;
        proxy.watches().forget_before(revision(&touched)? + 1, expiry);
        proxy.watches().cut();
        change(env, port).await?;
        env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    returns_to(env, &before).await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    stays_quiet(env, &proxy).await
}

/// As from an API server that has lost its own connection or restarts.
async fn a_watch_with_an_expired_error_in_its_stream_is_restarted(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    for (port, status) in [(81, StatusCode::GONE), (80, StatusCode::INTERNAL_SERVER_ERROR)] {
        for resource in ["sextets", "configmaps"] {
            proxy.watches().say_failure(resource, status);
        }
        change(env, port).await?;
        env.namespace.delete("ConfigMap", "web-a").await?;
        env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    returns_to(env, &before).await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    stays_quiet(env, &proxy).await
}

/// The stream stays open and delivers nothing, not even bookmarks.
async fn a_silent_watch_is_restarted(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy_with(&env.upstream().await?, &["--watch-renewal", "1s"]).await?;
    begin(env).await?;
    for resource in ["sextets", "configmaps"] {
        proxy.watches().stall(resource);
    }
    env.namespace.delete("ConfigMap", "web-a").await?;
    env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    change(env, 81).await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    stays_quiet(env, &proxy).await
}

/// Objects whose fields have wrong types, and values that are no objects.
async fn malformed_objects_end_no_watch(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    let object = |name: &str, spec: Value| {
        let metadata = json!({
            "name": name, "namespace": env.namespace.name, "uid": "odd", "resourceVersion": "1000000000",
            "labels": 5, "annotations": [], "ownerReferences": {}, "finalizers": "none", "generation": "first",
        });
        json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "Sextet", "metadata": metadata, "spec": spec})
    };
    for (port, odd) in [
        (81, object("odd", json!({"data": 5}))),
        (82, object("odd", json!("nothing"))),
        (83, json!({"metadata": {"name": 5, "namespace": [], "resourceVersion": {}}})),
        (84, json!({"metadata": "nothing"})),
        (80, json!("nothing")),
    ] {
        for resource in ["sextets", "configmaps"] {
            proxy.watches().say(resource, "ADDED", &odd);
        }
        change(env, port).await?;
        env.namespace.delete("ConfigMap", "web-a").await?;
        env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    returns_to(env, &before).await
}

/// The host writes a child, and somebody deletes it. The watch lists again in the meantime, so no event tells of the deletion. Only
/// then does the host receive the response to its write.
async fn a_child_that_is_deleted_during_a_write_is_created_again(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy_with(&env.upstream().await?, &["--watch-renewal", "2s"]).await?;
    begin(env).await?;
    proxy.watches().freeze("configmaps");
    proxy.writes().hold(2, Moment::After);
    env.namespace.patch("Sextet", "web", json!({"spec": {"data": {"tempo": "presto"}}})).await?;
    proxy.writes().until_held().await?;
    proxy.watches().refuse(StatusCode::SERVICE_UNAVAILABLE);
    proxy.watches().cut();
    watches_are_open(&proxy, false).await?;
    let written = proxy.writes().seen().pop().context("nothing was written")?;
    let name = written.strip_prefix("PATCH configmaps ").with_context(|| format!("not a ConfigMap: {written}"))?;
    let last = env.namespace.get("ConfigMap", name).await?.context("it is not there")?;
    env.namespace.delete("ConfigMap", name).await?;
    proxy.watches().forget_before(revision(&last)? + 1, Expiry::Answer);
    proxy.watches().thaw();
    proxy.watches().admit();
    watches_are_open(&proxy, true).await?;
    proxy.writes().release_answer()?;
    let is_new = |child: &Value| child["data"] == json!({"tempo": "presto"});
    env.namespace.until("ConfigMap", name, "to be made anew", is_new).await?;
    ready(env).await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    stays_quiet(env, &proxy).await
}

async fn watches_are_open(proxy: &Proxy, are_open: bool) -> Result<()> {
    let what = if are_open { "the ConfigMaps to be watched" } else { "the ConfigMaps' watch to be cut" };
    eventually(PATIENCE, what, async || {
        let open = proxy.watches().open("configmaps");
        Ok(Look::of(open.is_empty() != are_open, open))
    })
    .await
}
