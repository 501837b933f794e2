//! Merge patches that make way for an apply where server-side apply by itself leads to what the API server refuses. Decides nothing
//! about what is patched (`plan/list_repair.rs`, `left_over.rs`).

use kube::api::Patch;
use serde_json::{Value, json};

use super::{
    applier::{Applier, merging},
    target::Target,
};
use crate::object::Object;

/// How the API server calls the fields of a manager that come from anything else than an apply.
const UPDATE: &str = "Update";

/// Patches a child, and gives it as it is then. Its fields belong to nobody afterwards, so that the apply that follows owns them.
///
/// # Errors
/// [`kube::Error`]: 409 if the child is not as the patch says that it was.
pub(super) async fn patch(
    applier: &Applier<'_>,
    target: &Target<'_>,
    name: &str,
    patch: &Value,
) -> Result<Object, kube::Error> {
    let manager = &applier.plugin.field_manager;
    target.api.patch(name, &merging(manager), &Patch::Merge(patch)).await?;
    let live = target.api.get_metadata(name).await?;
    // The manager of an apply and the same manager of a patch are two owners. What the second one owns stays when the first one drops
    // it.
    let entries = live.metadata.managed_fields.unwrap_or_default().into_iter();
    let others = entries.filter(|entry| {
        let is_ours = entry.manager.as_ref() == Some(manager) && entry.operation.as_deref() == Some(UPDATE);
        !is_ours || entry.subresource.is_some()
    });
    let metadata = json!({
        "resourceVersion": live.metadata.resource_version,
        "managedFields": others.collect::<Vec<_>>(),
    });
    let disowned = Patch::Merge(json!({"metadata": metadata}));
    let incoming = target.api.patch(name, &merging(manager), &disowned).await?;
    Ok(incoming.into_object(&target.installed.resource))
}
