//! Finalizers: only objects of plugins that export `finalizer` get one, before anything is made for them; it goes when the
//! plugin is done. Touches no finalizer but the plugin's own.

use kube::{
    Client,
    api::{Patch, PatchParams},
};
use pilothouse_engine::Manifest;
use serde_json::{Value, json};

use crate::{labels, object::Object, pipeline::apply::Failure, plugin::ActivePlugin};

/// What a finalizer asks for before an object is reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerStep {
    /// Reconcile it.
    Reconcile,
    /// Put the finalizer on it first.
    Add,
    /// It is being deleted: let the plugin finalize it.
    Finalize,
    /// It is being deleted and its plugin has nothing to finalize any more: take the finalizer off.
    Release,
    /// It is being deleted and nothing of ours holds it: leave it to garbage collection.
    Ignore,
}

/// Whose turn it is.
pub fn next_step(object: &Object, manifest: &Manifest) -> FinalizerStep {
    let held = object.finalizers.iter().any(|finalizer| is_ours(finalizer, manifest));
    match (object.deleting, manifest.finalizes, held) {
        (false, true, false) => FinalizerStep::Add,
        (false, _, _) => FinalizerStep::Reconcile,
        (true, true, true) => FinalizerStep::Finalize,
        (true, false, true) => FinalizerStep::Release,
        (true, _, false) => FinalizerStep::Ignore,
    }
}

/// Whether garbage collection deletes or releases an object's children right now, as whoever deletes the object asked for:
/// `kubectl delete --cascade=foreground` or `--cascade=orphan`.
pub fn is_being_collected(object: &Object) -> bool {
    object.deleting && object.finalizers.iter().any(|held| matches!(&**held, "foregroundDeletion" | "orphan"))
}

/// The finalizer that objects of a plugin get.
fn finalizer(manifest: &Manifest) -> String {
    manifest.finalizer.clone().unwrap_or_else(|| labels::finalizer(&manifest.name))
}

/// Whether a finalizer is the plugin's: also the default one, which an earlier version without a name of its own put on.
fn is_ours(held: &str, manifest: &Manifest) -> bool {
    manifest.finalizer.as_deref() == Some(held) || held == labels::finalizer(&manifest.name)
}

/// Puts the plugin's finalizer on an object.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn add(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let mut finalizers: Vec<_> = object.finalizers.iter().map(ToString::to_string).collect();
    finalizers.push(finalizer(plugin.manifest()));
    write(client, plugin, object, json!(finalizers)).await
}

/// Takes the plugin's finalizer off an object.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn remove(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let others = object.finalizers.iter().filter(|held| !is_ours(held, plugin.manifest()));
    let others: Vec<_> = others.map(ToString::to_string).collect();
    write(client, plugin, object, json!(others)).await
}

/// Writes the whole list, on exactly the version that was read: nobody else's finalizer is lost to a race.
async fn write(client: &Client, plugin: &ActivePlugin, object: &Object, finalizers: Value) -> Result<(), Failure> {
    let Some(installed) = plugin.objects.installed() else { return Ok(()) };
    let api = installed.api(client, &object.name.namespace);
    let metadata = json!({"resourceVersion": &*object.resource_version, "finalizers": finalizers});
    let parameters = PatchParams { field_manager: Some(plugin.field_manager.clone()), ..PatchParams::default() };
    match api.patch(&object.name.name, &parameters, &Patch::Merge(json!({"metadata": metadata}))).await {
        Ok(incoming) => {
            let after = incoming.into_object(&installed.resource);
            // Nothing holds it any more: the answer is the last state of an object that is gone.
            if after.deleting && after.finalizers.is_empty() {
                plugin.objects.store().mark_terminated(object);
            } else {
                plugin.objects.store().record_write(after);
            }
            Ok(())
        }
        // Gone already: that is what a finalizer is taken off for.
        Err(kube::Error::Api(status)) if status.code == 404 => {
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
    fn only_finalizing_plugins_hold_objects_and_none_holds_one_for_ever() {
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
        ] {
            let mut finalizers = vec!["example.com/other".into()];
            finalizers.extend(held.map(Into::into));
            let object = Object { deleting, finalizers, ..Object::sample("ns", "a") };
            let turn = next_step(&object, &manifest(finalizes, name));
            assert_eq!(turn, expected, "{deleting} {finalizes} {name:?} {held:?}");
        }
    }
}
