//! Whose an object is that is there already under a child's name. Takes nothing that is not ours, or that its user did not give
//! us.

use super::{applier::Applier, target::Target, write_error::WriteError};
use crate::{
    labels,
    object::{ControllerRef, Object},
};

/// Whether an object that is there already may be applied to: ours, an orphan of ours, or one that the object's user lets us
/// adopt. Everything else belongs to somebody else.
pub(super) async fn may_take(applier: &Applier<'_>, kind: &str, live: &Object) -> Result<(), WriteError> {
    match &live.controller {
        Some(owner) if owner.uid == applier.object.uid => Ok(()),
        Some(owner) if is_predecessor(applier, owner) => Err(WriteError::Inherited),
        Some(owner) => Err(WriteError::Taken(format!("is controlled by {} '{}'", owner.kind, owner.name))),
        None if is_orphan(applier, live) => object_is_still_there(applier).await,
        None if is_to_be_adopted(applier.object, kind, live) => object_is_still_there(applier).await,
        None => Err(WriteError::Taken(how_to_adopt(applier, kind, live))),
    }
}

/// Whether an owner is an object of the same kind and name as ours: deleted, and its children not yet collected.
fn is_predecessor(applier: &Applier<'_>, owner: &ControllerRef) -> bool {
    let (kind, name) = (applier.plugin.objects.kind(), &applier.object.name.name);
    *owner.kind == *kind.kind && *owner.name == **name
}

/// An orphan of ours has the identity that we gave it and our plugin's label, and belongs to this object or to one that is no
/// more: `kubectl delete --cascade=orphan` left it behind, or it is to be kept.
fn is_orphan(applier: &Applier<'_>, live: &Object) -> bool {
    let plugin = &applier.plugin;
    let is_of_plugin = live.labels.get(labels::PLUGIN).is_some_and(|label| **label == *plugin.name);
    let Some(owner) = live.owner_uid().filter(|_| is_of_plugin) else { return false };
    let is_left_behind = || plugin.objects.store().select(None, |object| *object.uid == *owner).is_empty();
    *owner == *applier.object.uid || is_left_behind()
}

/// Whether the object's user lets it take this one: annotation [`labels::ADOPT`].
fn is_to_be_adopted(object: &Object, kind: &str, live: &Object) -> bool {
    let named = object.annotation(labels::ADOPT).unwrap_or_default();
    let this = format!("{kind}/{}", live.name.name);
    named.split(',').any(|one| one.trim() == this)
}

fn how_to_adopt(applier: &Applier<'_>, kind: &str, live: &Object) -> String {
    let annotation = format!("{}={kind}/{}", labels::ADOPT, live.name.name);
    let command = applier.plugin.how_to_annotate(applier.object, &annotation);
    format!("was made by somebody else. To let this object take it over: {command}")
}

/// Makes sure that the object is still there. Garbage collection deletes children and takes owner references off them without
/// waiting for anybody: what the cache says of the object is not enough to make children anew or to put references back.
pub(super) async fn object_is_still_there(applier: &Applier<'_>) -> Result<(), WriteError> {
    let known = applier.object;
    let objects = Target::of_object(applier).ok_or(WriteError::Vanished)?;
    let Some(found) = objects.read(&known.name.name).await? else {
        objects.store.mark_terminated(known);
        return Err(WriteError::Vanished);
    };
    // One that is being deleted has children as long as it is finalized. One that was edited is looked at again: its edit is in
    // the cache now, so that its event would be old news and wake nobody.
    let is_same = found.uid == known.uid && found.deleting == known.deleting && found.generation == known.generation;
    objects.store.record_write(found);
    if is_same { Ok(()) } else { Err(WriteError::Vanished) }
}
