//! Caches that are behind: what happens meanwhile, and what is heard of it later.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{change, deletes, ready, returns_to, start, state, stays_quiet};
use crate::{
    scene::{Scene, app, sextet},
    suite::{Suite, tests},
};

/// How late a watch is.
const LATE: Duration = Duration::from_secs(2);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_that_are_not_seen_to_change_are_left_alone,
        children_that_are_not_seen_to_go_are_made_anew,
        children_of_another_object_of_the_same_name_are_told_apart,
        a_child_that_was_deleted_does_not_come_back_to_mind,
        a_child_that_is_gone_already_is_deleted_once,
        an_object_that_is_not_seen_to_go_gets_no_new_children,
        an_edit_that_comes_back_with_an_own_write_is_seen,
        everything_late_comes_to_the_same_end,
    );
}

/// While the ConfigMaps' watch brings nothing, one of them is deleted, the other changed, and the object changes and changes
/// back.
async fn children_that_are_not_seen_to_change_are_left_alone(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    let before = state(scene).await?;
    proxy.watches().freeze("configmaps");
    scene.namespace.delete("ConfigMap", "web-a").await?;
    scene.namespace.patch("ConfigMap", "web-b", json!({"data": {"tempo": "by hand"}})).await?;
    change(scene, 81).await?;
    change(scene, 80).await?;
    proxy.watches().thaw();
    returns_to(scene, &before).await?;
    let writes = scene.host_writes().await?;
    ensure!(deletes(scene).await?.is_empty(), "it deleted: {writes:#?}");
    let made = writes.iter().filter(|write| write.starts_with("patch configmaps/ web-a") && write.ends_with("201"));
    ensure!(made.count() == 2, "it was not made once before and once after: {writes:#?}");
    stays_quiet(scene, &proxy).await
}

/// While the ConfigMaps' watch brings nothing, one of them is deleted, and the object wants other data: the host writes to a
/// ConfigMap that is no more.
async fn children_that_are_not_seen_to_go_are_made_anew(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    proxy.watches().freeze("configmaps");
    scene.namespace.delete("ConfigMap", "web-a").await?;
    proxy.writes().count();
    scene.namespace.patch("Sextet", "web", json!({"spec": {"data": {"tempo": "presto"}}})).await?;
    ready(scene).await?;
    for name in ["web-a", "web-b"] {
        let child = scene.namespace.get("ConfigMap", name).await?.context("it is gone")?;
        ensure!(child["data"] == json!({"tempo": "presto"}), "{child}");
    }
    let writes = proxy.writes().seen();
    ensure!(writes.len() <= 5, "not two updates, a create and a status or two: {writes:#?}");
    proxy.watches().thaw();
    stays_quiet(scene, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote again: {:#?}", proxy.writes().seen());
    Ok(())
}

/// While the ConfigMaps' watch brings nothing, the object goes and another one of its name comes. Its children are others,
/// and what is then heard of the old ones is no news.
async fn children_of_another_object_of_the_same_name_are_told_apart(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    let before = state(scene).await?;
    proxy.watches().freeze("configmaps");
    scene.touch("ConfigMap", "web-a", "before its end").await?;
    scene.namespace.delete("Sextet", "web").await?;
    scene.namespace.until_gone("Sextet", "web").await?;
    scene.namespace.apply(sextet("web")).await?;
    returns_to(scene, &before).await?;
    let writes = proxy.writes().seen();
    proxy.watches().thaw();
    stays_quiet(scene, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote: {:#?}", proxy.writes().seen());
    returns_to(scene, &before).await
}

/// While the ConfigMaps' watch brings nothing, the host deletes one that somebody has touched before.
async fn a_child_that_was_deleted_does_not_come_back_to_mind(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    proxy.watches().freeze("configmaps");
    scene.touch("ConfigMap", "web-b", "before its end").await?;
    proxy.writes().count();
    scene.namespace.patch("Sextet", "web", json!({"spec": {"without": ["ConfigMap/b"]}})).await?;
    ready(scene).await?;
    let writes = proxy.writes().seen();
    ensure!(writes.len() == 2, "not a delete and a status: {writes:#?}");
    proxy.watches().thaw();
    stays_quiet(scene, &proxy).await?;
    ensure!(proxy.writes().seen() == writes, "it wrote again: {:#?}", proxy.writes().seen());
    Ok(())
}

/// While the ConfigMaps' watch brings nothing, one of them is deleted that the object then no longer wants.
async fn a_child_that_is_gone_already_is_deleted_once(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    proxy.watches().freeze("configmaps");
    scene.namespace.delete("ConfigMap", "web-b").await?;
    proxy.writes().count();
    scene.namespace.patch("Sextet", "web", json!({"spec": {"without": ["ConfigMap/b"]}})).await?;
    ready(scene).await?;
    let writes = proxy.writes().seen();
    ensure!(writes.len() == 2, "not a delete and a status: {writes:#?}");
    Ok(())
}

/// While the objects' watch brings nothing, an object goes, and garbage collection takes its children.
async fn an_object_that_is_not_seen_to_go_gets_no_new_children(scene: &mut Scene) -> Result<()> {
    let proxy = scene.behind_proxy(&scene.upstream().await?).await?;
    scene.start_with_web().await?;
    proxy.watches().freeze("appservices");
    proxy.writes().count();
    scene.namespace.delete("AppService", "web").await?;
    for kind in ["Deployment", "Service"] {
        scene.namespace.until_gone(kind, "web").await?;
    }
    let app = scene.namespace.apply(app("web")).await?;
    proxy.watches().thaw();
    scene.at_rest("web").await?;
    for kind in ["Deployment", "Service"] {
        let child = scene.namespace.get(kind, "web").await?.context("it is gone")?;
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

/// While the objects' watch brings nothing, a spec is edited and the host writes the status: the answer has the edit in it,
/// and what the watch brings later is old news.
async fn an_edit_that_comes_back_with_an_own_write_is_seen(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    proxy.watches().freeze("sextets");
    scene.namespace.patch("Sextet", "web", json!({"spec": {"port": 81}})).await?;
    scene.namespace.patch("ConfigMap", "web-a", json!({"data": {"theirs": "to be told"}})).await?;
    let is_told = |web: &Value| web["status"]["seen"]["web-a"]["theirs"] == "to be told";
    scene.namespace.until("Sextet", "web", "to tell of what was added", is_told).await?;
    proxy.watches().thaw();
    let is_done = |service: &Value| service["spec"]["ports"][0]["port"] == 81;
    scene.namespace.until("Service", "web-s", "to have the new port", is_done).await?;
    ready(scene).await?;
    stays_quiet(scene, &proxy).await
}

/// Every event comes two seconds late, while the object changes, children change and go, and another object takes its name.
async fn everything_late_comes_to_the_same_end(scene: &mut Scene) -> Result<()> {
    let proxy = start(scene).await?;
    let before = state(scene).await?;
    proxy.watches().delay(LATE);
    for port in [81, 82, 80] {
        scene.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
        scene.namespace.delete("ConfigMap", "web-a").await?;
        scene.namespace.patch("Secret", "web-b", json!({"data": {"secret": "eA=="}})).await?;
        change(scene, port).await?;
        scene.namespace.until("ConfigMap", "web-a", "to be made anew", |_| true).await?;
    }
    ensure!(deletes(scene).await?.is_empty(), "it deleted: {:#?}", scene.host_writes().await?);
    scene.namespace.delete("Sextet", "web").await?;
    scene.namespace.until_gone("Sextet", "web").await?;
    scene.namespace.apply(sextet("web")).await?;
    returns_to(scene, &before).await?;
    proxy.watches().delay(Duration::ZERO);
    stays_quiet(scene, &proxy).await?;
    ensure!(
        deletes(scene).await?.len() == 6,
        "not the six children of the first object: {:#?}",
        scene.host_writes().await?
    );
    returns_to(scene, &before).await
}
