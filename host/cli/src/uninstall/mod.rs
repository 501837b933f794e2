//! `pilothouse uninstall`: takes a plugin out of a cluster, after it has said what becomes of its objects. Deletes no object of a
//! plugin and no child; what a decorator has made is taken away by the host.

mod held;

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use k8s_openapi::api::{
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams},
    core::{GroupVersionKind, PartialObjectMeta},
    discovery,
};
use pilothouse_controller::{
    api::{KindName, Plugin, PluginStatus, find_plugin},
    labels::{COMPONENT_OF, DECORATOR, ON_REMOVAL, decoration},
};
use tokio::time::{Instant, sleep};

use self::held::{Held, held_by};
use crate::{
    cluster::{Cluster, block_on},
    confirm::confirm,
};

/// How long a host may take to notice that a `Plugin` is gone. A reconcile that is under way may add a finalizer until then.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// Uninstall a plugin: delete its Plugin object, the ConfigMaps with its component, its account and its rights.
///
/// Its objects and their children stay as they are; nothing reconciles them any more. What a plugin has made that decorates objects of others
/// is taken away. What would happen is said first, and has to be confirmed.
#[derive(Args)]
pub struct Uninstall {
    /// The name of the plugin.
    name: String,
    /// Take the plugin's finalizers off its objects, so that they can be deleted without it. What it would have cleaned up stays.
    #[arg(long)]
    release: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    cluster: Cluster,
}

/// How long a host may take to take away what a decorator has made, before its rights go.
const TAKEN_AWAY_WITHIN: Duration = Duration::from_secs(60);

/// The objects of a plugin.
struct Objects {
    kind: String,
    total: usize,
    held: Vec<Held>,
}

impl Uninstall {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such plugin, nobody confirms, or the API server refuses something.
    pub fn execute(&self) -> anyhow::Result<()> {
        block_on(self.uninstall())
    }

    async fn uninstall(&self) -> anyhow::Result<()> {
        let (client, name) = (self.cluster.client().await?, &self.name);
        let plugins = Api::<Plugin>::all(client.clone());
        let Some(plugin) = find_plugin(client.clone(), name).await.context("failed to look for the Plugin")? else {
            return self.clean_up(&client).await;
        };
        let status = plugin.status.clone().unwrap_or_default();
        let objects = match &status.reconciles {
            Some(kind) => objects(&client, kind, &status.finalizers).await?,
            None => None,
        };
        match status.decorates {
            true => eprintln!(
                "{name}: it decorates objects that are not its own; its labels and annotations are taken off them, and its children are \
                 deleted"
            ),
            false => self.tell(objects.as_ref()),
        }
        confirm(&format!("Uninstall '{name}'?"), self.yes)?;
        plugins.delete(name, &DeleteParams::default()).await.context("failed to delete the Plugin")?;
        eprintln!("{name}: the Plugin is deleted");
        if status.decorates {
            self.until_taken_away(&client, &status).await?;
        }
        if let (true, Some(objects), Some(kind)) = (self.release, objects, &status.reconciles) {
            let again = async || {
                Ok(self::objects(&client, kind, &status.finalizers).await?.map_or_else(Vec::new, |it| it.held))
            };
            self.release_all(&client, objects.held, again).await?;
        }
        self.delete_belongings(&client).await
    }

    /// Deletes what is left of a plugin whose `Plugin` somebody has deleted, and releases its objects if that is asked for.
    async fn clean_up(&self, client: &Client) -> anyhow::Result<()> {
        let name = &self.name;
        let of_plugin = ListParams::default().labels(&format!("{COMPONENT_OF}={name}")).limit(1);
        let components = Api::<ConfigMap>::all(client.clone()).list_metadata(&of_plugin).await;
        let roles = Api::<ClusterRole>::all(client.clone()).list_metadata(&of_plugin).await;
        let what = || format!("failed to look for what belongs to '{name}'");
        let has_belongings =
            !components.with_context(what)?.items.is_empty() || !roles.with_context(what)?.items.is_empty();
        let held = if self.release { held_by(client, name).await? } else { Vec::new() };
        match (has_belongings, self.release) {
            (true, _) => {
                eprintln!("{name}: the Plugin is deleted already; its component, its account and its rights are left")
            }
            (false, true) if !held.is_empty() => {
                eprintln!("{name}: the Plugin is deleted already, and all that belonged to it")
            }
            (false, true) => bail!("there is no Plugin '{name}', and no object of a custom kind has a finalizer of it"),
            (false, false) => bail!(
                "there is no Plugin '{name}'; `pilothouse list` shows those that there are, and --release takes off the finalizers that \
                 one which is deleted has left"
            ),
        }
        if !held.is_empty() {
            eprintln!("{name}: its finalizers are taken off {} objects; what it would clean up stays", held.len());
        }
        confirm(&format!("Delete what is left of '{name}'?"), self.yes)?;
        if !held.is_empty() {
            self.release_all(client, held, async || held_by(client, name).await).await?;
        }
        self.delete_belongings(client).await
    }

    fn tell(&self, objects: Option<&Objects>) {
        let name = &self.name;
        let Some(Objects { kind, total, held, .. }) = objects else {
            return eprintln!(
                "{name}: nothing is known of its objects: it has never been at work, or its kind is gone"
            );
        };
        eprintln!(
            "{name}: {total} objects of kind {kind} and their children stay as they are; nothing reconciles them any more"
        );
        match (held.len(), self.release) {
            (0, _) => {}
            (held, true) => {
                eprintln!("{name}: its finalizers are taken off {held} objects; what it would clean up stays")
            }
            (held, false) => eprintln!(
                "{name}: {held} objects have a finalizer of it, and cannot be deleted without it. Delete them first, or take \
                 the finalizers off with --release"
            ),
        }
    }

    /// Waits until the host has taken away what the plugin has made as a decorator: it needs the plugin's rights for that.
    async fn until_taken_away(&self, client: &Client, status: &PluginStatus) -> anyhow::Result<()> {
        let (name, end) = (&self.name, Instant::now() + TAKEN_AWAY_WITHIN);
        loop {
            let left = decorations(client, name, status).await?;
            if left.is_empty() {
                eprintln!("{name}: nothing is left of what it has made");
                return Ok(());
            }
            if Instant::now() > end {
                bail!(
                    "the host has not taken away what the plugin has made: {}; is one running? Its account and its rights stay, for that \
                     needs them. Run it again with the same name once nothing is left, or delete what has the label \
                     {COMPONENT_OF}={name}",
                    left.join(", ")
                );
            }
            sleep(NOTICED_WITHIN).await;
        }
    }

    /// Takes the finalizers off, until another look after the host has noticed finds none.
    async fn release_all(
        &self,
        client: &Client,
        mut held: Vec<Held>,
        again: impl AsyncFn() -> anyhow::Result<Vec<Held>>,
    ) -> anyhow::Result<()> {
        loop {
            for held in &held {
                held.release(client).await?;
            }
            eprintln!("{}: the finalizers of {} objects are taken off", self.name, held.len());
            sleep(NOTICED_WITHIN).await;
            held = again().await?;
            if held.is_empty() {
                return Ok(());
            }
        }
    }

    /// Deletes all that was made for the plugin.
    async fn delete_belongings(&self, client: &Client) -> anyhow::Result<()> {
        let deleted = [
            delete_labelled::<ConfigMap>(client, &self.name).await?,
            delete_labelled::<RoleBinding>(client, &self.name).await?,
            delete_labelled::<ClusterRoleBinding>(client, &self.name).await?,
            delete_labelled::<Role>(client, &self.name).await?,
            delete_labelled::<ClusterRole>(client, &self.name).await?,
            delete_labelled::<ServiceAccount>(client, &self.name).await?,
        ];
        let deleted: usize = deleted.into_iter().sum();
        eprintln!("{}: {deleted} objects with its component, its account and its rights are deleted", self.name);
        Ok(())
    }
}

/// What is left of a decorator: the children that it would delete, and the objects with its labels and annotations.
async fn decorations(client: &Client, plugin: &str, status: &PluginStatus) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    for kind in &status.children {
        let of_plugin = ListParams::default().labels(&format!("{DECORATOR}={plugin}"));
        let children = list(client, kind, &of_plugin).await?.into_iter().flat_map(|(_, all)| all);
        let is_kept = |child: &PartialObjectMeta<DynamicObject>| child.annotations().contains_key(ON_REMOVAL);
        left.extend(children.filter(|it| !is_kept(it)).map(|it| format!("{} '{}'", kind.kind, it.name_any())));
    }
    if let Some(kind) = &status.reconciles {
        let mark = decoration(plugin);
        let objects = list(client, kind, &ListParams::default()).await?.into_iter().flat_map(|(_, all)| all);
        let is_left = |it: &PartialObjectMeta<DynamicObject>| {
            it.annotations().contains_key(&mark) && it.metadata.deletion_timestamp.is_none()
        };
        left.extend(objects.filter(is_left).map(|it| format!("{} '{}'", kind.kind, it.name_any())));
    }
    Ok(left)
}

/// The objects that a plugin reconciles; none if their kind is not installed any more.
async fn objects(client: &Client, kind: &KindName, finalizers: &[String]) -> anyhow::Result<Option<Objects>> {
    let Some((resource, all)) = list(client, kind, &ListParams::default()).await? else { return Ok(None) };
    let total = all.len();
    let held = all.into_iter().filter_map(|object| Held::of(&resource, object, |it| finalizers.contains(it))).collect();
    Ok(Some(Objects { kind: kind.kind.clone(), total, held }))
}

/// The metadata of the objects of a kind in all namespaces; none if it is not installed any more.
async fn list(
    client: &Client,
    kind: &KindName,
    which: &ListParams,
) -> anyhow::Result<Option<(ApiResource, Vec<PartialObjectMeta<DynamicObject>>)>> {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    let found = discovery::pinned_kind(client, &GroupVersionKind::gvk(group, version, &kind.kind)).await;
    let resource = match found {
        Ok((resource, _)) => resource,
        Err(kube::Error::Discovery(_)) => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("failed to look for {}", kind.kind)),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let all = api.list_metadata(which).await;
    let all = all.with_context(|| format!("failed to list the objects of kind {}", kind.kind))?;
    Ok(Some((resource, all.items)))
}

/// Deletes all objects of a kind that were made for a plugin.
async fn delete_labelled<K>(client: &Client, plugin: &str) -> anyhow::Result<usize>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let all = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let of_plugin = ListParams::default().labels(&format!("{COMPONENT_OF}={plugin}"));
    let what = || format!("failed to delete the objects of kind {} that belong to it", K::kind(&()));
    let found = all.list_metadata(&of_plugin).await.with_context(what)?;
    for object in &found.items {
        let api = match object.namespace() {
            Some(namespace) => Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource),
            None => all.clone(),
        };
        match api.delete(&object.name_any(), &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error).with_context(what),
        }
    }
    Ok(found.items.len())
}
