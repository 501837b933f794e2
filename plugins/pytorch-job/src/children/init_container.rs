//! The container in which a worker waits until the name of the master is known, so that its program need not.

use crate::config::Config;
use serde_json::{Value, json};

/// The container, unless the configuration asks for none.
pub fn init_container(config: &Config, master: &str) -> Option<Value> {
    let (image, tries) = (&config.init_container_image, config.init_container_max_tries);
    let script = format!(
        "for i in $(seq {tries}); do nslookup {master} && exit 0; echo waiting for {master}; sleep 2; done; exit 1"
    );
    (!image.is_empty()).then(|| {
        json!({
            "name": "init-pytorch",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script],
            "resources": {
                "limits": { "cpu": "100m", "memory": "20Mi" },
                "requests": { "cpu": "50m", "memory": "10Mi" },
            },
        })
    })
}
