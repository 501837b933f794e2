//! Outdated caches: changes that the host learns late or never.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{change, deletes, ready, returns_to, start, state, stays_quiet};
use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app, sextet},
};

/// The delay of a watch.
const LATE: Duration = Duration::from_secs(2);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_that_change_unnoticed_are_left_alone,
        children_that_are_deleted_unnoticed_are_created_again,
        children_of_another_object_of_the_same_name_are_told_apart,
        late_events_do_not_bring_a_deleted_child_back_into_the_cache,
        a_child_that_is_gone_already_is_deleted_once,
        an_object_that_is_deleted_unnoticed_gets_no_new_children,
        an_edit_in_the_answer_to_an_own_write_is_noticed,
        an_edit_that_is_read_before_a_child_is_created_again_is_noticed,
        late_watches_lead_to_the_same_result,
    );
}

/// While the watch of ConfigMaps delivers nothing, one of them is deleted, the other one is changed, and the object changes and
/// changes back.
async fn children_that_change_unnoticed_are_left_alone(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    proxy.watches().freeze("configmaps");
    env.namespace.delete("ConfigMap", "web-a").await?;
    env.namespace.patch("ConfigMap", "web-b", json!({"data": {"tempo": "by hand"}})).await?;
    change(env, 81).await?;
    change(env, 80).await?;
    proxy.watches().thaw();
    returns_to(env, &before).await?;
    let writes = env.host_writes().await?;
    ensure!(deletes(env).await?.is_empty(), "it deleted: {writes:#?}");
    let made = writes.iter().filter(|write| write.starts_with("patch configmaps/ web-a") && write.ends_with("201"));
    ensure!(made.count() == 2, "it was not made once before and once after: {writes:#?}");
    stays_quiet(env, &proxy).await
}

/// While the watch of ConfigMaps delivers nothing, one of them is deleted and the data of the object changes: the host updates a
/// ConfigMap that does not exist.
async fn children_that_are_deleted_unnoticed_are_created_again(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    proxy.watches().freeze("configmaps");
    env.namespace.delete("ConfigMap", "web-a").await?;
    proxy.writes().count();
    env.namespace.patch("Sextet", "web", json!({"spec": {"data": {"tempo": "presto"}}})).await?;
    ready(env).await?;
    for name in ["web-a", "web-b"] {
        let child = env.namespace.get("ConfigMap", name).await?.context("it is gone")?;
        ensure!(child["data"] == json!({"tempo": "presto"}), "{child}");
    }
    let writes = proxy.writes().seen();
    ensure!(writes.len() <= 5, "not two updates, a create and a status or two: {writes:#?}");
    proxy.watches().thaw();
    stays_quiet(env, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote again: {:#?}", proxy.writes().seen());
    Ok(())
}

/// While the watch of ConfigMaps delivers nothing, the object is replaced by another one of the same name. That has children of its
/// own, and late events about the old ones must be ignored.
async fn children_of_another_object_of_the_same_name_are_told_apart(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    proxy.watches().freeze("configmaps");
    env.touch("ConfigMap", "web-a", "before its end").await?;
    env.namespace.delete("Sextet", "web").await?;
    env.namespace.until_gone("Sextet", "web").await?;
    env.namespace.apply(sextet("web")).await?;
    returns_to(env, &before).await?;
    let writes = proxy.writes().seen();
    proxy.watches().thaw();
    stays_quiet(env, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote: {:#?}", proxy.writes().seen());
    returns_to(env, &before).await
}

/// While the watch of ConfigMaps delivers nothing, the host deletes one that somebody has touched before.
async fn late_events_do_not_bring_a_deleted_child_back_into_the_cache(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    proxy.watches().freeze("configmaps");
    env.touch("ConfigMap", "web-b", "before its end").await?;
    proxy.writes().count();
    env.namespace.patch("Sextet", "web", json!({"spec": {"without": ["ConfigMap/b"]}})).await?;
    ready(env).await?;
    let writes = proxy.writes().seen();
    ensure!(writes.len() == 2, "not a delete and a status: {writes:#?}");
    proxy.watches().thaw();
    stays_quiet(env, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote again: {:#?}", proxy.writes().seen());
    Ok(())
}

/// While the watch of ConfigMaps delivers nothing, somebody deletes one that the object does not want afterwards.
async fn a_child_that_is_gone_already_is_deleted_once(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    proxy.watches().freeze("configmaps");
    env.namespace.delete("ConfigMap", "web-b").await?;
    proxy.writes().count();
    env.namespace.patch("Sextet", "web", json!({"spec": {"without": ["ConfigMap/b"]}})).await?;
    ready(env).await?;
    let writes = proxy.writes().seen();
    ensure!(writes.len() == 2, "not a delete and a status: {writes:#?}");
    Ok(())
}

/// While the watch of the objects delivers nothing, an object is deleted, and garbage collection deletes its children.
async fn an_object_that_is_deleted_unnoticed_gets_no_new_children(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start_with_web().await?;
    proxy.watches().freeze("appservices");
    proxy.writes().count();
    env.namespace.delete("AppService", "web").await?;
    for kind in ["Deployment", "Service"] {
        env.namespace.until_gone(kind, "web").await?;
    }
    let app = env.namespace.apply(app("web")).await?;
    proxy.watches().thaw();
    env.at_rest("web").await?;
    for kind in ["Deployment", "Service"] {
        let child = env.namespace.get(kind, "web").await?.context("it is gone")?;
        ensure!(
            child["metadata"]["ownerReferences"][0]["uid"] == app["metadata"]["uid"],
            "not of the new object: {child}"
        );
    }
    let writes = proxy.writes().seen();
    for made in ["PATCH deployments web", "PATCH services web"] {
        let times = writes.iter().filter(|write| *write == made).count();
        ensure!(times == 1, "{made} came {times} times, not once for the new object: {writes:#?}");
    }
    Ok(())
}

/// While the watch of the objects delivers nothing, a spec is edited and the host writes the status. The response contains the
/// edit, so the later watch event is no change.
async fn an_edit_in_the_answer_to_an_own_write_is_noticed(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    proxy.watches().freeze("sextets");
    env.namespace.patch("Sextet", "web", json!({"spec": {"port": 81}})).await?;
    env.namespace.patch("ConfigMap", "web-a", json!({"data": {"theirs": "to be reported"}})).await?;
    let is_reported = |web: &Value| web["status"]["seen"]["web-a"]["theirs"] == "to be reported";
    env.namespace.until("Sextet", "web", "to tell of what was added", is_reported).await?;
    proxy.watches().thaw();
    let is_done = |service: &Value| service["spec"]["ports"][0]["port"] == 81;
    env.namespace.until("Service", "web-s", "to have the new port", is_done).await?;
    ready(env).await?;
    stays_quiet(env, &proxy).await
}

/// While the watch of Sextets delivers nothing, the object is edited and one of its children is deleted. Before the host creates
/// the child again, it reads the object, and so learns of the edit before the watch event.
async fn an_edit_that_is_read_before_a_child_is_created_again_is_noticed(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    proxy.watches().freeze("sextets");
    env.namespace.patch("Sextet", "web", json!({"spec": {"port": 81}})).await?;
    env.namespace.delete("ConfigMap", "web-a").await?;
    let is_done = |service: &Value| service["spec"]["ports"][0]["port"] == 81;
    env.namespace.until("Service", "web-s", "to have the new port", is_done).await?;
    proxy.watches().thaw();
    ready(env).await?;
    stays_quiet(env, &proxy).await
}

/// Every event is two seconds late while the object changes, children are changed and deleted, and another object takes its name.
async fn late_watches_lead_to_the_same_result(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let before = state(env).await?;
    proxy.watches().delay(LATE);
    for port in [81, 82, 80] {
        env.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
        env.namespace.delete("ConfigMap", "web-a").await?;
        env.namespace.patch("Secret", "web-b", json!({"data": {"secret": "eA=="}})).await?;
        change(env, port).await?;
        env.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    ensure!(deletes(env).await?.is_empty(), "it deleted: {:#?}", env.host_writes().await?);
    env.namespace.delete("Sextet", "web").await?;
    env.namespace.until_gone("Sextet", "web").await?;
    env.namespace.apply(sextet("web")).await?;
    returns_to(env, &before).await?;
    proxy.watches().delay(Duration::ZERO);
    stays_quiet(env, &proxy).await?;
    ensure!(
        deletes(env).await?.len() == 6,
        "not the six children of the first object: {:#?}",
        env.host_writes().await?
    );
    returns_to(env, &before).await
}
