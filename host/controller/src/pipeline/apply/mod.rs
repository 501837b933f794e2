//! Stage 6: carries out a plan with server-side apply and deletes. Writes nothing that is not in the plan.
//!
//! # Flow
//!
//! [`apply()`] writes all children, a few at once, and then deletes. It returns an [`Applied`], which says what was written and
//! what failed, and which children must be recreated.
//!
//! # Guarantees
//!
//! - A create never takes over an existing object, an update never hits another object of the same name, and a delete has the UID
//!   as precondition.
//! - Deletes come last, and only if all writes succeeded.
//! - Before a child is created again, its owner is read from the API server. So no child is created for a deleted object.
//! - The answer to each write goes into the cache before this stage returns.
//!
//! # Caveats
//!
//! Nothing is retried here. A failure ends the reconcile, and the queue's backoff decides about the next try.

mod applied;
mod applier;
mod body;
mod decoration;
pub mod delete;
mod dry_run;
mod escalation;
pub mod failure;
mod left_over;
mod ownership;
mod refused;
mod refused_children;
mod repair;
mod taken_name;
mod target;
mod write;
mod write_error;

use futures::{StreamExt, stream};

pub use self::{
    applied::{Applied, Written},
    applier::{Applier, Effect, applying, merging},
    decoration::{decorate, decoration_of},
    failure::{Failure, FailureClass, FailureReason, is_about_field},
    refused::RefusedWrites,
    refused_children::RefusedChildren,
    taken_name::taken_name,
};
use self::{
    delete::{Grace, Precondition},
    failure::FailedChild,
    ownership::ensure_object_exists,
    refused::{RefusedWrite, WriteId},
    target::Target,
    write::{WriteOutcome, write},
};
use super::plan::{Delete, DeleteCause, Plan, Write, WriteCause};
use crate::object::describe;

/// The most concurrent writes for one object.
const MAX_PARALLEL_WRITES: usize = 8;

/// Carries out a plan.
pub async fn apply(applier: &Applier<'_>, plan: Plan) -> Applied {
    let mut applied = Applied::default();
    if recreates_missing_children(applier, &plan)
        && let Err(error) = ensure_object_exists(applier).await
    {
        let object = describe(applier.plugin.objects.kind(), &applier.object.name);
        applied.failures.push(error.into_failure(&object));
        return applied;
    }
    let identified = |write: &Write| {
        let child = FailedChild { kind: write.child.kind.clone(), name: write.child.name.clone() };
        (WriteId::of(write), Box::new(child))
    };
    let ids: Vec<_> = plan.writes.iter().map(identified).collect();
    // `buffered` keeps the order of the plan, so that of several failures the same one comes first in each reconcile. A message
    // that alternates would be a status write with every retry.
    let writes =
        stream::iter(plan.writes.into_iter().map(|planned| write(applier, planned))).buffered(MAX_PARALLEL_WRITES);
    for ((id, child), result) in ids.into_iter().zip(writes.collect::<Vec<_>>().await) {
        match result {
            Ok(WriteOutcome::Written(written)) => applied.written.push(*written),
            Ok(WriteOutcome::Recreate(recreation)) => applied.recreations.push(recreation),
            Err(failure) => {
                let failure = Failure { child: Some(child), ..failure };
                applied.refused.extend(RefusedWrite::of(id, &failure));
                applied.failures.push(failure);
            }
        }
    }
    // A child to be deleted may be in use until the one that replaces it is written.
    if !applied.failures.is_empty() {
        return applied;
    }
    let deletes = stream::iter(plan.deletes.into_iter().map(|delete| delete_child(applier, delete)))
        .buffered(MAX_PARALLEL_WRITES);
    for result in deletes.collect::<Vec<_>>().await {
        match result {
            Ok(delete) => applied.deleted.push(delete),
            Err(failure) => applied.failures.push(failure),
        }
    }
    applied
}

/// What must still be true of a child that is deleted. One of an object that is being deleted may have been released by garbage collection
/// (`--cascade=orphan`), which this host's cache does not know yet: only the state that was looked at is deleted.
fn precondition(cause: DeleteCause) -> Precondition {
    match cause {
        DeleteCause::OwnerDeleted => Precondition::SameState,
        DeleteCause::NotReturned
        | DeleteCause::KindNotDeclared
        | DeleteCause::NotSelected
        | DeleteCause::Recreate
        | DeleteCause::Forced => Precondition::SameObject,
    }
}

/// Which grace period it has.
fn grace(cause: DeleteCause) -> Grace {
    match cause {
        DeleteCause::Forced => Grace::None,
        DeleteCause::NotReturned
        | DeleteCause::KindNotDeclared
        | DeleteCause::NotSelected
        | DeleteCause::Recreate
        | DeleteCause::OwnerDeleted => Grace::Own,
    }
}

async fn delete_child(applier: &Applier<'_>, delete: Delete) -> Result<Delete, Failure> {
    let Delete { kind, live, .. } = &delete;
    let what = describe(kind, &live.name);
    let target = Target::of(applier, kind, &live.name)?;
    // Logged here and not with the plan: a failed write keeps all deletes of the plan back.
    match (applier.effect, delete.cause) {
        (Effect::DryRun, _) => {}
        (Effect::Lasting, DeleteCause::Forced) => {
            tracing::warn!(child = what, cause = %delete.cause, "Deleting {} at once.", kind.kind);
        }
        (Effect::Lasting, cause) => tracing::info!(child = what, %cause, "Deleting {}: no longer wanted.", kind.kind),
    }
    match target.delete(live, precondition(delete.cause), grace(delete.cause)).await {
        Ok(()) => Ok(delete),
        Err(error) => Err(Failure::of_delete(&error, &what)),
    }
}

/// Whether a plan creates children of an object that was reconciled before. Either somebody deleted them, or the object itself was
/// deleted, garbage collection removed its children, and the watch has not reported the deletion yet.
fn recreates_missing_children(applier: &Applier<'_>, plan: &Plan) -> bool {
    // The status of an object that is decorated says nothing of its decorator.
    let was_reconciled = applier.plugin.manifest().decorates.is_some() || applier.object.is_observed();
    was_reconciled && plan.writes.iter().any(|write| matches!(write.cause, WriteCause::Missing))
}
