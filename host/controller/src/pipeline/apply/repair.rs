//! Merge patches where server-side apply by itself leads to what the API server refuses, and what follows from them: to the API
//! server, the manager of a patch and the same manager of an apply are two owners (`field_owners.rs`). What the first one owns stays when
//! an apply no longer has it. Decides nothing about what is patched (`plan/list_repair.rs`, `left_over.rs`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{
    applier::{Applier, merging},
    ownership::ensure_ours,
    target::Target,
    write_error::WriteError,
};
use crate::{
    field_owners::of_applies,
    labels,
    object::Object,
    pipeline::{
        applied_mark::{has_same_fields, is_same_body},
        check::DesiredChild,
    },
};

/// Patches a child as it is known, and gives it as it is then. The apply that follows has to come: until then the child counts as changed,
/// unless the same was applied before.
///
/// # Errors
/// [`kube::Error`]: 409 if the child is not as it is known.
pub(super) async fn patch(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
    fields: &Value,
) -> Result<Object, kube::Error> {
    let mut patch = fields.clone();
    patch["metadata"]["resourceVersion"] = json!(live.resource_version);
    if !is_applied(child, live) {
        patch["metadata"]["annotations"][labels::APPLIED] = Value::Null;
    }
    send(applier, target, &child.name.name, &patch).await
}

/// Makes the fields that patches of the plugin's manager own those of its applies, before an apply that may have less of them than the one
/// before: it removes those that it does not have. Before and not after, for the host may end between the two. Gives the child as it is
/// then; none if it is as it was.
///
/// # Errors
/// [`WriteError`] if the child is not ours, or not as it is known.
pub(super) async fn take_over(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Option<Object>, WriteError> {
    // Where the same fields were written before, none of them has to go.
    if !live.is_patched || is_applied(child, live) || has_same_fields(&mark(live), &child.digest) {
        return Ok(None);
    }
    if live.controller.is_none() {
        ensure_ours(applier, &child.kind.kind, live).await?;
    }
    let found = target.api.get_metadata_opt(&child.name.name).await?.map(|found| found.metadata);
    let is_known = |metadata: &ObjectMeta| metadata.resource_version.as_deref() == Some(&*live.resource_version);
    let Some(metadata) = found.filter(is_known) else {
        target.refresh_cache(live).await?;
        return Err(WriteError::Outdated);
    };
    let Some(owners) = of_applies(&applier.plugin.field_manager, metadata.managed_fields.unwrap_or_default()) else {
        return Ok(None);
    };
    let (uid, version) = (&live.uid, &live.resource_version);
    let patch = json!({"metadata": {"uid": uid, "resourceVersion": version, "managedFields": owners}});
    match send(applier, target, &child.name.name, &patch).await {
        Ok(owned) => Ok(Some(owned)),
        Err(error) => Err(target.failed_write(live, error).await),
    }
}

async fn send(applier: &Applier<'_>, target: &Target<'_>, name: &str, patch: &Value) -> Result<Object, kube::Error> {
    let incoming = target.api.patch(name, &merging(&applier.plugin.field_manager), &Patch::Merge(patch)).await?;
    Ok(incoming.into_object(&target.installed.resource))
}

/// Whether the child was applied last as it is desired.
fn is_applied(child: &DesiredChild, live: &Object) -> bool {
    is_same_body(&mark(live), &child.digest)
}

fn mark(live: &Object) -> String {
    live.annotation(labels::APPLIED).unwrap_or_default()
}
