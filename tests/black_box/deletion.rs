//! Deletion of objects: garbage collection deletes their children, and the host creates no new ones in the meantime.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::Value;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_are_collected_with_their_object,
        children_are_deleted_before_their_object,
        orphaned_children_stay_as_they_are,
        an_object_of_the_same_name_gets_children_of_its_own,
        children_of_two_objects_are_told_apart,
    );
}

/// The object is deleted as by `kubectl delete`.
async fn children_are_collected_with_their_object(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let before = env.host_writes().await?;
    delete(env, PropagationPolicy::Background).await?;
    for kind in ["Deployment", "Service"] {
        env.namespace.until_gone(kind, "web").await?;
    }
    wrote_nothing_more(env, &before).await
}

/// The object is deleted as by `kubectl delete --cascade=foreground`: it stays until its children are gone.
async fn children_are_deleted_before_their_object(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let before = env.host_writes().await?;
    delete(env, PropagationPolicy::Foreground).await?;
    for kind in ["AppService", "Deployment", "Service"] {
        env.namespace.until_gone(kind, "web").await?;
    }
    wrote_nothing_more(env, &before).await
}

/// The object is deleted as by `kubectl delete --cascade=orphan`: garbage collection first removes the owner references, and the
/// host must not restore them.
async fn orphaned_children_stay_as_they_are(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let before = env.host_writes().await?;
    delete(env, PropagationPolicy::Orphan).await?;
    env.namespace.until_gone("AppService", "web").await?;
    for kind in ["Deployment", "Service"] {
        let orphan = |child: &Value| child["metadata"].get("ownerReferences").is_none();
        env.namespace.until(kind, "web", "to be without an owner", orphan).await?;
    }
    wrote_nothing_more(env, &before).await?;
    for kind in ["Deployment", "Service"] {
        ensure!(env.namespace.get(kind, "web").await?.is_some(), "the {kind} is gone");
    }
    Ok(())
}

/// The old children have the right names but belong to a deleted object.
async fn an_object_of_the_same_name_gets_children_of_its_own(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    delete(env, PropagationPolicy::Background).await?;
    let app = env.namespace.apply(app("web")).await?;
    for kind in ["Deployment", "Service"] {
        let owned = |child: &Value| child["metadata"]["ownerReferences"][0]["uid"] == app["metadata"]["uid"];
        env.namespace.until(kind, "web", "to belong to the new object", owned).await?;
    }
    env.at_rest("web").await
}

/// The deletion of one object does not affect the children of another one.
async fn children_of_two_objects_are_told_apart(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.namespace.apply(app("other")).await?;
    env.at_rest("other").await?;
    delete(env, PropagationPolicy::Background).await?;
    env.namespace.until_gone("Deployment", "web").await?;
    env.reconcile_often("other", 3).await?;
    for kind in ["Deployment", "Service"] {
        ensure!(env.namespace.get(kind, "other").await?.is_some(), "the other's {kind} is gone");
    }
    Ok(())
}

async fn delete(env: &TestEnv, policy: PropagationPolicy) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    env.namespace.api("AppService")?.delete("web", &parameters).await?;
    Ok(())
}

/// Checks that the host has written nothing about `web` since, except for its status, which may show the end of the children. It
/// waits for a later object first, so that the host has finished whatever the deletion caused.
async fn wrote_nothing_more(env: &TestEnv, before: &[String]) -> Result<()> {
    env.namespace.apply(app("later")).await?;
    env.at_rest("later").await?;
    let after = env.host_writes().await?;
    let writes: Vec<_> = after[before.len()..]
        .iter()
        .filter(|write| write.contains(" web ") && !write.contains("appservices/status"))
        .collect();
    ensure!(writes.is_empty(), "the host wrote {writes:#?}");
    Ok(())
}
