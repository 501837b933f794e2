//! The deletes that the guard against mass deletion holds back, and the author's word that they are meant. Finds and confirms; it deletes
//! nothing.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use kube::api::{Patch, PatchParams};
use pilothouse_controller::{
    errors::chain,
    labels,
    object::{Object, ObjectRef, describe},
    pipeline::report::result::DELETES_HELD_BACK,
    plugin::ActivePlugin,
};
use serde_json::json;

use super::Target;

/// How many of the objects that wait are named.
const NAMED: usize = 5;

/// The objects of a plugin whose deletes are held back, with the version that would delete.
#[derive(Default)]
pub(super) struct HeldBack(BTreeMap<ObjectRef, Arc<ActivePlugin>>);

impl HeldBack {
    /// Looks which objects of the version at work wait. Returns what is to be told of those that did not wait before; none if there are none.
    pub(super) fn look(&mut self, version: &Arc<ActivePlugin>) -> Option<String> {
        let found = version.objects.store().select(None, is_held_back);
        self.0.retain(|name, by| {
            by.short_digest() == version.short_digest() && found.iter().any(|object| object.name == *name)
        });
        let is_new = |object: &&Arc<Object>| !self.0.contains_key(&object.name);
        let new: Vec<_> = found.iter().filter(is_new).cloned().collect();
        self.0.extend(new.iter().map(|object| (object.name.clone(), version.clone())));
        (!new.is_empty()).then(|| told(version, &new))
    }

    /// Whether any wait, as far as it was looked.
    pub(super) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Confirms the deletes of all objects that wait. Returns what became of each.
    pub(super) async fn confirm(&mut self, target: &Target) -> Vec<String> {
        let mut results = Vec::new();
        for (name, version) in std::mem::take(&mut self.0) {
            let what = describe(version.objects.kind(), &name);
            results.push(match confirm_one(target, &name, &version).await {
                Ok(()) => format!("{what}: the deletes are confirmed"),
                Err(error) => format!("error: {what}: failed to confirm the deletes: {}", chain(error.as_ref())),
            });
        }
        results
    }
}

fn told(version: &ActivePlugin, objects: &[Arc<Object>]) -> String {
    let named = objects.iter().take(NAMED).map(|object| {
        format!("{}: {}\n", describe(version.objects.kind(), &object.name), condition(object).unwrap_or_default())
    });
    let mut text: String = named.collect();
    if let more @ 1.. = objects.len().saturating_sub(NAMED) {
        text += &format!("and {more} more\n");
    }
    text + "if that is meant, type y and Enter"
}

async fn confirm_one(target: &Target, name: &ObjectRef, version: &ActivePlugin) -> anyhow::Result<()> {
    let installed = version.objects.installed().context("its kind is not installed any more")?;
    let annotations = json!({labels::ALLOW_REMOVAL: version.short_digest()});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    installed.api(&target.client, &name.namespace).patch(&name.name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn is_held_back(object: &Object) -> bool {
    // Most objects need not be parsed.
    object.status_text().is_some_and(|status| status.contains(DELETES_HELD_BACK)) && condition(object).is_some()
}

/// What the condition says that tells of it.
fn condition(object: &Object) -> Option<String> {
    let status = object.status();
    let conditions = status.get("conditions")?.as_array()?;
    let held = conditions.iter().find(|it| it["reason"] == DELETES_HELD_BACK)?;
    held["message"].as_str().map(str::to_owned)
}
