//! The OpenAPI documents of the built-in kinds that the simulated server publishes: each schema in them must be the real server's,
//! without its descriptions.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use kube::Client;
use pilothouse_simulation::api_server::Catalog;
use serde_json::Value;

use super::{
    same::differences,
    side::{Real, Server},
};

/// What the schemas say of fields that exclude each other, and of strategic merge patches. Neither the host nor the simulated server
/// reads it.
const UNREAD: [&str; 3] = ["x-kubernetes-unions", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy"];

/// Compares all documents.
///
/// # Errors
/// If a schema differs.
pub async fn run(client: Client) -> Result<()> {
    let mut real = Real(client);
    for (path, (kept, _)) in Catalog::new()?.documents() {
        let kept: Value = serde_json::from_slice(kept)?;
        let request = Request::get(format!("/openapi/v3/{path}")).header("accept", "application/json");
        let mut found = real.send(request.body(Bytes::new())?).await?.body;
        strip(&mut found);
        let schemas = kept["components"]["schemas"].as_object().context("no schemas")?;
        ensure!(!schemas.is_empty(), "{path} has no schemas");
        for (name, schema) in schemas {
            let lines = differences(&found["components"]["schemas"][name], schema);
            ensure!(lines.is_empty(), "{path}: {name} differs: {}", lines.join("; "));
        }
    }
    Ok(())
}

/// Takes out what is not kept. A field may have that name.
pub(super) fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                (name != "description" || !value.is_string()) && !UNREAD.contains(&name.as_str())
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
