//! One create or update, guarded, and every way in which it can fail. Decides nothing about what is written.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::{
    api::{Patch, PatchParams},
    core::Status,
};
use pilothouse_engine::contract::ImmutablePolicy;

use super::{
    applied::Written,
    applier::{Applier, applying},
    body::Guarded,
    dry_run::{self, DryRun},
    failure::{Failure, FailureReason, is_about_field, may_be_immutable},
    ownership::may_take,
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

/// A resource version that no stored object has (etcd's first revision writes no object): applied with it, an object
/// is created if it is missing, and the API server answers 409 if it is there.
const NEVER: &str = "1";

/// What became of a write.
pub(super) enum Writing {
    /// The API server took it.
    Written(Box<Written>),
    /// A field cannot change; the child has to be created anew.
    Recreate(Recreation),
}

/// Carries out one write.
pub(super) async fn write(applier: &Applier<'_>, write: Write) -> Result<Writing, Failure> {
    let target = Target::of(applier, &write.child.kind, &write.child.name)?;
    let result = match write.cause.live() {
        None => create(applier, &target, &write.child).await,
        Some(live) => hand_over_and_update(applier, &target, &write, live).await,
    };
    let after = match result {
        Ok(after) => after,
        Err(WriteError::Recreate(recreation)) => return Ok(Writing::Recreate(recreation)),
        Err(error) => {
            let failure = error.into_failure(&describe(&write.child.kind, &write.child.name));
            return Err(tell_admission(applier, &target, &write.child, failure).await);
        }
    };
    let before = write.cause.live().map(|live| &live.resource_version);
    let has_changed = before != Some(&after.resource_version);
    let state = after.fingerprint();
    target.store.record_write(after);
    Ok(Writing::Written(Written { has_changed, state, write }.into()))
}

/// Tells a refusal of admission from a lack of rights: the API server answers 403 to both.
async fn tell_admission(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild, failure: Failure) -> Failure {
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

async fn create(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild) -> Result<Object, WriteError> {
    let guard = Guarded { body: &child.body, field: "resourceVersion", value: NEVER };
    match patch(applier, target, child, guard).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let live = target.read(&child.name.name).await?;
            let Some(live) = live else { return Err(WriteError::Vanished) };
            may_take(applier, &child.kind.kind, &live).await?;
            update(applier, target, child, &live).await
        }
        Err(kube::Error::Api(status)) if status.code == 500 => Err(explain_500(applier, target, child, status).await),
        result => result.map_err(WriteError::Api),
    }
}

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

/// Updates a child, and takes a refusal as it is.
async fn update_once(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    if live.controller.is_none() {
        may_take(applier, &child.kind.kind, live).await?;
    }
    let guard = Guarded { body: &child.body, field: "uid", value: &live.uid };
    match patch(applier, target, child, guard).await {
        Err(kube::Error::Api(status)) if is_another_object(&status) => {
            target.read_anew(live).await?;
            Err(WriteError::Vanished)
        }
        result => result.map_err(WriteError::Api),
    }
}

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

/// Updates a child, after putting list elements right that stand in the place of ours. What the plugin itself changed
/// is tried without first: elements that only we own need no help.
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

/// Applies a child, guarded by a field of its metadata.
async fn patch(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    guarded: Guarded<'_>,
) -> Result<Object, kube::Error> {
    let parameters = applying(&applier.plugin.field_manager);
    let incoming = target.api.patch(&child.name.name, &parameters, &Patch::Apply(guarded)).await?;
    Ok(incoming.into_object(&target.installed.resource))
}

/// What a refused update (422) means: where the same body could be created, a field cannot change.
async fn explain_422(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    refused: Refused<'_>,
) -> WriteError {
    let Refused { live, status } = refused;
    if !may_be_immutable(&status) {
        return WriteError::Invalid(status.message);
    }
    match (dry_run::create(applier, target, child).await, child.on_immutable) {
        (DryRun::Creatable, ImmutablePolicy::Recreate) => WriteError::Recreate(Recreation::of(child, live)),
        (DryRun::Creatable, ImmutablePolicy::Fail) => WriteError::Immutable(status.message),
        (DryRun::Refused | DryRun::Unknown, _) => WriteError::Invalid(status.message),
    }
}

/// What an internal error (500) of an apply means: the API server answers it where a value has a wrong type, too.
async fn explain_500(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    status: Box<Status>,
) -> WriteError {
    let built_in = || Schema::built_in(&child.kind.api_version, &child.kind.kind).clone();
    let schema = target.schema.clone().unwrap_or_else(built_in);
    // A create takes two entries with one key; an apply never does.
    let is_invalid = !duplicates(&child.body, &schema).is_empty()
        || dry_run::create(applier, target, child).await == DryRun::Refused;
    if is_invalid { WriteError::Invalid(status.message) } else { WriteError::Api(kube::Error::Api(status)) }
}

/// A refused update.
struct Refused<'a> {
    live: &'a Object,
    status: Box<Status>,
}

/// Whether an apply that names a UID met no object (409) or another one of the same name (422).
fn is_another_object(status: &Status) -> bool {
    status.code == 409 || (status.code == 422 && is_about_field(status, "metadata.uid"))
}
