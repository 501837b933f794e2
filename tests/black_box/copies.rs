//! Copies of the guest `copies`: their CRDs, the API of their objects, and copies as large as a test needs them.

use std::fs;

use anyhow::Result;
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};
use pilothouse_engine::kept_by;
use pilothouse_tests::cluster::install_crd;
use serde_json::json;

use crate::test_env::TestEnv;

/// Installs the CRD of a copy, which serves these versions with the same schema and stores the first one.
pub async fn define(env: &TestEnv, number: usize, versions: &[&str]) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": versions.first() == Some(name), "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("copy{number:03}s.copies.pilothouse.dev")},
        "spec": {
            "group": "copies.pilothouse.dev",
            "scope": "Namespaced",
            "names": {
                "kind": format!("Copy{number:03}"), "listKind": format!("Copy{number:03}List"),
                "plural": format!("copy{number:03}s"), "singular": format!("copy{number:03}"),
            },
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    });
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), definition.to_string())?;
    install_crd(&env.namespace.client(), file.path()).await
}

/// A component that keeps so many KiB of the memory of plugins by the host's estimate, for it has as much more in it that is of no use. As it is
/// if it keeps more.
pub fn keeping(component: Vec<u8>, kibibytes: usize) -> Vec<u8> {
    let lacking = (kibibytes << 10).saturating_sub(kept_by(&component));
    // A custom section without a name. A byte that is no structure costs the half of one.
    let content = vec![0; 1 + 2 * lacking];
    let mut padded = component;
    padded.push(0);
    let mut length = content.len();
    while length >= 0x80 {
        padded.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    padded.push(length as u8);
    padded.extend(content);
    padded
}

/// The API of a copy's objects in one version.
pub fn api(env: &TestEnv, number: usize, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "copies.pilothouse.dev".to_owned(),
        version: version.to_owned(),
        api_version: format!("copies.pilothouse.dev/{version}"),
        kind: format!("Copy{number:03}"),
        plural: format!("copy{number:03}s"),
    };
    Api::namespaced_with(env.namespace.client(), &env.namespace.name, &resource)
}
