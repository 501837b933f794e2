//! Kubeconfig files, one per user, and clients made from them. JSON is valid YAML, so no YAML library is needed.

use crate::layout::{Layout, write_private};
use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Carries the authority's certificate along, so that the file works from wherever it is copied to.
pub(crate) fn write(layout: &Layout, user: &str, url: &str, token: &str) -> Result<()> {
    let authority = ByteString(fs::read(layout.pki("ca.crt"))?);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pilothouse", "cluster": {
            "server": url,
            "certificate-authority-data": authority,
        }}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "pilothouse", "context": {"cluster": "pilothouse", "user": user}}],
        "current-context": "pilothouse",
    });
    write_private(&layout.kubeconfig(user), &serde_json::to_string_pretty(&config)?)
}

/// The configuration in a kubeconfig file, regardless of what the environment says.
pub(crate) async fn read(path: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

pub(crate) async fn client(path: &Path) -> Result<Client> {
    Ok(Client::try_from(read(path).await?)?)
}
