//! Deleting objects: the children go with them by garbage collection, and the host makes no new ones meanwhile.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::Value;

use crate::{
    scene::{Scene, app},
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_go_with_their_object,
        children_go_before_their_object,
        orphaned_children_stay_as_they_are,
        an_object_of_the_same_name_gets_children_of_its_own,
        children_of_two_objects_are_told_apart,
    );
}

/// A19, F7: as `kubectl delete` does it.
async fn children_go_with_their_object(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let before = scene.host_writes().await?;
    delete(scene, PropagationPolicy::Background).await?;
    for kind in ["Deployment", "Service"] {
        scene.namespace.until_gone(kind, "web").await?;
    }
    stayed_quiet(scene, &before).await
}

/// As `kubectl delete --cascade=foreground` does it: the object stays until its children are gone.
async fn children_go_before_their_object(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let before = scene.host_writes().await?;
    delete(scene, PropagationPolicy::Foreground).await?;
    for kind in ["AppService", "Deployment", "Service"] {
        scene.namespace.until_gone(kind, "web").await?;
    }
    stayed_quiet(scene, &before).await
}

/// As `kubectl delete --cascade=orphan` does it: garbage collection takes the owner references off first, and the host
/// must not put them back.
async fn orphaned_children_stay_as_they_are(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let before = scene.host_writes().await?;
    delete(scene, PropagationPolicy::Orphan).await?;
    scene.namespace.until_gone("AppService", "web").await?;
    for kind in ["Deployment", "Service"] {
        let orphan = |child: &Value| child["metadata"].get("ownerReferences").is_none();
        scene.namespace.until(kind, "web", "to be without an owner", orphan).await?;
    }
    stayed_quiet(scene, &before).await?;
    for kind in ["Deployment", "Service"] {
        ensure!(scene.namespace.get(kind, "web").await?.is_some(), "the {kind} is gone");
    }
    Ok(())
}

/// The old children have the right name but belong to an object that is no more.
async fn an_object_of_the_same_name_gets_children_of_its_own(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    delete(scene, PropagationPolicy::Background).await?;
    let app = scene.namespace.apply(app("web")).await?;
    for kind in ["Deployment", "Service"] {
        let owned = |child: &Value| child["metadata"]["ownerReferences"][0]["uid"] == app["metadata"]["uid"];
        scene.namespace.until(kind, "web", "to belong to the new object", owned).await?;
    }
    scene.at_rest("web").await
}

/// One object's end changes nothing for another's children.
async fn children_of_two_objects_are_told_apart(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    scene.namespace.apply(app("other")).await?;
    scene.at_rest("other").await?;
    delete(scene, PropagationPolicy::Background).await?;
    scene.namespace.until_gone("Deployment", "web").await?;
    scene.reconcile_often("other", 3).await?;
    for kind in ["Deployment", "Service"] {
        ensure!(scene.namespace.get(kind, "other").await?.is_some(), "the other's {kind} is gone");
    }
    Ok(())
}

async fn delete(scene: &Scene, policy: PropagationPolicy) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    scene.namespace.api("AppService")?.delete("web", &parameters).await?;
    Ok(())
}

/// The host wrote nothing of `web` since; its status may have followed the children's end. A later object has been
/// reconciled, so whatever the deletion made the host do, it has done.
async fn stayed_quiet(scene: &Scene, before: &[String]) -> Result<()> {
    scene.namespace.apply(app("later")).await?;
    scene.at_rest("later").await?;
    let after = scene.host_writes().await?;
    let writes: Vec<_> = after[before.len()..]
        .iter()
        .filter(|write| write.contains(" web ") && !write.contains("appservices/status"))
        .collect();
    ensure!(writes.is_empty(), "the host wrote {writes:#?}");
    Ok(())
}
