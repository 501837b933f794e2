//! A host that cannot work yet: it runs, says at `/readyz` what it waits for, and begins by itself.

use std::fs;

use anyhow::{Result, ensure};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, PATIENCE, condition, install_crd},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    scene::{Scene, app, is_ready, misbehaver},
    suite::{Suite, tests},
};

/// The CRD of the kind that is missing here or there.
const APP_SERVICES: &str = "crds/appservices.apps.example.com.yaml";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_empty_directory_is_waited_for,
        a_file_that_is_no_plugin_is_told,
        a_host_is_ready_when_all_plugins_that_are_there_work,
        a_missing_kind_is_waited_for,
        a_removed_kind_is_waited_for,
        a_child_kind_that_can_be_asked_for_may_be_missing,
        a_kind_without_a_status_is_told,
        a_missing_child_kind_is_named_and_noticed_when_it_comes,
    );
}

async fn an_empty_directory_is_waited_for(scene: &mut Scene) -> Result<()> {
    scene.host.resume().await?;
    not_ready(scene, "no plugin is loaded").await?;
    scene.host.logged("no plugin in the plugin directory; copy a .wasm file into it").await?;
    ensure!(scene.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    scene.install("app-service")?;
    scene.host.ready().await?;
    scene.namespace.apply(app("web")).await?;
    scene.at_rest("web").await
}

/// The good plugin beside it works.
async fn a_file_that_is_no_plugin_is_told(scene: &mut Scene) -> Result<()> {
    fs::write(scene.host.plugins().join("broken.wasm"), "this is not WebAssembly")?;
    fs::write(scene.host.plugins().join("notes.txt"), "not looked at")?;
    scene.start_with_web().await?;
    scene.host.logged("broken.wasm").await?;
    scene.host.logged("not a whole WebAssembly file").await?;
    let failed = scene.metrics().await?.sum("pilothouse_plugin_load_failures_total", &[]);
    ensure!(failed == 1.0, "{failed} failures are counted");
    Ok(())
}

/// Also where they have yet to be compiled, which the second one is when the first one works.
async fn a_host_is_ready_when_all_plugins_that_are_there_work(scene: &mut Scene) -> Result<()> {
    let nothing_compiled = tempfile::tempdir()?;
    scene.set_up_host(|setup| setup.cache = nothing_compiled.path().to_owned())?;
    scene.start(&["app-service", "training-job"]).await?;
    let works = scene.host.log().matches("plugin at work").count();
    ensure!(works == 2, "{works} of 2 plugins work");
    Ok(())
}

/// The plugin comes before its CustomResourceDefinition.
async fn a_missing_kind_is_waited_for(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::with(Parts::Api).await?).await?;
    scene.install("app-service")?;
    scene.host.resume().await?;
    not_ready(scene, "apps.example.com/v1 AppService is not installed").await?;
    scene.host.logged("apply its CustomResourceDefinition").await?;
    install(scene).await?;
    scene.host.ready().await?;
    scene.namespace.apply(app("web")).await?;
    scene.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    Ok(())
}

/// The CustomResourceDefinition goes, with all objects, and comes back.
async fn a_removed_kind_is_waited_for(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::with(Parts::Api).await?).await?;
    install(scene).await?;
    scene.start(&["app-service"]).await?;
    scene.namespace.apply(app("web")).await?;
    scene.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    let crds = pilothouse_tests::cluster::api(&scene.namespace.client(), "CustomResourceDefinition", None)?;
    crds.delete("appservices.apps.example.com", &Default::default()).await?;
    not_ready(scene, "apps.example.com/v1 AppService is not installed").await?;
    ensure!(scene.namespace.get("Deployment", "web").await?.is_some(), "the host deleted a child");
    eventually(PATIENCE, "the old CRD to be gone", async || {
        let crd = crds.get_opt("appservices.apps.example.com").await?;
        Ok(Look::of(crd.is_none(), crd))
    })
    .await?;
    install(scene).await?;
    scene.host.ready().await?;
    scene.namespace.apply(app("again")).await?;
    scene.namespace.until("Deployment", "again", "to be created", |_| true).await?;
    Ok(())
}

/// No gang scheduler is installed, and jobs that want none are run all the same.
async fn a_child_kind_that_can_be_asked_for_may_be_missing(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    scene.host.logged("scheduling.volcano.sh/v1beta1 PodGroup").await?;
    let job = json!({
        "apiVersion": "ml.example.com/v1alpha1", "kind": "TrainingJob", "metadata": { "name": "job" },
        "spec": { "framework": "pytorch", "workers": 1, "image": "trainer", "command": ["train"] },
    });
    scene.namespace.apply(job).await?;
    scene.namespace.until("Pod", "job-worker-0", "to be created", |_| true).await?;
    Ok(())
}

/// H10: the status cannot say that there is none, so an Event and the log do. It is seen when the subresource comes.
async fn a_kind_without_a_status_is_told(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::with(Parts::Api).await?).await?;
    let crd = fs::read_to_string(artifacts::repository().join(APP_SERVICES))?;
    let mut crd: Value = serde_saphyr::from_str(&crd)?;
    crd["spec"]["versions"][0]["subresources"] = json!({});
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), crd.to_string())?;
    install_crd(&scene.namespace.client(), file.path()).await?;
    scene.start(&["app-service"]).await?;
    scene.namespace.apply(app("web")).await?;
    let event = scene.event("AppService", "web", "StatusSubresourceMissing").await?;
    let message = event["message"].to_string();
    ensure!(message.contains("AppService") && message.contains("CustomResourceDefinition"), "{event}");
    scene.host.logged("StatusSubresourceMissing").await?;
    scene.namespace.until("Deployment", "web", "to be created all the same", |_| true).await?;
    install(scene).await?;
    let observed = |app: &Value| app["status"]["observedGeneration"] == app["metadata"]["generation"];
    scene.namespace.until("AppService", "web", "to have a status", observed).await?;
    Ok(())
}

/// H-18: a plugin that may have children of a kind which nobody has installed; only the object that needs it waits.
async fn a_missing_child_kind_is_named_and_noticed_when_it_comes(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::quiet().await?).await?;
    let plugin = repacked(&artifacts::guest("misbehaver")?, |manifest| {
        let absent = json!({"apiVersion": "absent.pilothouse.dev/v1", "kind": "Absent"});
        manifest["children"].as_array_mut().into_iter().for_each(|children| children.push(absent.clone()));
    })
    .await?;
    scene.host.install(plugin.path(), "misbehaver.wasm")?;
    scene.start(&[]).await?;
    scene.namespace.apply(misbehaver("hopeful", "absent-child")).await?;
    scene.namespace.apply(misbehaver("content", "well")).await?;
    let object = scene.stalled("Misbehaver", "hopeful", "ChildKindNotInstalled").await?;
    let message = condition(&object, "Stalled")["message"].to_string();
    ensure!(message.contains("absent.pilothouse.dev/v1 Absent"), "the kind is not named: {message}");
    scene.namespace.until("Misbehaver", "content", "to be ready", is_ready).await?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), absent().to_string())?;
    install_crd(&scene.namespace.client(), file.path()).await?;
    scene.namespace.until("Misbehaver", "hopeful", "to be ready", is_ready).await?;
    Ok(())
}

/// The CRD of the kind that no cluster has.
fn absent() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "absents.absent.pilothouse.dev"},
        "spec": {
            "group": "absent.pilothouse.dev",
            "scope": "Namespaced",
            "names": {"kind": "Absent", "listKind": "AbsentList", "plural": "absents", "singular": "absent"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

async fn install(scene: &Scene) -> Result<()> {
    let crd = artifacts::repository().join(APP_SERVICES);
    install_crd(&scene.namespace.client(), &crd).await
}

/// Waits until the host says that it is not ready, and why.
pub async fn not_ready(scene: &Scene, why: &str) -> Result<()> {
    eventually(PATIENCE, &format!("/readyz to say '{why}'"), async || {
        let (code, body) = scene.host.get("health", "/readyz").await?;
        Ok(Look::of(code == 503 && body.contains(why), body))
    })
    .await
}
