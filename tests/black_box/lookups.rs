//! What plugins look up: what they are given, and what wakes their objects.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    scene::{Scene, config_map, is_ready, scripted},
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, found_objects_are_given_to_the_plugin);
}

async fn found_objects_are_given_to_the_plugin(scene: &mut Scene) -> Result<()> {
    scene.start(&["scripted"]).await?;
    let mut settings = config_map("settings", json!({"color": "blue"}));
    settings["metadata"]["labels"] = json!({"app": "web"});
    scene.namespace.apply(settings).await?;
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
    scene.namespace.apply(scripted("web", spec)).await?;
    scene.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let child = scene.namespace.get("ConfigMap", "web").await?.context("no child")?;
    let selected = format!("{}/settings", scene.namespace.name);
    ensure!(child["data"] == json!({"color": "blue", "selected": selected}), "{child}");
    let object = scene.namespace.get("Scripted", "web").await?.context("no object")?;
    ensure!(object["status"]["phase"] == "Colored", "{object}");
    scene.event("Scripted", "web", "Colored").await?;
    Ok(())
}
