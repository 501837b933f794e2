//! The configuration of the version that works. While another version is tried or held, or was taken back, it keeps the one that it had: a
//! configuration comes together with a version, and neither of both is to reach objects that the other one may not reach yet. Loads nothing.

use std::sync::Arc;

use kube::ResourceExt;

use super::{PluginObjects, digest_text, rollout};
use crate::{
    api::{Plugin, StableConfig},
    plugin::PluginSettings,
    source::loader::SourceId,
};

/// The bytes of a configuration that the status has beside the spec. An object of the cluster may have about one and a half MiB.
const MAX_BYTES: usize = 256 << 10;

impl PluginObjects {
    /// What is said of the version that works while another one does not answer all objects. `settings`: what the `Plugin` says now.
    pub(super) fn settings_of_working(&self, plugin: &Plugin, settings: &PluginSettings) -> PluginSettings {
        let of_status = || of_status(plugin);
        let of_loaded = || self.of_loaded(plugin);
        // A host that may write knows better than what it has written before.
        let config = match self.may_write(&plugin.name_any()) {
            true => of_loaded().or_else(of_status),
            false => of_status().or_else(of_loaded),
        };
        config.map_or_else(|| settings.clone(), |config| settings.with_config(config))
    }

    /// What the status has of it, for a host that starts. None where no other version is ever tried or held, or if it is too long.
    pub(super) fn stable_config(&self, plugin: &Plugin) -> Option<StableConfig> {
        let loaded = self.looker.loader.loaded(&SourceId::Object(plugin.name_any()))?;
        let config = loaded.settings().config.as_deref().map(str::to_owned);
        let is_short = config.as_ref().is_none_or(|config| config.len() <= MAX_BYTES);
        let is_kept = plugin.spec.rollout.is_some() && is_short;
        is_kept.then(|| StableConfig { digest: digest_text::text(loaded.digest()), config })
    }

    /// Whether the version that works has another configuration than the `Plugin` has now.
    pub(super) fn keeps_config(&self, plugin: &Plugin) -> bool {
        let loaded = self.looker.loader.loaded(&SourceId::Object(plugin.name_any()));
        let now = PluginSettings::of_plugin(plugin, &self.namespace).config;
        loaded.is_some_and(|loaded| loaded.settings().config != now)
    }

    fn of_loaded(&self, plugin: &Plugin) -> Option<Option<Arc<str>>> {
        let loaded = self.looker.loader.loaded(&SourceId::Object(plugin.name_any()))?;
        (rollout::stable_of(plugin) == Some(loaded.digest())).then(|| loaded.settings().config.clone())
    }
}

/// The configuration of the version that works, as the status has it; none if it does not know it.
fn of_status(plugin: &Plugin) -> Option<Option<Arc<str>>> {
    let known = plugin.status.as_ref()?.stable_config.as_ref()?;
    let is_of_stable = digest_text::digits(&known.digest) == rollout::stable_of(plugin);
    is_of_stable.then(|| known.config.as_deref().map(Arc::from))
}
