//! A plugin that names the fields that it reads: a change of others does not call it, and the host still sees to all that is
//! its own business.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, condition, install_crd},
};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, app},
    suite::{Suite, heavy, tests},
};

/// Changes of one object.
const TIMES: usize = 10;

pub fn register(suite: &mut Suite) {
    tests!(suite, a_change_of_other_fields_does_not_call_it, a_status_that_somebody_edits_is_put_right,);
    heavy!(suite, the_echo_of_its_own_status_does_not_call_it);
}

/// `app-service` reads the spec. Annotations are no news to it; an image is.
async fn a_change_of_other_fields_does_not_call_it(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    scene.reconcile_often("web", 2).await?;
    let before = scene.calls("app-service").await?;
    scene.reconcile_often("web", TIMES).await?;
    let after = scene.calls("app-service").await?;
    ensure!(after == before, "{} calls for {TIMES} annotations", after - before);
    let skipped = scene.metrics().await?.sum("pilothouse_plugin_calls_skipped_total", &[("plugin", "app-service")]);
    ensure!(skipped >= TIMES as f64, "{skipped} calls were left out");
    scene.namespace.patch("AppService", "web", json!({"spec": {"image": "example.com/web:2"}})).await?;
    let runs =
        |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/web:2";
    scene.namespace.until("Deployment", "web", "to get the new image", runs).await?;
    scene.at_rest("web").await
}

/// With nobody who makes anything of the Deployment there are two calls: one that makes the children, one that looks at
/// them. The status that comes of it is not shown to the plugin, so its echo is not either.
async fn the_echo_of_its_own_status_does_not_call_it(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::with(Parts::Api).await?).await?;
    install_crd(&scene.namespace.client(), &artifacts::repository().join("crds/appservices.apps.example.com.yaml"))
        .await?;
    scene.start(&["app-service"]).await?;
    scene.namespace.apply(app("web")).await?;
    let reported = |web: &Value| web["status"]["observedGeneration"] == 1;
    scene.namespace.until("AppService", "web", "to be reported on", reported).await?;
    scene.reconcile_often("web", 2).await?;
    let calls = scene.calls("app-service").await?;
    ensure!(calls == 2.0, "{calls} calls");
    Ok(())
}

/// The plugin is not shown its status, but the host answers for it.
async fn a_status_that_somebody_edits_is_put_right(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    scene.reconcile_often("web", 1).await?;
    for (edit, what) in [
        (json!({"status": {"readyReplicas": 77}}), "its own field"),
        (json!({"status": {"conditions": []}}), "its conditions"),
        (json!({"status": null}), "everything"),
    ] {
        let edit = Patch::Merge(edit);
        scene.namespace.api("AppService")?.patch_status("web", &PatchParams::default(), &edit).await?;
        let put_right =
            |web: &Value| web["status"]["readyReplicas"] == 3 && condition(web, "Ready")["status"] == "True";
        scene
            .namespace
            .until("AppService", "web", &format!("to be put right after an edit of {what}"), put_right)
            .await?;
    }
    Ok(())
}
