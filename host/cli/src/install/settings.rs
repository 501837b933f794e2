//! What an installation says of a plugin beside its component: what the arguments ask for, else what the `Plugin` that is there has.
//! Makes no request.

use std::path::PathBuf;

use anyhow::{anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use pilothouse_controller::{
    api::{
        Grants, JsonText, LabelSelector, LimitsSpec, PluginSpec, RolloutSpec, ServiceAccountNamespace, VerificationSpec,
    },
    plugin::{self, is_privileged, is_secret},
};
use pilothouse_engine::{Manifest, contract::KindRef};
use serde_json::Value;

use crate::{
    config_file::ConfigFile,
    kind_name::kind_name,
    rbac::objects::{PluginAccount, name_for},
};

/// What an installation says of a plugin.
#[derive(Args)]
pub struct SettingsArguments {
    /// YAML or JSON file with the plugin's configuration, or with a Plugin that has it; CRDs in it are applied as well. Default: that of the
    /// Plugin that is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Grant a kind that has to be granted by name, because it gives rights or holds credentials: such as Secret, or
    /// RoleBinding.rbac.authorization.k8s.io. Can be given several times.
    #[arg(long = "grant", value_name = "KIND[.GROUP]")]
    grants: Vec<String>,
    /// The service account whose rights the plugin works with. Default: that of the Plugin that is there, else pilothouse-plugin-NAME.
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Where that account is: one in the host's namespace, which is created, or one in the namespace of each object, which who owns the
    /// namespace creates.
    #[arg(long, value_name = "WHERE")]
    account_in: Option<Place>,
    /// No account: the plugin works with the host's rights.
    #[arg(long, conflicts_with_all = ["account", "account_in"])]
    no_account: bool,
    /// Reconcile only the objects of namespaces with this label. Can be given several times; all have to match. Default: as the Plugin
    /// that is there, else all namespaces.
    #[arg(long = "namespaces", value_name = "LABEL=VALUE", value_parser = label)]
    namespaces: Vec<(String, String)>,
}

/// Where the account of a plugin is.
#[derive(Clone, Copy, ValueEnum)]
enum Place {
    /// In the host's namespace.
    Host,
    /// In the namespace of each object.
    Object,
}

impl From<Place> for ServiceAccountNamespace {
    fn from(place: Place) -> Self {
        match place {
            Place::Host => Self::Host,
            Place::Object => Self::Object,
        }
    }
}

fn label(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => bail!("it is not LABEL=VALUE, such as team=web"),
    }
}

/// What an installation says of a plugin beside its component.
pub struct Settings {
    /// Who must have signed it.
    pub verification: Option<VerificationSpec>,
    /// What it may use.
    pub limits: Option<LimitsSpec>,
    /// Its configuration.
    pub config: Option<JsonText>,
    /// What it may do at most: exactly what its manifest asks for.
    pub grants: Grants,
    /// Its account; none for the host's own.
    pub account: Option<PluginAccount>,
    /// The namespaces that it works in; none for all.
    pub namespaces: Option<LabelSelector>,
    /// Whether it is suspended.
    pub suspended: bool,
    /// How another version takes over.
    pub rollout: Option<RolloutSpec>,
}

impl SettingsArguments {
    /// What the file with the configuration has; nothing without one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn config_file(&self) -> anyhow::Result<Option<ConfigFile>> {
        self.config.as_deref().map(ConfigFile::read).transpose()
    }

    /// The settings for a plugin with this manifest, in the place of a `Plugin` that may be there.
    ///
    /// # Errors
    /// If the manifest asks for a kind that has to be granted by name and is not, or the configuration cannot be read.
    pub fn settings(
        &self,
        manifest: &Manifest,
        given: Option<&Value>,
        before: Option<&PluginSpec>,
    ) -> anyhow::Result<Settings> {
        self.check_grants(manifest, before.map(|before| &before.grants))?;
        let config = given.map(JsonText::from).or_else(|| before?.config.clone());
        manifest
            .check_config(config.as_ref().map(JsonText::text))
            .map_err(|error| anyhow!("{error}; give another with --config FILE"))?;
        Ok(Settings {
            verification: before.and_then(|before| before.verification.clone()),
            limits: before.and_then(|before| before.limits.clone()),
            config,
            grants: plugin::Grants::of_manifest(manifest),
            account: self.account(&manifest.name, before),
            namespaces: self.namespaces().or_else(|| before?.namespaces.clone()),
            suspended: before.is_some_and(|before| before.suspended),
            rollout: before.and_then(|before| before.rollout.clone()),
        })
    }

    fn account(&self, plugin: &str, before: Option<&PluginSpec>) -> Option<PluginAccount> {
        let is_asked_for = self.account.is_some() || self.account_in.is_some();
        let had_none = before.is_some_and(|before| before.service_account_name.is_none());
        if self.no_account || (had_none && !is_asked_for) {
            return None;
        }
        let name = self.account.clone().or_else(|| before?.service_account_name.clone());
        let place = self.account_in.map(ServiceAccountNamespace::from);
        let before = before.map(|before| before.service_account_namespace);
        Some(PluginAccount {
            name: name.unwrap_or_else(|| name_for(plugin)),
            place: place.or(before).unwrap_or_default(),
        })
    }

    fn namespaces(&self) -> Option<LabelSelector> {
        let match_labels = self.namespaces.iter().cloned().collect();
        (!self.namespaces.is_empty()).then(|| LabelSelector { match_labels, ..LabelSelector::default() })
    }

    /// Whether each kind that has to be granted by name is, here or by the `Plugin` that is there.
    fn check_grants(&self, manifest: &Manifest, before: Option<&Grants>) -> anyhow::Result<()> {
        let sensitive = manifest.children.iter().filter(|kind| is_privileged(kind));
        let looked_up = manifest.lookups.iter().map(|lookup| &lookup.kind);
        let sensitive: Vec<_> =
            sensitive.chain(looked_up.filter(|kind| is_privileged(kind) || is_secret(kind))).collect();
        let missing =
            sensitive.iter().find(|kind| !self.grants.contains(&kind_name(kind)) && !is_granted(before, kind));
        if let Some(kind) = missing {
            let grant = kind_name(kind);
            bail!(
                "the plugin asks for {kind}, which gives rights or holds credentials; if it shall have that, grant it by name: \
                 --grant {grant}"
            );
        }
        let unknown = self.grants.iter().find(|granted| !sensitive.iter().any(|kind| kind_name(kind) == **granted));
        ensure!(
            unknown.is_none(),
            "the plugin does not ask for {}, or it needs no grant by name; leave out --grant",
            unknown.map(String::as_str).unwrap_or_default()
        );
        Ok(())
    }
}

fn is_granted(before: Option<&Grants>, kind: &KindRef) -> bool {
    let Some(Grants { reconciles: _, children, lookups }) = before else { return false };
    let is = |group: &str, name: &str| group == kind.group() && name == kind.kind;
    children.iter().flatten().any(|granted| is(&granted.group, &granted.kind))
        || lookups.iter().flatten().any(|granted| is(&granted.group, &granted.kind))
}
