//! Decides whether an existing object with a child's name may be written. Never takes over an object of somebody else without the
//! consent of its user.

use super::{applier::Applier, target::Target, write_error::WriteError};
use crate::{
    labels,
    object::{ControllerRef, Object, describe},
};

/// Makes sure that an existing object is ours, an orphan of ours, or one that the user lets us adopt.
///
/// # Errors
/// [`WriteError`] if the object belongs to somebody else, or if its owner does not exist any more.
pub(super) async fn ensure_ours(applier: &Applier<'_>, kind: &str, live: &Object) -> Result<(), WriteError> {
    match &live.controller {
        // An update would be accepted, and lost with the object.
        _ if live.deleting => Err(WriteError::BeingDeleted),
        Some(owner) if owner.uid == applier.object.uid => match other_maker(applier, live) {
            Some(other) => Err(WriteError::NameTaken(format!("was made for the same object by {other}"))),
            None => Ok(()),
        },
        Some(owner) if is_predecessor(applier, owner) => Err(WriteError::OwnedByPredecessor),
        Some(owner) => Err(WriteError::NameTaken(format!("is controlled by {} '{}'", owner.kind, owner.name))),
        None => match labelled_owner(applier, live) {
            LabelledOwner::Other(owner) => Err(WriteError::NameTaken(format!("belongs to {owner}"))),
            LabelledOwner::ThisObject | LabelledOwner::Gone => ensure_object_exists(applier).await,
            LabelledOwner::Nobody if is_to_be_adopted(applier.object, kind, live) => {
                ensure_object_exists(applier).await
            }
            LabelledOwner::Nobody => Err(WriteError::NameTaken(how_to_adopt(applier, kind, live))),
        },
    }
}

/// Who else has made a child of the same object, in words. Of several plugins that work on an object, one at most owns it; the others are
/// decorators, and the object may well have a controller that is no plugin.
fn other_maker(applier: &Applier<'_>, live: &Object) -> Option<String> {
    let label = |label| live.labels.get(label);
    if applier.plugin.manifest().decorates.is_none() {
        return label(labels::DECORATOR).map(|by| format!("plugin '{by}'"));
    }
    match label(labels::PLUGIN) {
        Some(by) if *by == *applier.plugin.name => None,
        Some(by) => Some(format!("plugin '{by}'")),
        None => Some("its controller".to_owned()),
    }
}

/// Whether an owner is a deleted object with the kind and name of ours. Garbage collection will delete its children.
fn is_predecessor(applier: &Applier<'_>, owner: &ControllerRef) -> bool {
    let (kind, name) = (applier.plugin.objects.kind(), &applier.object.name.name);
    *owner.kind == *kind.kind && *owner.name == **name
}

/// The owner of a child without a controller, after its labels. A child with the removal policy `keep` has no owner reference that
/// would tell.
enum LabelledOwner {
    /// The object of this reconcile.
    ThisObject,
    /// An object of this plugin that is gone. `kubectl delete --cascade=orphan` leaves such children, and so does the removal policy
    /// `keep`.
    Gone,
    /// Another object of this plugin, or one of another plugin, which may exist; in words.
    Other(String),
    /// It has no labels of the host, or those of a copy.
    Nobody,
}

fn labelled_owner(applier: &Applier<'_>, live: &Object) -> LabelledOwner {
    let Some(owner) = live.owner_uid() else { return LabelledOwner::Nobody };
    if *owner == *applier.object.uid {
        return LabelledOwner::ThisObject;
    }
    let Some(plugin) = live.labels.get(labels::PLUGIN) else { return LabelledOwner::Nobody };
    // The caches of this plugin cannot tell whether the object of another plugin still exists.
    if *plugin != *applier.plugin.name {
        return LabelledOwner::Other(format!("an object of plugin '{plugin}'"));
    }
    let objects = &applier.plugin.objects;
    match objects.store().select(None, |object| *object.uid == *owner).first() {
        Some(found) => LabelledOwner::Other(describe(objects.kind(), &found.name)),
        // This cache is synced, because a plugin becomes active only after the objects that it reconciles were listed.
        None => LabelledOwner::Gone,
    }
}

/// Whether the user allows the adoption of this object, by the annotation [`labels::ADOPT`] on the owner.
fn is_to_be_adopted(object: &Object, kind: &str, live: &Object) -> bool {
    let named = object.annotation(labels::ADOPT).unwrap_or_default();
    let this = name_to_adopt(object, kind, live);
    named.split(',').any(|one| one.trim() == this)
}

/// The name of an object in the annotation [`labels::ADOPT`]: `KIND/NAME`, or `KIND/NAMESPACE/NAME` in another namespace than the
/// owner's.
fn name_to_adopt(object: &Object, kind: &str, live: &Object) -> String {
    let is_elsewhere = live.name.namespace != object.name.namespace;
    if is_elsewhere { format!("{kind}/{}", live.name) } else { format!("{kind}/{}", live.name.name) }
}

fn how_to_adopt(applier: &Applier<'_>, kind: &str, live: &Object) -> String {
    let annotation = format!("{}={}", labels::ADOPT, name_to_adopt(applier.object, kind, live));
    let command = applier.plugin.how_to_annotate(applier.object, &annotation);
    format!("was made by somebody else. To let this object take it over: {command}")
}

/// Makes sure that the owner still exists, by a read from the API server. When an owner is deleted, garbage collection deletes its
/// children or removes their owner references, possibly before our watch reports the deletion. So the cache is not enough to create
/// children again or to restore owner references.
///
/// # Errors
/// [`WriteError::Outdated`] if the owner is gone or has changed.
pub(super) async fn ensure_object_exists(applier: &Applier<'_>) -> Result<(), WriteError> {
    let known = applier.object;
    let objects = Target::of_object(applier).ok_or(WriteError::Outdated)?;
    let Some(found) = objects.read(&known.name.name).await? else {
        // Not removed from the cache: the deletion that the watch reports later must be a change, so that it triggers the reconcile
        // that forgets the object.
        objects.store.mark_terminated(known);
        return Err(WriteError::Outdated);
    };
    // The read state goes into the cache, so the later watch event is no change and triggers no reconcile. If the owner changed,
    // the caller must observe it again now.
    let is_same = found.uid == known.uid && found.resource_version == known.resource_version;
    objects.store.record_write(found);
    if is_same { Ok(()) } else { Err(WriteError::Outdated) }
}
