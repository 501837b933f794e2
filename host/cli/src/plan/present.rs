//! What is at work today: the `Plugin` that reconciles the kind. Reads only.

use std::sync::Arc;

use anyhow::{Context, bail};
use kube::{Client, ResourceExt};
use pilothouse_controller::{
    api::{Plugin, find_plugin, list_plugins},
    plugin::{Division, PluginSettings},
    source::plugin_objects::{Candidate, division_by_pins},
};
use pilothouse_engine::{Manifest, contract::KindRef};
use pilothouse_forecast::report::PresentVersion;
use serde_json::Value;

/// The `Plugin` that reconciles a kind today.
pub struct Present(Plugin);

impl Present {
    /// The one of this name.
    ///
    /// # Errors
    /// If there is none, or the API server does not answer.
    pub async fn named(client: &Client, name: &str) -> anyhow::Result<Self> {
        let found = find_plugin(client.clone(), name).await.context("failed to look for the Plugin")?;
        let Some(found) = found else {
            bail!("there is no Plugin '{name}'; `pilothouse list` shows those that there are");
        };
        Ok(Self(found))
    }

    /// Finds the one that reconciles the kind of the manifest, or decorates it under its name; none if the cluster has none.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn of_kind(client: &Client, manifest: &Manifest) -> anyhow::Result<Option<Self>> {
        let plugins = all(client).await.context(
            "failed to list the Plugins; where the host takes its plugins from a directory, say --without-plugin-object",
        )?;
        Ok(plugins.into_iter().find(|plugin| is_of(plugin, manifest)).map(Self))
    }

    /// Finds the one that reconciles this kind, which may have it from its configuration; none if the cluster has none.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn reconciling(client: &Client, kind: &KindRef) -> anyhow::Result<Option<Self>> {
        let plugins = all(client).await.context("failed to list the Plugins")?;
        Ok(plugins.into_iter().find(|plugin| has_kind(plugin, kind) && !decorates(plugin)).map(Self))
    }

    /// Checks that a version with this manifest would be at work in the place of its own.
    ///
    /// # Errors
    /// If it reconciles another kind.
    pub fn is_for(&self, manifest: &Manifest) -> anyhow::Result<()> {
        if let Some(other) = reconciled(&self.0).filter(|kind| !kind.is_same_kind(&manifest.reconciles)) {
            bail!(
                "the Plugin '{}' reconciles {other}, and this version {}: once it is at work, nobody reconciles the objects of {other} any \
                 more, and they and their children stay as they are; for what it would do to its own kind, say --without-plugin-object",
                self.0.name_any(),
                manifest.reconciles
            );
        }
        Ok(())
    }

    /// Its configuration.
    ///
    /// # Errors
    /// If it is no JSON.
    pub fn config(&self) -> anyhow::Result<Option<Value>> {
        let config = self.0.spec.config.as_ref().map(|config| serde_json::from_str(config.text())).transpose();
        config.with_context(|| format!("the configuration of the Plugin '{}' cannot be read", self.0.name_any()))
    }

    /// What it says beside its component, for a host in this namespace.
    fn settings(&self, host_namespace: &str) -> PluginSettings {
        PluginSettings::of_plugin(&self.0, host_namespace)
    }

    /// Which objects a version would answer; none if all.
    pub fn division(&self, version: &Candidate<'_>) -> Option<Arc<Division>> {
        division_by_pins(&self.0, version)
    }

    /// The version at work.
    pub fn version(&self) -> PresentVersion {
        let status = self.0.status.clone().unwrap_or_default();
        PresentVersion { name: self.0.name_any(), version: status.version, digest: status.digest }
    }
}

/// What is said beside a component, by the `Plugin` if there is one, for a host in this namespace; with this configuration in the place of its own.
pub fn settings_with(present: Option<&Present>, host_namespace: &str, config: Option<&Value>) -> PluginSettings {
    let mut settings = present.map(|present| present.settings(host_namespace)).unwrap_or_default();
    if let Some(config) = config {
        settings.config = Some(config.to_string().into());
    }
    settings
}

/// The name of the `Plugin` at work that would answer the objects of this manifest, too; none if there is none.
///
/// # Errors
/// If the API server does not answer.
pub async fn in_the_way(client: &Client, manifest: &Manifest) -> anyhow::Result<Option<String>> {
    let plugins = all(client).await.context("failed to list the Plugins")?;
    let mut at_work = plugins.into_iter().filter(|plugin| !plugin.spec.suspended);
    Ok(at_work.find(|plugin| is_of(plugin, manifest)).map(|plugin| plugin.name_any()))
}

/// All `Plugin`s. A host that takes its plugins from a directory needs no such kind.
async fn all(client: &Client) -> kube::Result<Vec<Plugin>> {
    match list_plugins(client.clone()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        listed => listed,
    }
}

/// Whether it is the one at whose work a version would be. A kind has one plugin that owns it, and any number of decorators: of them, the
/// one of the same name.
fn is_of(plugin: &Plugin, manifest: &Manifest) -> bool {
    let is_meant = match manifest.decorates {
        Some(_) => decorates(plugin) && plugin.name_any() == manifest.name,
        None => !decorates(plugin),
    };
    has_kind(plugin, &manifest.reconciles) && is_meant
}

fn has_kind(plugin: &Plugin, kind: &KindRef) -> bool {
    reconciled(plugin).is_some_and(|own| own.is_same_kind(kind))
}

fn decorates(plugin: &Plugin) -> bool {
    plugin.status.as_ref().is_some_and(|status| status.decorates)
}

fn reconciled(plugin: &Plugin) -> Option<KindRef> {
    Some(plugin.status.as_ref()?.reconciles.as_ref()?.kind_ref())
}
