//! Finalizers: only objects of plugins that export `finalizer` get one, before anything is made for them; it goes when the
//! plugin is done. Touches no finalizer but the plugin's own.

use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::apply::{Failure, explain};
use crate::{cache::Object, labels, plugin::ActivePlugin};

/// What a finalizer asks for before an object is reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
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
pub fn turn(object: &Object, plugin: &str, finalizes: bool) -> Turn {
    let finalizer = labels::finalizer(plugin);
    let held = object.finalizers.iter().any(|held| **held == *finalizer);
    match (object.deleting, finalizes, held) {
        (false, true, false) => Turn::Add,
        (false, _, _) => Turn::Reconcile,
        (true, true, true) => Turn::Finalize,
        (true, false, true) => Turn::Release,
        (true, _, false) => Turn::Ignore,
    }
}

/// Puts the plugin's finalizer on an object.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn add(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let mut finalizers: Vec<_> = object.finalizers.iter().map(ToString::to_string).collect();
    finalizers.push(labels::finalizer(&plugin.name));
    write(client, plugin, object, json!(finalizers)).await
}

/// Takes the plugin's finalizer off an object.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn remove(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let finalizer = labels::finalizer(&plugin.name);
    let others: Vec<_> =
        object.finalizers.iter().filter(|held| ***held != *finalizer).map(ToString::to_string).collect();
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
            plugin.objects.store().wrote(incoming.into_object(&installed.resource));
            Ok(())
        }
        // Gone already: that is what a finalizer is taken off for.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(explain(&error, "write the finalizer of", &object.name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finalizing_plugins_hold_objects_and_none_holds_one_for_ever() {
        for (deleting, finalizes, held, expected) in [
            (false, false, false, Turn::Reconcile),
            (false, true, false, Turn::Add),
            (false, true, true, Turn::Reconcile),
            (true, true, true, Turn::Finalize),
            (true, false, true, Turn::Release),
            (true, true, false, Turn::Ignore),
            (true, false, false, Turn::Ignore),
        ] {
            let mut finalizers = vec!["example.com/other".into()];
            finalizers.extend(held.then(|| labels::finalizer("web").into()));
            let object = Object { deleting, finalizers, ..Object::sample("ns", "a") };
            assert_eq!(turn(&object, "web", finalizes), expected, "{deleting} {finalizes} {held}");
        }
    }
}
