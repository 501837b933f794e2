//! `pilothouse install`: stores a plugin in the cluster as a `Plugin` object, with what it needs, and waits until it is at work. Of a
//! plugin whose kinds come from its configuration, it asks here what it makes of that.

mod objects;
mod settings;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, Role},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use pilothouse_controller::{
    api::{
        AWAITING_APPROVAL, Condition, PlanState, Plugin, PluginStatus, RolloutStatus, ServiceAccountNamespace,
        find_plugin,
    },
    labels::COMPONENT_OF,
    plugin::rights::{self, Writer},
};
use pilothouse_engine::Manifest;
use serde_json::Value;
use tokio::time::Instant;

use self::{
    objects::{Component, pieces_of},
    settings::{Settings, SettingsArguments},
};
use crate::{
    cache_dir::CacheDir,
    cluster::{Cluster, block_on},
    config_file::ConfigFile,
    definition,
    duration::duration,
    offline, output,
    plugin_file::PluginFile,
    rbac::{
        Grantee,
        impersonation::{Asked, Impersonation, Rules, SAID},
        objects::{account_role, impersonation_role},
        resources::Resources,
    },
    table, yaml,
};

/// The field manager of everything that this command writes.
const MANAGER: &str = "pilothouse-install";

/// How long an install may take from its first piece to the `Plugin` that names it.
const UNDER_WAY: SignedDuration = SignedDuration::from_mins(10);

/// How long a CRD may take until its kind is served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// How often the `Plugin` is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(300);

/// Install a plugin, or another version of it: store its component in ConfigMaps, give it an account with the rights that it needs,
/// create its Plugin object, and wait until it is at work.
///
/// The host has to run with --plugin-objects, and the CRD of Plugin has to be there (`pilothouse crd | kubectl apply -f -`). Another
/// version keeps the settings of the one before where the arguments say nothing else.
#[derive(Args)]
pub struct Install {
    /// The plugin.
    file: PathBuf,
    /// Print the objects as YAML for `kubectl apply -f -`, and contact no cluster.
    #[arg(long)]
    dry_run: bool,
    /// How long to wait until the plugin is at work.
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    settings: SettingsArguments,
    /// How the host may act as the plugin's account. Default: as was said for the version before, else auto: constrained where the API
    /// server is Kubernetes 1.36 or newer, for there the feature gate ConstrainedImpersonation is on unless somebody has turned it off. Without
    /// a cluster to ask (--dry-run), auto is unconstrained.
    #[arg(long, value_name = "HOW", conflicts_with = "no_account")]
    impersonation: Option<Asked>,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    grantee: Grantee,
}

/// What is installed.
pub(crate) struct Installed {
    /// What it asks for.
    pub(crate) manifest: Manifest,
    /// The component.
    pub(crate) bytes: Vec<u8>,
    config: Option<ConfigFile>,
}

impl Installed {
    fn config(&self) -> Option<&Value> {
        self.config.as_ref().map(|file| &file.config)
    }

    fn definitions(&self) -> &[Value] {
        self.config.as_ref().map(|file| file.definitions.as_slice()).unwrap_or_default()
    }
}

impl Install {
    async fn read(&self) -> anyhow::Result<Installed> {
        let (file, config) = (PluginFile::read(&self.file)?, self.settings.config_file()?);
        let manifest = offline::manifest_of(&file, &self.cache_dir, config.as_ref().map(|file| &file.config)).await;
        let manifest = manifest.with_context(|| format!("'{}'", self.file.display()))?;
        Ok(Installed { manifest, bytes: file.bytes, config })
    }

    /// Runs the command.
    ///
    /// # Errors
    /// If the file is not a plugin, the API server refuses something, or the plugin does not come to work. The error says why.
    pub fn execute(&self) -> anyhow::Result<()> {
        let file = block_on(self.read())?;
        let component = Component::of(&file, &self.grantee.host().namespace);
        let component = component.context("failed to compress the component")?;
        if self.dry_run {
            let settings = self.settings.settings(&file.manifest, file.config(), None)?;
            let how = Impersonation::said(self.impersonation, None).unwrap_or_else(Impersonation::anywhere);
            let rights = self.rights(&file, &settings, &self.grantee.resources([&file.manifest])?, how);
            let before: Vec<_> = file.definitions().iter().chain(&rights).cloned().collect();
            return print(&component, &before, &component.plugin(&file.manifest.name, &settings));
        }
        block_on(self.install(&file, &component))
    }

    /// The rights that the host needs, and those of the plugin's account.
    fn rights(&self, file: &Installed, settings: &Settings, resources: &Resources, how: Impersonation) -> Vec<Value> {
        let objects = self.grantee.role_objects(resources);
        let writer = if settings.account.is_some() { Writer::Account } else { Writer::Host };
        let of_account = settings.account.iter().flat_map(|account| objects.of_account(&file.manifest, account, how));
        objects.of_host(&file.manifest, writer).into_iter().chain(of_account).collect()
    }

    /// How the host may act as the account, if there is one.
    async fn impersonation(&self, client: &Client, plugin: &str, settings: &Settings) -> anyhow::Result<Impersonation> {
        if settings.account.is_none() {
            return Ok(Impersonation::anywhere());
        }
        let before = self.impersonation_before(client, plugin).await?;
        match Impersonation::said(self.impersonation, before) {
            Some(said) => Ok(said),
            None => Impersonation::of(client).await,
        }
    }

    /// What somebody has asked for at an installation before, wherever the account was then.
    async fn impersonation_before(&self, client: &Client, plugin: &str) -> anyhow::Result<Option<Rules>> {
        let name = impersonation_role(plugin);
        let in_namespace = Api::<Role>::namespaced(client.clone(), &self.grantee.host().namespace);
        let in_cluster = Api::<ClusterRole>::all(client.clone());
        let found = [
            in_namespace.get_metadata_opt(&name).await.map(|it| it.map(|it| it.metadata)),
            in_cluster.get_metadata_opt(&name).await.map(|it| it.map(|it| it.metadata)),
        ];
        for found in found {
            let found = found.with_context(|| format!("failed to look for the role '{name}'"))?;
            let said = found.and_then(|found| Rules::named(found.annotations?.get(SAID)?));
            if said.is_some() {
                return Ok(said);
            }
        }
        Ok(None)
    }

    async fn install(&self, file: &Installed, component: &Component) -> anyhow::Result<()> {
        let (client, name) = (self.cluster.client().await?, &file.manifest.name);
        let plugins = Api::<Plugin>::all(client.clone());
        let help = "failed to look for the Plugin; is its CRD there? `pilothouse crd | kubectl apply -f -`";
        let before = find_plugin(client.clone(), name).await.context(help)?;
        let settings =
            self.settings.settings(&file.manifest, file.config(), before.as_ref().map(|before| &before.spec))?;
        let resources = self.grantee.resources([&file.manifest])?;
        let how = self.impersonation(&client, name, &settings).await?;
        // The rights name the plurals of their kinds.
        for found in file.definitions() {
            let what = || format!("the CRD '{}'", found["metadata"]["name"].as_str().unwrap_or_default());
            definition::apply(&client, found, MANAGER, ESTABLISHED).await.with_context(what)?;
        }
        let (maps, pieces) =
            (Api::<ConfigMap>::namespaced(client.clone(), &self.grantee.host().namespace), &component.pieces);
        for (number, piece) in pieces.iter().enumerate() {
            eprintln!("{name}: storing the component, piece {} of {}", number + 1, pieces.len());
            maps.patch(&piece.name_any(), &applying(), &Patch::Apply(piece)).await.context("failed to store it")?;
        }
        let resources = resources.asked(&client, &rights::of_host(&file.manifest, Writer::Host)).await;
        for right in self.rights(file, &settings, &resources, how) {
            apply(&client, name, &right).await?;
        }
        let plugin = component.plugin(name, &settings);
        let applied = plugins.patch(name, &applying(), &Patch::Apply(&plugin)).await;
        let status =
            self.until_ready(&client, &applied.context("failed to apply the Plugin")?, component.digest()).await?;
        tell_about_accounts(name, &settings);
        match status.stable_digest.as_deref() == Some(component.digest()) {
            true => remove_former_pieces(&maps, name, pieces, &status).await,
            // The version before is still needed.
            false => Ok(()),
        }
    }

    /// Waits until the version with this digest is at work, is tried in a canary or waits for approval, and says what happens meanwhile.
    async fn until_ready(&self, client: &Client, applied: &Plugin, digest: &str) -> anyhow::Result<PluginStatus> {
        let (name, generation) = (applied.name_any(), applied.metadata.generation.unwrap_or_default());
        let (end, mut told) = (Instant::now() + self.timeout, String::new());
        loop {
            let plugin = find_plugin(client.clone(), &name).await.context("failed to look at the Plugin")?;
            let Some(plugin) = plugin else { bail!("somebody has deleted the Plugin meanwhile") };
            if let Some(other) = plugin.spec.digest.as_deref().filter(|named| *named != digest) {
                bail!("somebody has installed another version meanwhile, {}", table::printable(other));
            }
            let status = plugin.status.unwrap_or_default();
            // What is said of an earlier generation says nothing about this one.
            let condition = |kind: &str| {
                let mut said = status.conditions.iter().filter(|it| it.observed_generation >= generation);
                said.find(|condition| condition.condition_type == kind)
            };
            let plan = status.plan.as_ref().map(|plan| plan.state);
            let now = match condition("Ready") {
                Some(_) if let Some(waiting) = condition("Reconciling").filter(|it| it.reason == AWAITING_APPROVAL) => {
                    if plan != Some(PlanState::Computing) {
                        eprintln!("{name}: {}", table::printable(&waiting.message));
                        return Ok(status);
                    }
                    waiting.message.clone()
                }
                None => "no host has looked at it yet; one has to run with --plugin-objects".to_owned(),
                Some(ready) if ready.status == "True" => match progress(&status, digest) {
                    Progress::Arrived(told) => {
                        eprintln!("{name}: {}", table::printable(&told));
                        return Ok(status);
                    }
                    Progress::Coming(told) => told,
                },
                Some(ready) => words(ready),
            };
            if let Some(stalled) = condition("Stalled") {
                bail!("the plugin does not come to work: {}", words(stalled));
            }
            if now != told {
                eprintln!("{name}: {}", table::printable(&now));
                told = now;
            }
            if Instant::now() > end {
                bail!("the plugin is not at work after {:?}: {told}", self.timeout);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// How far the version is that is installed, while something works.
enum Progress {
    /// There is nothing to wait for.
    Arrived(String),
    /// The version before works.
    Coming(String),
}

fn progress(status: &PluginStatus, digest: &str) -> Progress {
    let version = status.version.as_deref().unwrap_or_default();
    if status.digest.as_deref() == Some(digest) {
        return Progress::Arrived(format!("version {version} is at work"));
    }
    let tried = status.rollout.as_ref().filter(|rollout| rollout.digest == digest && rollout.goes_on());
    match tried {
        Some(RolloutStatus { version: tried, step, steps, objects, .. }) => Progress::Arrived(format!(
            "version {tried} answers {objects} of the objects, step {step} of {steps} of its canary; version {version} answers the others. \
             `pilothouse list` tells what becomes of it"
        )),
        None => Progress::Coming(format!("version {version} is at work; the new one is not tried yet")),
    }
}

fn words(condition: &Condition) -> String {
    match condition.message.is_empty() {
        true => condition.reason.clone(),
        false => condition.message.clone(),
    }
}

fn applying() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}

/// Applies an object that belongs to a plugin. An account that somebody else has made is used as it is, and what belongs to another plugin is
/// left alone.
async fn apply(client: &Client, plugin: &str, object: &Value) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let what = || format!("{} '{}'", types.kind, object.name_any());
    let present =
        api.get_metadata_opt(&object.name_any()).await.with_context(|| format!("failed to look for {}", what()))?;
    match present.map(|present| present.labels().get(COMPONENT_OF).cloned()) {
        Some(owner) if owner.as_deref() != Some(plugin) && types.kind == "ServiceAccount" => return Ok(()),
        Some(Some(other)) if other != plugin => {
            bail!(
                "{} belongs to the plugin '{}', and is left alone; uninstall that one, or rename this one",
                what(),
                table::printable(&other)
            )
        }
        _ => {}
    }
    let applied = api.patch(&object.name_any(), &applying(), &Patch::Apply(&object)).await;
    applied.with_context(|| format!("failed to apply {}", what()))?;
    Ok(())
}

/// Deletes the pieces of versions before this one, which nobody needs any more. Those of a version that has never worked may be of an install
/// that is under way: they stay for a while.
async fn remove_former_pieces(
    maps: &Api<ConfigMap>,
    plugin: &str,
    pieces: &[ConfigMap],
    status: &PluginStatus,
) -> anyhow::Result<()> {
    let worked: Vec<_> = status.versions.iter().map(|version| pieces_of(plugin, &version.digest)).collect();
    let of_plugin = ListParams::default().labels(&format!("{COMPONENT_OF}={plugin}"));
    let present: Vec<_> = pieces.iter().map(ResourceExt::name_any).collect();
    for former in maps.list_metadata(&of_plugin).await.context("failed to list former pieces")? {
        let created = former.creation_timestamp().map(|created| created.0);
        let is_old = created.is_none_or(|created| Timestamp::now().duration_since(created) > UNDER_WAY);
        let has_worked = worked.iter().any(|prefix| former.name_any().starts_with(prefix));
        if !present.contains(&former.name_any()) && (is_old || has_worked) {
            maps.delete(&former.name_any(), &Default::default()).await.context("failed to delete a former piece")?;
        }
    }
    Ok(())
}

/// Says what is left to do for who owns the namespaces.
fn tell_about_accounts(plugin: &str, settings: &Settings) {
    let Some(account) = settings.account.as_ref().filter(|it| it.place == ServiceAccountNamespace::Object) else {
        return;
    };
    let (account, role) = (&account.name, account_role(plugin));
    eprintln!(
        "{plugin}: it works in a namespace once that has an account for it:\n  kubectl -n NAMESPACE create serviceaccount {account}\n  \
         kubectl -n NAMESPACE create rolebinding {account} --clusterrole={role} --serviceaccount=NAMESPACE:{account}"
    );
}

fn print(component: &Component, rights: &[Value], plugin: &Plugin) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    for piece in &component.pieces {
        documents.push(yaml::print(&serde_json::to_value(piece)?)?);
    }
    for right in rights {
        documents.push(yaml::print(right)?);
    }
    documents.push(yaml::print(&serde_json::to_value(plugin)?)?);
    Ok(output::print(documents.join("---\n"))?)
}
