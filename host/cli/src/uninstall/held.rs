//! Objects that only a plugin lets go: which of them have its finalizers, and how those are taken off. Deletes nothing.

use std::collections::BTreeSet;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::{GroupVersionKind, PartialObjectMeta},
};
use pilothouse_controller::labels::{field_manager, finalizer};
use serde_json::json;

/// An object with finalizers that only a plugin takes off.
pub struct Held {
    resource: ApiResource,
    object: PartialObjectMeta<DynamicObject>,
    finalizers: Vec<String>,
}

impl Held {
    /// An object with some of these finalizers; none if it has none of them.
    pub fn of(
        resource: &ApiResource,
        object: PartialObjectMeta<DynamicObject>,
        is_plugins: impl Fn(&String) -> bool,
    ) -> Option<Self> {
        let finalizers: Vec<_> = object.finalizers().iter().filter(|it| is_plugins(it)).cloned().collect();
        (!finalizers.is_empty()).then(|| Self { resource: resource.clone(), object, finalizers })
    }

    /// Takes the finalizers off. An object that is gone or changes meanwhile is looked at again.
    ///
    /// # Errors
    /// If the API server refuses it.
    pub async fn release(&self, client: &Client) -> anyhow::Result<()> {
        let Self { resource, object, finalizers } = self;
        let kept: Vec<_> = object.finalizers().iter().filter(|it| !finalizers.contains(it)).collect();
        let patch = json!({"metadata": {
            "uid": object.uid(), "resourceVersion": object.resource_version(), "finalizers": kept,
        }});
        let api = match object.namespace() {
            Some(namespace) => Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, resource),
            None => Api::all_with(client.clone(), resource),
        };
        match api.patch_metadata(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("failed to take the finalizer off '{}'", object.name_any()))
            }
        }
    }
}

/// The objects of custom kinds with finalizers of a plugin whose `Plugin` is gone, and with it the word which kind it reconciled. Which
/// finalizers it has set is in the managed fields of the objects.
///
/// # Errors
/// If the API server does not list the kinds or their objects.
pub async fn held_by(client: &Client, plugin: &str) -> anyhow::Result<Vec<Held>> {
    let (manager, usual) = (field_manager(plugin), finalizer(plugin));
    let definitions = Api::<CustomResourceDefinition>::all(client.clone()).list(&ListParams::default()).await;
    let mut held = Vec::new();
    for definition in definitions.context("failed to list the custom kinds")? {
        let Some(resource) = served(&definition) else { continue };
        let all = Api::<DynamicObject>::all_with(client.clone(), &resource).list_metadata(&ListParams::default()).await;
        let all = match all {
            // It was deleted meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            all => all.with_context(|| format!("failed to list the objects of kind {}", resource.kind))?,
        };
        held.extend(all.items.into_iter().filter_map(|object| {
            let set = finalizers_set_by(&object, &manager);
            Held::of(&resource, object, |it| *it == usual || set.contains(it))
        }));
    }
    Ok(held)
}

/// A version in which a custom kind is served.
fn served(definition: &CustomResourceDefinition) -> Option<ApiResource> {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served)?;
    let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
    Some(ApiResource::from_gvk_with_plural(&kind, &spec.names.plural))
}

/// The finalizers of an object that a field manager has set.
fn finalizers_set_by(object: &PartialObjectMeta<DynamicObject>, manager: &str) -> BTreeSet<String> {
    let own = object.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(manager));
    let fields = own.filter_map(|entry| entry.fields_v1.as_ref()?.0.pointer("/f:metadata/f:finalizers")?.as_object());
    let keys = fields.flat_map(|finalizers| finalizers.keys());
    // A member of a set, such as `v:"pilothouse.dev/web"`.
    keys.filter_map(|key| serde_json::from_str(key.strip_prefix("v:")?).ok()).collect()
}
