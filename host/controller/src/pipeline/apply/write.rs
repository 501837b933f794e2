//! Carries out one create or update and explains its failures. Decides nothing about what is written.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::{api::Patch, core::Status};
use pilothouse_engine::contract::{Handling, ImmutablePolicy};
use serde_json::{Map, Value, json};

use super::{
    applied::Written,
    applier::{Applier, applying, merging},
    body::GuardedBody,
    dry_run::{self, DryRun},
    escalation,
    failure::{Failure, FailureReason, is_another_object, is_by_admission, may_be_immutable},
    left_over,
    ownership::ensure_ours,
    repair,
    target::Target,
    write_error::WriteError,
};
use crate::{
    access::is_allowed,
    client::apply_patch,
    labels,
    object::{Object, describe},
    pipeline::{
        check::{DesiredChild, wrong_values},
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
        Some(live) => change(applier, &target, &write, live).await,
    };
    let after = match result {
        Ok(after) => after,
        Err(WriteError::Recreate(recreation)) => return Ok(WriteOutcome::Recreate(recreation)),
        Err(error) => {
            let failure = error.into_failure(&describe(&write.child.kind, &write.child.name));
            return Err(classify_forbidden(applier, &target, &write.child, failure).await);
        }
    };
    let written = Written::of(write, &after);
    target.store.record_write(after);
    Ok(WriteOutcome::Written(written.into()))
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
    if let Some(explained) = escalation::explained(child.kind.group(), &failure) {
        return explained;
    }
    // A server-side apply of an object that does not exist needs both verbs.
    for verb in ["create", "patch"] {
        let attributes = ResourceAttributes {
            group: Some(child.kind.group().to_owned()),
            namespace: Some(child.name.namespace.to_string()),
            resource: Some(target.installed.resource.plural.clone()),
            name: Some(child.name.name.to_string()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        // If the question itself fails, the reason stays what the status code says.
        if !matches!(is_allowed(applier.client, attributes).await, Ok(true)) {
            return failure;
        }
    }
    Failure { reason: FailureReason::AdmissionDenied, ..failure }
}

/// Creates a child. If its name is taken by an object that is ours or may be adopted, updates that object.
async fn create(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild) -> Result<Object, WriteError> {
    let (resource_version, made_by) = (RESOURCE_VERSION_OF_NONE, applier.version());
    let guard = GuardedBody { body: &child.body, uid: None, resource_version, made_by };
    match apply(applier, target, child, guard).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            // From the API server: the cache of children has only objects with the host's label, and this may be somebody else's.
            let live = target.read(&child.name.name).await?;
            let Some(live) = live else { return Err(WriteError::Outdated) };
            ensure_ours(applier, &child.kind.kind, &live).await?;
            if child.handling == Handling::Create {
                // What it holds is as it was made, whoever it was made for.
                return claim(applier, target, child, &live).await;
            }
            let live = repair::take_over(applier, target, child, &live).await?.unwrap_or(live);
            match update(applier, target, child, &live).await {
                Err(WriteError::Recreate(recreation)) => {
                    target.store.record_write(claim(applier, target, child, &live).await?);
                    Err(WriteError::Recreate(recreation))
                }
                result => result,
            }
        }
        Err(kube::Error::Api(status)) if status.code == 500 => {
            Err(explain_500(applier, target, child, None, status).await)
        }
        result => result.map_err(WriteError::Api),
    }
}

/// Marks an object that is taken over as a child, and leaves all else of it. One that must be created anew the next plan finds among the
/// children, and deletes it as any other child, under the guard against mass deletion.
async fn claim(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    let mut metadata = marks(&child.body["metadata"]);
    metadata.insert("uid".to_owned(), json!(live.uid));
    metadata.insert("resourceVersion".to_owned(), json!(live.resource_version));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        // What an earlier owner wanted to be kept need not be kept by this one, and its order was another.
        for mark in [labels::ON_REMOVAL, labels::ORDER] {
            annotations.entry(mark).or_insert(Value::Null);
        }
        // The rest of it is as an earlier owner applied it.
        annotations.insert(labels::APPLIED.to_owned(), Value::Null);
    }
    let parameters = merging(&applier.plugin.field_manager);
    // A merge patch: an apply with the marks alone would give up the fields that are owned from before.
    let patch = Patch::Merge(json!({"metadata": metadata}));
    match target.api.patch(&child.name.name, &parameters, &patch).await {
        Ok(incoming) => Ok(incoming.into_object(&target.installed.resource)),
        Err(kube::Error::Api(status)) if is_another_object(&status) => Err(WriteError::Outdated),
        Err(error) => Err(WriteError::Api(error)),
    }
}

/// What of a child's metadata makes it one: its owner, and the host's labels and annotations.
fn marks(metadata: &Value) -> Map<String, Value> {
    let is_mark = |key: &str| key.starts_with(labels::PREFIX) || key == labels::MANAGED_BY;
    let mut marks = Map::new();
    for field in ["labels", "annotations"] {
        let entries = metadata[field].as_object().into_iter().flatten().filter(|(key, _)| is_mark(key));
        let entries: Map<_, _> = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        marks.insert(field.to_owned(), entries.into());
    }
    marks.extend(metadata.get("ownerReferences").map(|owners| ("ownerReferences".to_owned(), owners.clone())));
    marks
}

/// Updates a child, once more without the fields that are left over from before if the API server refuses them beside the desired
/// ones, and explains a refusal.
async fn update(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    let result = match update_once(applier, target, child, live).await {
        Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {
            let state = serde_json::from_str(&live.text.read()).unwrap_or_default();
            let schema = Schema::known_or_built_in(target.schema.as_ref(), &child.body);
            match left_over::replacement(&status, &child.body, state, schema) {
                Some(replacement) => {
                    let live = repair::patch(applier, target, child, live, &replacement).await?;
                    update_once(applier, target, child, &live).await
                }
                None => Err(WriteError::Api(kube::Error::Api(status))),
            }
        }
        result => result,
    };
    match result {
        Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {
            Err(explain_422(applier, target, child, live, status).await)
        }
        Err(WriteError::Api(kube::Error::Api(status))) if status.code == 500 => {
            Err(explain_500(applier, target, child, Some(live), status).await)
        }
        result => result,
    }
}

/// Updates a child, without an explanation of a refusal. Over no newer state than the known one: garbage collection may have released the
/// child from an owner that is deleted, and the apply would give it that owner again.
async fn update_once(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
) -> Result<Object, WriteError> {
    // The apply would set the owner reference. That needs an owner that still exists and a child that is ours.
    if live.controller.is_none() {
        ensure_ours(applier, &child.kind.kind, live).await?;
    }
    match apply(applier, target, child, GuardedBody::over(&child.body, live, applier.version())).await {
        Ok(applied) => Ok(applied),
        Err(error) => Err(target.failed_write(live, error).await),
    }
}

/// Changes a child: its values by the plan's patch, and what that cannot do by an apply. All of its fields are the applies' own before that,
/// so that those that the plugin dropped go, whatever wrote them.
async fn change(
    applier: &Applier<'_>,
    target: &Target<'_>,
    write: &Write,
    live: &Object,
) -> Result<Object, WriteError> {
    if let Some(patched) = patch_values(applier, target, write, live).await? {
        return Ok(patched);
    }
    let owned = repair::take_over(applier, target, &write.child, live).await?;
    hand_over_and_update(applier, target, write, owned.as_ref().unwrap_or(live)).await
}

/// Writes the values that differ, if the plan has a patch for that. None if there is no patch, or if the API server refuses it: what the
/// refusal of the apply that follows means is known.
async fn patch_values(
    applier: &Applier<'_>,
    target: &Target<'_>,
    write: &Write,
    live: &Object,
) -> Result<Option<Object>, WriteError> {
    let Some(patch) = &write.value_patch else { return Ok(None) };
    let guarded = GuardedBody::over(patch, live, applier.version());
    // There is no field in such a patch that the kind does not have, and to check for them costs a second parse.
    let parameters = merging(&applier.plugin.field_manager).validation_ignore();
    match target.api.patch(&write.child.name.name, &parameters, &Patch::Merge(guarded)).await {
        Ok(incoming) => Ok(Some(incoming.into_object(&target.installed.resource))),
        Err(kube::Error::Api(status)) if is_refused(&status) => Ok(None),
        Err(error) => Err(target.failed_write(live, without_values(&write.child, error)).await),
    }
}

/// Whether the API server will not carry out a patch of the values of this object, whenever it is asked.
fn is_refused(status: &Status) -> bool {
    (400..500).contains(&status.code) && status.code != 429 && !is_another_object(status)
}

/// Hands fields over to their new owner, if there are any, before the update that gives them up.
async fn hand_over_and_update(
    applier: &Applier<'_>,
    target: &Target<'_>,
    write: &Write,
    live: &Object,
) -> Result<Object, WriteError> {
    let Some(fields) = &write.handover else { return update_repaired(applier, target, write, live).await };
    let parameters = applying(labels::HANDOVER_MANAGER);
    let handed_over = target.api.patch(&write.child.name.name, &parameters, &apply_patch(fields)?).await?;
    update_repaired(applier, target, write, &handed_over.into_object(&target.installed.resource)).await
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
            // Both the old and the new element are there with one name, which the API server refuses. So somebody else has changed
            // the key.
            Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {}
            result => return result,
        }
    }
    let repaired = repair::patch(applier, target, &write.child, live, list_repair).await?;
    update(applier, target, &write.child, &repaired).await
}

/// Applies a child with a guard.
async fn apply(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    guarded: GuardedBody<'_>,
) -> Result<Object, kube::Error> {
    let parameters = applying(&applier.plugin.field_manager);
    let answer = target.api.patch(&child.name.name, &parameters, &apply_patch(&guarded)?).await;
    answer
        .map(|incoming| incoming.into_object(&target.installed.resource))
        .map_err(|error| without_values(child, error))
}

/// An error whose words quote no value of a Secret. The API server quotes what is not of the right type.
fn without_values(child: &DesiredChild, error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 500) => {
            let wrong = wrong_values(&child.kind, &child.body);
            if wrong.is_empty() {
                return kube::Error::Api(status);
            }
            let message =
                format!("{}; the API server's words are not told, for they quote the value", wrong.join(", "));
            kube::Error::Api(Box::new(Status { message, details: None, ..*status }))
        }
        other => other,
    }
}

/// The meaning of a refused update (422). If the same body could be created, an immutable field would change.
async fn explain_422(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: &Object,
    status: Box<Status>,
) -> WriteError {
    if is_by_admission(&status) {
        return WriteError::Api(kube::Error::Api(status));
    }
    if !may_be_immutable(&status, &child.body) {
        return WriteError::Invalid(status.message);
    }
    match (dry_run::create(applier, target, child, Some(live)).await, child.on_immutable) {
        (DryRun::Creatable, ImmutablePolicy::Recreate) => WriteError::Recreate(Recreation::of(child, live)),
        (DryRun::Creatable, ImmutablePolicy::Fail) => WriteError::Immutable(status.message),
        (DryRun::Forbidden(forbidden), ImmutablePolicy::Recreate) => WriteError::Api(kube::Error::Api(forbidden)),
        // Admission comes after validation, so the body is valid.
        (DryRun::Forbidden(_), ImmutablePolicy::Fail) => WriteError::Immutable(status.message),
        (DryRun::Unverifiable, ImmutablePolicy::Recreate) => {
            let why = "the child is not created anew by itself, because nobody can tell beforehand whether the cluster IP or the \
                       node ports that it claims are free; delete it by hand to let that happen";
            WriteError::Immutable(format!("{}; {why}", status.message))
        }
        // In doubt the child counts as invalid, because `Recreate` leads to a delete.
        (DryRun::Refused | DryRun::Unverifiable | DryRun::Unknown, _) => WriteError::Invalid(status.message),
    }
}

/// The meaning of an internal error (500) of an apply. The API server also answers 500 if a value has a wrong type.
async fn explain_500(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: Option<&Object>,
    status: Box<Status>,
) -> WriteError {
    let schema = Schema::known_or_built_in(target.schema.as_ref(), &child.body);
    // Duplicate keys in a list need a check of their own: a create accepts them, so the dry run would not find them.
    let is_invalid = !duplicates(&child.body, schema).is_empty()
        || dry_run::create(applier, target, child, live).await == DryRun::Refused;
    if is_invalid { WriteError::Invalid(status.message) } else { WriteError::Api(kube::Error::Api(status)) }
}
