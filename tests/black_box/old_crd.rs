//! The CRD of `Plugin` is of another version than the host: Helm installs CRDs and never updates them. Plugins work, what cannot be written is
//! told, and nothing begins that would have to be written down.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{api, condition, install_crd},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, SHARE, begin, marked},
    plugin_objects::{next, plugin, plugin_object, start, store, told, works},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// The CRD of the host's own version.
const CRD: &str = "crds/plugins.pilothouse.dev.yaml";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plugin_works_and_its_status_lacks_what_the_crd_does_not_take,
        a_canary_that_cannot_be_written_down_does_not_begin,
    );
}

async fn a_plugin_works_and_its_status_lacks_what_the_crd_does_not_take(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    lose(env, &["versions", "objects"]).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    let lacks = |object: &Value| {
        is_ready(object) && object["status"]["versions"].is_null() && object["status"]["objects"].is_null()
    };
    let object = env.namespace.until("Plugin", "web", "to be ready without them", lacks).await?;
    ensure!(object["status"]["version"] == "0.1.0" && condition(&object, "Loaded")["status"] == "True", "{object}");
    works(env, "web").await?;
    told(env, &[("Warning", "StatusFieldsDropped", "status.objects, status.versions")]).await?;
    told(env, &[("Warning", "StatusFieldsDropped", "pilothouse crd | kubectl apply")]).await?;
    let logged = env.log_lines().into_iter().filter(|line| line["reason"] == "StatusFieldsDropped").count();
    ensure!(logged == 1, "the log says so {logged} times");

    install_crd(&env.namespace.client(), &artifacts::repository().join(CRD)).await?;
    let has = |object: &Value| {
        object["status"]["versions"][0]["version"] == "0.1.0" && object["status"]["objects"]["total"] == 1
    };
    env.namespace.until("Plugin", "web", "to have all of its status", has).await.map(drop)
}

/// Another host would not know which objects it answers.
async fn a_canary_that_cannot_be_written_down_does_not_begin(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    lose(env, &["rollout"]).await?;
    store(env, "web", &[&next()?]).await?;
    told(env, &[("Warning", "StatusFieldsDropped", "status.rollout")]).await?;
    ensure!(marked(env, 0).await?.is_empty(), "it answers objects");
    let object = env.namespace.until("Plugin", "web", "to be there", |_| true).await?;
    ensure!(object["status"]["version"] == "0.1.0", "another version is at work: {object}");

    install_crd(&env.namespace.client(), &artifacts::repository().join(CRD)).await?;
    marked(env, SHARE.1).await.map(drop)
}

/// Takes fields of the status out of the CRD.
pub async fn lose(env: &TestEnv, fields: &[&str]) -> Result<()> {
    let remove = |field: &&str| json!({"op": "remove", "path": format!("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/{field}")});
    let operations: Vec<Value> = fields.iter().map(remove).collect();
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(json!(operations))?);
    let crds = api(&env.namespace.client(), "CustomResourceDefinition", None)?;
    crds.patch("plugins.pilothouse.dev", &PatchParams::default(), &patch).await?;
    Ok(())
}
