//! Stage 6: makes it so. Every write is guarded: a create cannot take over an object that is there already, an update
//! cannot hit another object of the same name, a delete names a UID. No plan, no request.

mod applied;
mod applier;
mod body;
pub mod delete;
mod dry_run;
pub mod failure;
mod ownership;
mod refused;
mod target;
mod write;
mod write_error;

use futures::{StreamExt, stream};

pub use self::{
    applied::{Applied, Written},
    applier::{Applier, applying},
    failure::{Failure, FailureReason, Outlook},
    refused::RefusedWrites,
};
use self::{
    ownership::object_is_still_there,
    refused::{RefusedWrite, WriteId},
    target::Target,
    write::{Writing, write},
};
use super::plan::{Delete, Plan, WriteCause};
use crate::object::{Object, describe};

/// Writes of one object that may be under way at once.
const PARALLEL: usize = 8;

/// Carries out a plan.
pub async fn apply(applier: &Applier<'_>, plan: Plan) -> Applied {
    let mut applied = Applied::default();
    if makes_anew(applier.object, &plan)
        && let Err(error) = object_is_still_there(applier).await
    {
        let object = describe(applier.plugin.objects.kind(), &applier.object.name);
        applied.failures.push(error.into_failure(&object));
        return applied;
    }
    let ids: Vec<_> = plan.writes.iter().map(WriteId::of).collect();
    let writes = stream::iter(plan.writes.into_iter().map(|planned| write(applier, planned))).buffered(PARALLEL);
    for (id, result) in ids.into_iter().zip(writes.collect::<Vec<_>>().await) {
        match result {
            Ok(Writing::Written(written)) => applied.written.push(*written),
            Ok(Writing::Recreate(recreation)) => applied.recreations.push(recreation),
            Err(failure) => {
                applied.refused.extend(RefusedWrite::of(id, &failure));
                applied.failures.push(failure);
            }
        }
    }
    if !applied.failures.is_empty() {
        return applied;
    }
    let deletes = stream::iter(plan.deletes.into_iter().map(|delete| delete_child(applier, delete))).buffered(PARALLEL);
    for result in deletes.collect::<Vec<_>>().await {
        match result {
            Ok(delete) => applied.deleted.push(delete),
            Err(failure) => applied.failures.push(failure),
        }
    }
    applied
}

async fn delete_child(applier: &Applier<'_>, delete: Delete) -> Result<Delete, Failure> {
    let Delete { kind, live, .. } = &delete;
    let what = describe(kind, &live.name);
    let target = Target::of(applier, kind, &live.name)?;
    match target.delete(live).await {
        Ok(()) => Ok(delete),
        Err(error) => Err(Failure::of(&error, "delete", &what)),
    }
}

/// Whether a plan makes children that have been there before. Somebody deleted them, or garbage collection did, for the
/// object is gone and its watch has not told it yet.
fn makes_anew(object: &Object, plan: &Plan) -> bool {
    object.is_observed() && plan.writes.iter().any(|write| matches!(write.cause, WriteCause::Missing))
}
