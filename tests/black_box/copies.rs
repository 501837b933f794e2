//! The kinds of copies of the guest `copies`: their CRDs, and the API of their objects.

use std::fs;

use anyhow::Result;
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};
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
