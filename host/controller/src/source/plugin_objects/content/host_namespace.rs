//! ConfigMaps and Secrets of the host's own namespace that a `Plugin` names. Reads single ones, when they are needed.

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, Client};

use super::error::ContentError;
use crate::errors::chain;

/// The host's own namespace.
#[derive(Clone)]
pub struct HostNamespace {
    config_maps: Api<ConfigMap>,
    secrets: Api<Secret>,
}

impl HostNamespace {
    /// The namespace of this name.
    pub fn new(client: &Client, name: &str) -> Self {
        let (config_maps, secrets) = (client.clone(), client.clone());
        Self { config_maps: Api::namespaced(config_maps, name), secrets: Api::namespaced(secrets, name) }
    }

    /// A ConfigMap.
    pub async fn config_map(&self, name: &str) -> Result<ConfigMap, ContentError> {
        match self.config_maps.get_opt(name).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(ContentError::NoConfigMap(name.to_owned())),
            Err(error) => Err(unreadable("ConfigMap", name, &error)),
        }
    }

    /// A text in a ConfigMap.
    pub async fn text(&self, name: &str, key: &'static str) -> Result<String, ContentError> {
        let missing = || ContentError::NoDataKey { what: "ConfigMap", name: name.to_owned(), key };
        self.config_map(name).await?.data.unwrap_or_default().remove(key).ok_or_else(missing)
    }

    /// What is in a Secret.
    pub async fn secret(&self, name: &str, key: &'static str) -> Result<Vec<u8>, ContentError> {
        let missing = || ContentError::NoDataKey { what: "Secret", name: name.to_owned(), key };
        let found = self.secrets.get_opt(name).await.map_err(|error| unreadable("Secret", name, &error))?;
        let secret = found.ok_or_else(|| ContentError::NoSecret(name.to_owned()))?;
        let ByteString(bytes) = secret.data.unwrap_or_default().remove(key).ok_or_else(missing)?;
        Ok(bytes)
    }
}

fn unreadable(what: &'static str, name: &str, error: &kube::Error) -> ContentError {
    ContentError::Unreadable { what, name: name.to_owned(), why: chain(error) }
}
