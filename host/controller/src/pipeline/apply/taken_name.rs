//! Whether the name of a child is taken by an object that is not its owner's. Writes nothing.

use pilothouse_engine::contract::KindRef;

use super::{
    applier::Applier,
    failure::{Failure, FailureReason},
    ownership::ensure_ours,
    target::Target,
};
use crate::object::{ObjectRef, describe};

/// What would keep a child from being created: an object of somebody else has its name. None if there is no such object, if the host would
/// take it over, or if it is about to go.
///
/// # Errors
/// [`Failure`]: nobody knows what is there.
pub async fn taken_name(applier: &Applier<'_>, kind: &KindRef, name: &ObjectRef) -> Result<Option<Failure>, Failure> {
    let what = describe(kind, name);
    let of_child = |failure: Failure| failure.of_child(kind, name);
    let target = Target::of(applier, kind, name).map_err(of_child)?;
    let live = match target.read(&name.name).await {
        Ok(Some(live)) => live,
        Ok(None) => return Ok(None),
        Err(error) => return Err(of_child(Failure::of(&error, "read", &what))),
    };
    let failure = ensure_ours(applier, &kind.kind, &live).await.err().map(|error| of_child(error.into_failure(&what)));
    Ok(failure.filter(|failure| failure.reason == FailureReason::NameConflict))
}
