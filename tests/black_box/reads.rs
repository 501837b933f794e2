//! Plugins that declare the fields that they read: a change of other fields leads to no call, but the host still repairs them.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, heavy, tests},
    test_env::{TestEnv, app},
};

/// The number of changes of one object.
const TIMES: usize = 10;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_change_of_fields_that_the_plugin_does_not_read_leads_to_no_call,
        a_change_of_child_fields_that_the_plugin_does_not_read_leads_to_no_call,
        a_child_that_the_plugin_does_not_read_is_still_repaired,
        a_status_that_somebody_edits_is_repaired,
    );
    heavy!(suite, the_echo_of_an_own_status_write_leads_to_no_call);
}

/// `app-service` reads the spec, so a new image leads to a call and an annotation does not.
async fn a_change_of_fields_that_the_plugin_does_not_read_leads_to_no_call(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.reconcile_often("web", 2).await?;
    let before = env.calls("app-service").await?;
    env.reconcile_often("web", TIMES).await?;
    let after = env.calls("app-service").await?;
    ensure!(after == before, "{} calls for {TIMES} annotations", after - before);
    let skipped = env.metrics().await?.sum("pilothouse_plugin_calls_skipped_total", &[("plugin", "app-service")]);
    ensure!(skipped >= TIMES as f64, "{skipped} calls were left out");
    env.namespace.patch("AppService", "web", json!({"spec": {"image": "example.com/web:2"}})).await?;
    let runs =
        |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/web:2";
    env.namespace.until("Deployment", "web", "to get the new image", runs).await?;
    env.at_rest("web").await
}

/// `app-service` reads nothing of its Service. (A Deployment would not do here: any annotation changes its generation, which is
/// read.)
async fn a_change_of_child_fields_that_the_plugin_does_not_read_leads_to_no_call(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let touched =
        async |turn: usize| env.reconciled_after("app-service", async || env.touch("Service", "web", turn).await).await;
    // The plugin is called until its answer has been compared with the live children once.
    touched(TIMES).await?;
    let (calls, writes) = (env.calls("app-service").await?, env.host_writes().await?.len());
    for turn in 0..TIMES {
        touched(turn).await?;
    }
    let after = env.calls("app-service").await?;
    ensure!(after == calls, "{} calls for {TIMES} annotations", after - calls);
    let writes = env.host_writes().await?.len() - writes;
    ensure!(writes == 0, "{writes} writes for annotations of others");
    Ok(())
}

/// The children are repaired, whatever the plugin reads of them.
async fn a_child_that_the_plugin_does_not_read_is_still_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    for turn in 0..2 {
        env.reconciled_after("app-service", async || env.touch("Service", "web", turn).await).await?;
        for (pointer, change) in [
            (
                "/spec/selector/app.kubernetes.io~1name",
                json!({"spec": {"selector": {"app.kubernetes.io/name": "else"}}}),
            ),
            (
                "/metadata/labels/app.kubernetes.io~1name",
                json!({"metadata": {"labels": {"app.kubernetes.io/name": "else"}}}),
            ),
            ("/metadata/labels/app.kubernetes.io~1name", json!({"metadata": {"labels": null}})),
        ] {
            env.namespace.patch("Service", "web", change).await?;
            let put_right = |service: &Value| service.pointer(pointer).is_some_and(|name| name == "web");
            env.namespace.until("Service", "web", &format!("to have its {pointer} put right"), put_right).await?;
        }
        let before = env.namespace.get("Service", "web").await?.context("there is no Service")?;
        env.namespace.delete("Service", "web").await?;
        let is_another = |service: &Value| service["metadata"]["uid"] != before["metadata"]["uid"];
        env.namespace.until("Service", "web", "to be made anew", is_another).await?;
    }
    Ok(())
}

/// Without a Deployment controller there is one call. The new children have no field that the plugin reads, so its answer stays
/// valid. The plugin does not read its own status either, so the status write leads to no call.
async fn the_echo_of_an_own_status_write_leads_to_no_call(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let reported = |web: &Value| web["status"]["observedGeneration"] == 1;
    env.namespace.until("AppService", "web", "to be reported on", reported).await?;
    env.reconcile_often("web", 2).await?;
    let calls = env.calls("app-service").await?;
    ensure!(calls == 1.0, "{calls} calls");
    Ok(())
}

/// The plugin does not read its status, but the host repairs it.
async fn a_status_that_somebody_edits_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.reconcile_often("web", 1).await?;
    for (edit, what) in [
        (json!({"status": {"readyReplicas": 77}}), "its own field"),
        (json!({"status": {"conditions": []}}), "its conditions"),
        (json!({"status": null}), "everything"),
    ] {
        let edit = Patch::Merge(edit);
        env.namespace.api("AppService")?.patch_status("web", &PatchParams::default(), &edit).await?;
        let put_right =
            |web: &Value| web["status"]["readyReplicas"] == 3 && condition(web, "Ready")["status"] == "True";
        env.namespace
            .until("AppService", "web", &format!("to be put right after an edit of {what}"), put_right)
            .await?;
    }
    Ok(())
}
