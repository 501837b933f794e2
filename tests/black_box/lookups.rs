//! What plugins look up: what they are given, and what wakes their objects.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, found_objects_are_given_to_the_plugin);
}

async fn found_objects_are_given_to_the_plugin(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let mut settings = config_map("settings", json!({"color": "blue"}));
    settings["metadata"]["labels"] = json!({"app": "web"});
    env.namespace.apply(settings).await?;
    let data = json!({"color": {"$found": "settings", "at": "/data/color"}, "selected": {"$names": "app=web"}});
    let spec = json!({
        "lookups": [{"kind": "ConfigMap", "name": "settings"}, {"kind": "ConfigMap", "selector": "app=web"}],
        "compute": 10,
        "response": {
            "children": [{"object": config_map("web", data), "onRemoval": "keep"}],
            "status": {"phase": "Colored"},
            "conditions": [{"type": "Colored", "status": "True", "reason": "Found"}],
            "events": [{"reason": "Colored", "message": "it has a color"}],
        },
    });
    env.namespace.apply(scripted("web", spec)).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let child = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    let selected = format!("{}/settings", env.namespace.name);
    ensure!(child["data"] == json!({"color": "blue", "selected": selected}), "{child}");
    let object = env.namespace.get("Scripted", "web").await?.context("no object")?;
    ensure!(object["status"]["phase"] == "Colored", "{object}");
    env.event("Scripted", "web", "Colored").await?;
    Ok(())
}
