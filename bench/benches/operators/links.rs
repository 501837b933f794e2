//! The kinds and the plugins of the chain: each plugin reconciles one kind and makes objects of the next. The last kind has no plugin.

use std::fs;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use pilothouse_tests::{artifacts, cluster::install_crd, copies::replaced, host::Host};
use serde_json::json;

/// How many plugins there are.
pub const PLUGINS: usize = 100;

/// How many CRDs are installed at once.
const PARALLEL: usize = 8;

/// Installs the kinds.
pub async fn install_kinds(client: &Client) -> Result<()> {
    stream::iter(0..=PLUGINS).map(|number| install_kind(client, number)).buffer_unordered(PARALLEL).try_collect().await
}

/// Puts the plugins into the directory of a host.
pub fn install_plugins(host: &Host) -> Result<()> {
    let original = fs::read(artifacts::guest("links")?)?;
    for number in 0..PLUGINS {
        fs::write(host.plugins().join(format!("link-{number:03}.wasm")), link(&original, number))?;
    }
    Ok(())
}

/// The API of the objects of a kind.
pub fn api(client: &Client, namespace: &str, number: usize) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "links.pilothouse.dev".to_owned(),
        version: "v1".to_owned(),
        api_version: "links.pilothouse.dev/v1".to_owned(),
        kind: format!("Link{number:03}"),
        plural: format!("link{number:03}s"),
    };
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// The plugin of one kind.
fn link(original: &[u8], number: usize) -> Vec<u8> {
    let named = replaced(original, "link-000", &format!("link-{number:03}"));
    let own = replaced(&named, "Link000", &format!("Link{number:03}"));
    replaced(&own, "Next000", &format!("Link{:03}", number + 1))
}

async fn install_kind(client: &Client, number: usize) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("link{number:03}s.links.pilothouse.dev")},
        "spec": {
            "group": "links.pilothouse.dev",
            "scope": "Namespaced",
            "names": {
                "kind": format!("Link{number:03}"), "listKind": format!("Link{number:03}List"),
                "plural": format!("link{number:03}s"), "singular": format!("link{number:03}"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    });
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), definition.to_string())?;
    install_crd(client, file.path()).await
}
