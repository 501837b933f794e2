//! The finalizers of an object: that of its plugin, if the plugin exports `finalizer`, and that of the host, if its children are in an
//! order. Each is added before the first child that needs it is created. The plugin's is removed when the plugin has finalized the object,
//! the host's when the children that go in an order are gone. What another version of the plugin has left, as one that was taken back, is
//! removed by the version that answers the object. Never touches a finalizer of somebody else.

use std::collections::BTreeSet;

use kube::{Client, api::Patch};
use pilothouse_engine::Manifest;
use serde_json::{Value, json};

use crate::{
    errors::is_object_missing,
    labels,
    object::Object,
    pipeline::apply::{Failure, merging},
    plugin::ActivePlugin,
};

/// What the finalizer requires before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerStep {
    /// Nothing: call `reconcile`.
    Reconcile,
    /// Add the finalizer first.
    Add,
    /// Remove first what other versions of the plugin have left.
    Shed,
    /// The object is being deleted: call `finalize`.
    Finalize,
    /// The object is being deleted, but this version of the plugin does not finalize any more: remove the finalizer.
    Release,
    /// The object is being deleted and its children are in an order: delete them one after the other.
    TearDown,
    /// The object is being deleted and does not have our finalizer: leave it to garbage collection.
    Ignore,
}

/// The next step for an object, from its deletion timestamp, its finalizers, the manifest, and the finalizers that other versions of the plugin
/// have.
pub fn next_step(object: &Object, manifest: &Manifest, others: &BTreeSet<String>) -> FinalizerStep {
    let held = object.finalizers.iter().any(|held| is_ours(held, manifest));
    let left = object.finalizers.iter().any(|held| is_left(held, manifest, others));
    match (object.deleting, manifest.finalizes, held || left) {
        // What is left goes with the same write.
        (false, true, _) if !held => FinalizerStep::Add,
        (false, _, _) if left => FinalizerStep::Shed,
        (false, _, _) => FinalizerStep::Reconcile,
        (true, true, true) => FinalizerStep::Finalize,
        (true, false, true) => FinalizerStep::Release,
        (true, _, false) if has_order(object) => FinalizerStep::TearDown,
        (true, _, false) => FinalizerStep::Ignore,
    }
}

/// Whether the object has the finalizer for children in an order.
pub fn has_order(object: &Object) -> bool {
    object.finalizers.iter().any(|held| **held == *labels::ORDERED_DELETION)
}

/// Whether garbage collection works on the object's children right now, after `kubectl delete --cascade=foreground` or
/// `--cascade=orphan`. The host must not interfere with it.
pub fn is_being_collected(object: &Object) -> bool {
    object.deleting && object.finalizers.iter().any(|held| matches!(&**held, "foregroundDeletion" | "orphan"))
}

/// The finalizers that objects may have because of a plugin with this manifest.
pub fn all_of(manifest: &Manifest) -> Vec<String> {
    own(manifest).into_iter().chain(manifest.orders_children.then(|| labels::ORDERED_DELETION.to_owned())).collect()
}

/// The finalizer that objects have because of a plugin with this manifest, if it finalizes them.
pub fn own(manifest: &Manifest) -> Option<String> {
    manifest.finalizes.then(|| finalizer(manifest))
}

/// The finalizer that this version of a plugin adds.
fn finalizer(manifest: &Manifest) -> String {
    manifest.finalizer.clone().unwrap_or_else(|| labels::finalizer(&manifest.name))
}

/// Whether a finalizer belongs to the plugin. The default name always does, because an earlier version may have used it.
fn is_ours(held: &str, manifest: &Manifest) -> bool {
    manifest.finalizer.as_deref() == Some(held) || held == labels::finalizer(&manifest.name)
}

/// Whether a finalizer is of another version of the plugin, and this one does not need it.
fn is_left(held: &str, manifest: &Manifest, others: &BTreeSet<String>) -> bool {
    others.contains(held) && !(manifest.finalizes && is_ours(held, manifest))
}

/// Adds the plugin's finalizer to an object, in the place of those that other versions have left.
///
/// # Errors
/// [`Failure`] if the API server refuses or the object has changed.
pub async fn add(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let mut finalizers = without_left(plugin, object);
    finalizers.push(finalizer(plugin.manifest()));
    write(client, plugin, object, json!(finalizers)).await
}

/// Removes from an object what other versions of its plugin have left.
///
/// # Errors
/// As for [`add`].
pub async fn shed(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    write(client, plugin, object, json!(without_left(plugin, object))).await
}

fn without_left(plugin: &ActivePlugin, object: &Object) -> Vec<String> {
    let is_left = |held: &str| is_left(held, plugin.manifest(), &plugin.other_finalizers);
    object.finalizers.iter().filter(|held| !is_left(held)).map(ToString::to_string).collect()
}

/// Adds the finalizer for children in an order.
///
/// # Errors
/// As for [`add`].
pub async fn add_order(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let mut finalizers: Vec<_> = object.finalizers.iter().map(ToString::to_string).collect();
    finalizers.push(labels::ORDERED_DELETION.to_owned());
    write(client, plugin, object, json!(finalizers)).await
}

/// Removes the finalizer for children in an order. An object that does not exist any more is no error.
///
/// # Errors
/// As for [`remove`].
pub async fn remove_order(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let others = object.finalizers.iter().filter(|held| ***held != *labels::ORDERED_DELETION);
    let others: Vec<_> = others.map(ToString::to_string).collect();
    write(client, plugin, object, json!(others)).await
}

/// Removes the plugin's finalizer from an object. An object that does not exist any more is no error.
///
/// # Errors
/// [`Failure`] if the API server refuses or the object has changed.
pub async fn remove(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let is_plugins = |held: &str| is_ours(held, plugin.manifest()) || plugin.other_finalizers.contains(held);
    let others = object.finalizers.iter().filter(|held| !is_plugins(held));
    let others: Vec<_> = others.map(ToString::to_string).collect();
    write(client, plugin, object, json!(others)).await
}

/// Writes the whole list. The resource version in the patch makes it fail if somebody else changed the list at the same time.
async fn write(client: &Client, plugin: &ActivePlugin, object: &Object, finalizers: Value) -> Result<(), Failure> {
    // The API server removes the objects of a kind together with the kind.
    let Some(installed) = plugin.objects.installed() else { return Ok(()) };
    let api = installed.api(client, &object.name.namespace);
    let metadata = json!({"resourceVersion": &*object.resource_version, "finalizers": finalizers});
    let parameters = merging(&plugin.field_manager);
    match api.patch(&object.name.name, &parameters, &Patch::Merge(json!({"metadata": metadata}))).await {
        Ok(incoming) => {
            let after = incoming.into_object(&installed.resource);
            // Without finalizers the API server has deleted the object: this answer is its last state, and no cache may keep it.
            if after.deleting && after.finalizers.is_empty() {
                plugin.objects.store().mark_terminated(object);
            } else {
                plugin.objects.store().record_write(after);
            }
            Ok(())
        }
        // Already deleted, which is the aim of removing a finalizer.
        Err(error) if is_object_missing(&error) => {
            plugin.objects.store().mark_terminated(object);
            Ok(())
        }
        Err(error) => Err(Failure::of(&error, "write the finalizer of", &object.name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::KindRef;

    use super::*;

    fn manifest(finalizes: bool, finalizer: Option<&str>) -> Manifest {
        let finalizer = finalizer.map(str::to_owned);
        Manifest { finalizer, finalizes, ..Manifest::new("web", "1", KindRef::new("example.com/v1", "Web")) }
    }

    #[test]
    fn only_finalizing_plugins_add_a_finalizer_and_a_left_over_one_is_removed() {
        let (default, named) = ("pilothouse.dev/web", "web.example.com/finalizer");
        for (deleting, finalizes, name, held, expected) in [
            (false, false, None, None, FinalizerStep::Reconcile),
            (false, true, None, None, FinalizerStep::Add),
            (false, true, None, Some(default), FinalizerStep::Reconcile),
            (true, true, None, Some(default), FinalizerStep::Finalize),
            (true, false, None, Some(default), FinalizerStep::Release),
            (true, true, None, None, FinalizerStep::Ignore),
            (true, false, None, None, FinalizerStep::Ignore),
            (false, true, Some(named), None, FinalizerStep::Add),
            (false, true, Some(named), Some(named), FinalizerStep::Reconcile),
            (true, true, Some(named), Some(named), FinalizerStep::Finalize),
            (true, true, Some(named), Some(default), FinalizerStep::Finalize),
            (true, false, None, Some(labels::ORDERED_DELETION), FinalizerStep::TearDown),
            (true, true, None, Some(labels::ORDERED_DELETION), FinalizerStep::TearDown),
            (false, false, None, Some(labels::ORDERED_DELETION), FinalizerStep::Reconcile),
        ] {
            let mut finalizers = vec!["example.com/other".into()];
            finalizers.extend(held.map(Into::into));
            let object = Object { deleting, finalizers, ..Object::sample("ns", "a") };
            let step = next_step(&object, &manifest(finalizes, name), &BTreeSet::new());
            assert_eq!(step, expected, "{deleting} {finalizes} {name:?} {held:?}");
        }
    }

    #[test]
    fn what_another_version_has_left_is_removed_or_counts_as_its_own() {
        let (default, named, left) = ("pilothouse.dev/web", "web.example.com/finalizer", "web.example.com/tried");
        for (deleting, finalizes, held, expected) in [
            (false, false, &[left][..], FinalizerStep::Shed),
            (false, false, &[default], FinalizerStep::Shed),
            (false, false, &["example.com/other"], FinalizerStep::Reconcile),
            (false, true, &[left], FinalizerStep::Add),
            (false, true, &[left, named], FinalizerStep::Shed),
            (false, true, &[named], FinalizerStep::Reconcile),
            (false, true, &[default], FinalizerStep::Reconcile),
            (true, true, &[left], FinalizerStep::Finalize),
            (true, false, &[left], FinalizerStep::Release),
        ] {
            let finalizers = held.iter().map(|held| (*held).into()).collect();
            let object = Object { deleting, finalizers, ..Object::sample("ns", "a") };
            let others = [default, named, left].map(str::to_owned).into();
            let step = next_step(&object, &manifest(finalizes, Some(named)), &others);
            assert_eq!(step, expected, "{deleting} {finalizes} {held:?}");
        }
    }
}
