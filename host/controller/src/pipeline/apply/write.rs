//! Carries out one create or update and explains its failures. Decides nothing about what is written.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::{
    api::{Patch, PatchParams},
    core::Status,
};
use pilothouse_engine::contract::ImmutablePolicy;

use super::{
    applied::Written,
    applier::{Applier, applying},
    body::GuardedBody,
    dry_run::{self, DryRun},
    failure::{Failure, FailureReason, is_about_field, may_be_immutable},
    ownership::ensure_ours,
    target::Target,
    write_error::WriteError,
};
use crate::{
    access::is_allowed,
    labels,
    object::{Object, describe},
    pipeline::{
        check::DesiredChild,
        plan::{Recreation, Write, WriteCause},
    },
    schema::{Schema, duplicates},
};

/// A resource version that no object has, because etcd's first revision stores no object. An apply with it creates a missing
/// object, and the API server answers 409 if the object exists.
const RESOURCE_VERSION_OF_NONE: &str = "1";

/// The outcome of a write.
pub(super) enum WriteOutcome {
    /// The write succeeded.
    Written(Box<Written>),
    /// An immutable field would change: the child must be deleted and created again.
    Recreate(Recreation),
}

/// Carries out one write and updates the cache.
///
/// # Errors
/// [`Failure`], with the reason for the object's conditions.
pub(super) async fn write(applier: &Applier<'_>, write: Write) -> Result<WriteOutcome, Failure> {
    let target = Target::of(applier, &write.child.kind, &write.child.name)?;
    let result = match write.cause.live() {
        None => create(applier, &target, &write.child).await,
        Some(live) => hand_over_and_update(applier, &target, &write, live).await,
    };
    let after = match result {
        Ok(after) => after,
        Err(WriteError::Recreate(recreation)) => return Ok(WriteOutcome::Recreate(recreation)),
        Err(error) => {
            let failure = error.into_failure(&describe(&write.child.kind, &write.child.name));
            return Err(classify_forbidden(applier, &target, &write.child, failure).await);
        }
    };
    let before = write.cause.live().map(|live| &live.resource_version);
    let has_changed = before != Some(&after.resource_version);
    let state = after.fingerprint();
    target.store.record_write(after);
    Ok(WriteOutcome::Written(Written { has_changed, state, write }.into()))
}

/// Changes the reason of a 403 to `AdmissionDenied` if the host has the permission. The API server answers 403 both for a missing
/// permission and for a refusal by admission, so this asks it about the permission.
async fn classify_forbidden(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    failure: Failure,
) -> Failure {
    if failure.reason != FailureReason::Forbidden {
        return failure;
    }
    for verb in ["create", "patch"] {
        let attributes = ResourceAttributes {
            group: Some(child.kind.group().to_owned()),
            namespace: Some(child.name.namespace.to_string()),
            resource: Some(target.installed.resource.plural.clone()),
            name: Some(child.name.name.to_string()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        if !matches!(is_allowed(applier.client, attributes).await, Ok(true)) {
            return failure;
        }
    }
    Failure { reason: FailureReason::AdmissionDenied, ..failure }
}

/// Creates a child. If its name is taken by an object that is ours or may be adopted, updates that object.
async fn create(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild) -> Result<Object, WriteError> {
    let guard = GuardedBody { body: &child.body, field: "resourceVersion", value: RESOURCE_VERSION_OF_NONE };
    match patch(applier, target, child, guard).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let live = target.read(&child.name.name).await?;
            let Some(live) = live else { return Err(WriteError::Outdated) };
            ensure_ours(applier, &child.kind.kind, &live).await?;
            update(applier, target, child, &live).await
        }
        Err(kube::Error::Api(status)) if status.code == 500 => Err(explain_500(applier, target, child, status).await),
        result => result.map_err(WriteError::Api),
    }
}

/// Updates a child and explains a refusal.
async fn update(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    match update_once(applier, target, child, live).await {
        Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {
            Err(explain_422(applier, target, child, Refused { live, status }).await)
        }
        Err(WriteError::Api(kube::Error::Api(status))) if status.code == 500 => {
            Err(explain_500(applier, target, child, status).await)
        }
        result => result,
    }
}

/// Updates a child, without an explanation of a refusal.
async fn update_once(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    if live.controller.is_none() {
        ensure_ours(applier, &child.kind.kind, live).await?;
    }
    let guard = GuardedBody { body: &child.body, field: "uid", value: &live.uid };
    match patch(applier, target, child, guard).await {
        Err(kube::Error::Api(status)) if is_another_object(&status) => {
            target.refresh_cache(live).await?;
            Err(WriteError::Outdated)
        }
        result => result.map_err(WriteError::Api),
    }
}

/// Hands fields over to their new owner, if there are any, before the update that gives them up.
async fn hand_over_and_update(
    applier: &Applier<'_>,
    target: &Target<'_>,
    write: &Write,
    live: &Object,
) -> Result<Object, WriteError> {
    if let Some(fields) = &write.handover {
        let parameters = applying(labels::HANDOVER_MANAGER);
        target.api.patch(&write.child.name.name, &parameters, &Patch::Apply(fields)).await?;
    }
    update_repaired(applier, target, write, live).await
}

/// Updates a child, after the repair of list elements whose key somebody changed. If the plugin's answer changed, the update is
/// first tried without the repair: if the plugin itself changed the key, server-side apply removes the old element, as only we
/// own it.
async fn update_repaired(
    applier: &Applier<'_>,
    target: &Target<'_>,
    write: &Write,
    live: &Object,
) -> Result<Object, WriteError> {
    let Some(list_repair) = &write.list_repair else { return update(applier, target, &write.child, live).await };
    if let WriteCause::Changed(_) = write.cause {
        match update_once(applier, target, &write.child, live).await {
            Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {}
            result => return result,
        }
    }
    let field_manager = Some(applier.plugin.field_manager.clone());
    let parameters = PatchParams { field_manager, ..PatchParams::default() };
    target.api.patch(&write.child.name.name, &parameters, &Patch::Merge(list_repair)).await?;
    update(applier, target, &write.child, live).await
}

/// Applies a child with a guard.
async fn patch(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    guarded: GuardedBody<'_>,
) -> Result<Object, kube::Error> {
    let parameters = applying(&applier.plugin.field_manager);
    let incoming = target.api.patch(&child.name.name, &parameters, &Patch::Apply(guarded)).await?;
    Ok(incoming.into_object(&target.installed.resource))
}

/// The meaning of a refused update (422). If the same body could be created, an immutable field would change.
async fn explain_422(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    refused: Refused<'_>,
) -> WriteError {
    let Refused { live, status } = refused;
    if !may_be_immutable(&status, &child.body) {
        return WriteError::Invalid(status.message);
    }
    match (dry_run::create(applier, target, child).await, child.on_immutable) {
        (DryRun::Creatable, ImmutablePolicy::Recreate) => WriteError::Recreate(Recreation::of(child, live)),
        (DryRun::Creatable, ImmutablePolicy::Fail) => WriteError::Immutable(status.message),
        (DryRun::Refused | DryRun::Unknown, _) => WriteError::Invalid(status.message),
    }
}

/// The meaning of an internal error (500) of an apply. The API server also answers 500 if a value has a wrong type.
async fn explain_500(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    status: Box<Status>,
) -> WriteError {
    let built_in = || Schema::built_in(&child.kind.api_version, &child.kind.kind).clone();
    let schema = target.schema.clone().unwrap_or_else(built_in);
    // Duplicate keys in a list need a check of their own: a create accepts them, so the dry run would not find them.
    let is_invalid = !duplicates(&child.body, &schema).is_empty()
        || dry_run::create(applier, target, child).await == DryRun::Refused;
    if is_invalid { WriteError::Invalid(status.message) } else { WriteError::Api(kube::Error::Api(status)) }
}

/// A refused update.
struct Refused<'a> {
    live: &'a Object,
    status: Box<Status>,
}

/// Whether an apply with a UID found no object (409) or another object of the same name (422).
fn is_another_object(status: &Status) -> bool {
    status.code == 409 || (status.code == 422 && is_about_field(status, "metadata.uid"))
}
