//! What kube-controller-manager does for every cluster: garbage collection, the end of namespaces, and the end of definitions. One
//! step at a time, so that whoever runs the server decides what happens in between. Acts on nothing that has no reason to go.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    ApiServer,
    kinds::{CLEANUP, NAMESPACE_FINALIZER},
    store::{Cause, Change, Object, ObjectRef, Revision},
    verbs::{DeleteOptions, FOREGROUND, ORPHAN, Propagation},
};

/// What is to be done next.
enum Step {
    /// Delete an object whose owners are gone, or whose owner waits for it.
    Delete(Arc<Object>, Propagation),
    /// Take owners away from an object: those with these UIDs.
    Release(Arc<Object>, Vec<String>),
    /// Take a finalizer away.
    Finish(Arc<Object>, &'static str),
    /// Let a namespace go.
    EndNamespace(Arc<Object>),
}

/// How an owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It exists.
    Solid,
    /// It does not exist.
    Absent,
    /// It waits for its dependents.
    Waits,
}

impl ApiServer {
    /// Carries out the next thing that is to be done, in the order of the objects. Returns whether there was any.
    pub fn collect_garbage_step(&mut self, now: Timestamp) -> bool {
        match self.garbage_steps().into_iter().next() {
            Some(step) => {
                self.carry_out(step, now);
                true
            }
            None => false,
        }
    }

    /// How many things are to be done, each independent of the others.
    pub fn pending_garbage(&self) -> usize {
        self.garbage_steps().len()
    }

    /// The same, if nothing was to be done at a revision. Looks only at what has changed since, where that is enough.
    pub fn pending_garbage_after(&self, idle: Revision) -> usize {
        let is_enough = self.store.since(idle).iter().all(|change| self.leads_to_nothing(change));
        if is_enough { 0 } else { self.pending_garbage() }
    }

    /// Whether a change has no consequence, neither for its object nor for others: nothing goes, and nobody gets other owners.
    fn leads_to_nothing(&self, change: &Change) -> bool {
        let Some(after) = &change.after else { return false };
        let has_same_owners = match &change.before {
            Some(before) => before.metadata("ownerReferences") == after.metadata("ownerReferences"),
            None => true,
        };
        has_same_owners && !after.is_deleting() && self.step_for(after).is_none()
    }

    /// Carries out one of the things that are to be done, by its number. Returns whether there is one.
    pub fn collect_garbage_at(&mut self, index: usize, now: Timestamp) -> bool {
        match self.garbage_steps().into_iter().nth(index) {
            Some(step) => {
                self.carry_out(step, now);
                true
            }
            None => false,
        }
    }

    fn garbage_steps(&self) -> Vec<Step> {
        self.store.all().filter_map(|object| self.step_for(object)).collect()
    }

    fn step_for(&self, object: &Arc<Object>) -> Option<Step> {
        if object.is_deleting()
            && let Some(step) = self.step_for_deleting(object)
        {
            return Some(step);
        }
        if self.is_in_ending_namespace(object) && !object.is_deleting() {
            return Some(Step::Delete(object.clone(), Propagation::Background));
        }
        self.step_for_owned(object)
    }

    fn step_for_deleting(&self, object: &Arc<Object>) -> Option<Step> {
        let holds = |finalizer: &str| object.finalizers().any(|known| known == finalizer);
        if holds(ORPHAN) {
            let dependent = self.dependents(object).next().cloned();
            return Some(match dependent {
                Some(dependent) => Step::Release(dependent, vec![object.uid().to_owned()]),
                None => Step::Finish(object.clone(), ORPHAN),
            });
        }
        if holds(FOREGROUND) {
            let blocks =
                |dependent: &&Arc<Object>| dependent.owners().any(|owner| owner.uid == object.uid() && owner.blocks);
            if !self.dependents(object).any(|dependent| blocks(&dependent)) {
                return Some(Step::Finish(object.clone(), FOREGROUND));
            }
        }
        match &*object.kind.resource {
            "namespaces" if self.waits_for_end(object) => {
                let is_empty = !self.store.all().any(|content| content.namespace() == object.name());
                is_empty.then(|| Step::EndNamespace(object.clone()))
            }
            "customresourcedefinitions.apiextensions.k8s.io" if holds(CLEANUP) => {
                let left = self.store.list(object.name()).find(|content| !content.is_deleting()).cloned();
                match left {
                    Some(left) => Some(Step::Delete(left, Propagation::Background)),
                    None if self.store.list(object.name()).next().is_none() => {
                        Some(Step::Finish(object.clone(), CLEANUP))
                    }
                    None => None,
                }
            }
            _ => None,
        }
    }

    fn waits_for_end(&self, namespace: &Object) -> bool {
        namespace.value["spec"]["finalizers"].as_array().is_some_and(|list| list.contains(&NAMESPACE_FINALIZER.into()))
    }

    fn is_in_ending_namespace(&self, object: &Object) -> bool {
        object.kind.namespaced
            && self.store.get("namespaces", object.namespace()).is_some_and(|found| found.is_deleting())
    }

    fn dependents<'s>(&'s self, owner: &'s Object) -> impl Iterator<Item = &'s Arc<Object>> {
        self.store.all().filter(move |object| object.owners().any(|reference| reference.uid == owner.uid()))
    }

    fn step_for_owned(&self, object: &Arc<Object>) -> Option<Step> {
        let owners: Vec<_> = object.owners().map(|owner| (self.owner(object, owner), owner)).collect();
        if owners.is_empty() {
            return None;
        }
        let with = |wanted: Owner| {
            owners.iter().filter(move |(state, _)| *state == wanted).map(|(_, owner)| owner.uid.to_owned())
        };
        let (solid, gone) = (with(Owner::Solid).count(), with(Owner::Absent).collect::<Vec<_>>());
        let waits: Vec<_> = with(Owner::Waits).collect();
        if solid > 0 {
            // Those that are left keep the object.
            let released: Vec<_> = gone.into_iter().chain(waits).collect();
            return (!released.is_empty()).then(|| Step::Release(object.clone(), released));
        }
        if object.is_deleting() {
            return None;
        }
        if !waits.is_empty() {
            let has_dependents = self.dependents(object).next().is_some();
            let propagation = if has_dependents { Propagation::Foreground } else { Propagation::Background };
            return Some(Step::Delete(object.clone(), propagation));
        }
        // A policy that the object itself has wins.
        let own = object.finalizers().find_map(|name| match name {
            ORPHAN => Some(Propagation::Orphan),
            FOREGROUND => Some(Propagation::Foreground),
            _ => None,
        });
        Some(Step::Delete(object.clone(), own.unwrap_or(Propagation::Background)))
    }

    /// How an owner is. One of another namespace, or of a kind in a namespace for a cluster-scoped dependent, counts as absent.
    fn owner(&self, object: &Object, reference: ObjectRef<'_>) -> Owner {
        let Some(kind) = self.served.by_kind(reference.api_version, reference.kind) else { return Owner::Solid };
        if kind.namespaced && object.namespace().is_empty() {
            // The real collector cannot resolve such a reference, and leaves the object alone.
            return Owner::Solid;
        }
        let found = self.store.get(&kind.resource, &kind.key(object.namespace(), reference.name));
        match found.filter(|found| found.uid() == reference.uid) {
            None => Owner::Absent,
            Some(found) if found.is_deleting() && found.finalizers().any(|name| name == FOREGROUND) => Owner::Waits,
            Some(_) => Owner::Solid,
        }
    }

    fn carry_out(&mut self, step: Step, now: Timestamp) {
        match step {
            Step::Delete(object, propagation) => {
                let options = DeleteOptions {
                    uid: Some(object.uid().to_owned()),
                    propagation: Some(propagation),
                    ..DeleteOptions::default()
                };
                if let Err(error) = self.delete_object(&object, &options, (now, &cause("delete")), false) {
                    tracing::debug!(object = object.name(), "garbage stays: {error}");
                }
            }
            Step::Release(object, uids) => {
                let mut value = object.value.clone();
                retain(&mut value, "ownerReferences", |owner| !uids.iter().any(|uid| owner["uid"] == uid.as_str()));
                self.write(&object, value, now);
            }
            Step::Finish(object, finalizer) => {
                let mut value = object.value.clone();
                retain(&mut value, "finalizers", |known| known != finalizer);
                self.write(&object, value, now);
            }
            Step::EndNamespace(object) => {
                let mut value = object.value.clone();
                value["spec"] = json!({});
                self.write(&object, value, now);
            }
        }
    }

    /// Writes an object, or lets it go if nothing holds it any more.
    fn write(&mut self, object: &Arc<Object>, value: Value, now: Timestamp) {
        let changed = Object::new(object.kind.clone(), object.key.clone(), value, object.managed.clone());
        let is_free = changed.is_deleting()
            && changed.finalizers().next().is_none()
            && changed.metadata("deletionGracePeriodSeconds").as_i64().unwrap_or_default() == 0
            && !(*changed.kind.resource == *"namespaces" && self.waits_for_end(&changed));
        if is_free {
            self.remove_object(object, (now, &cause("update")));
        } else {
            self.store.put(changed, &cause("patch"));
        }
    }
}

/// Keeps some elements of a list in the metadata. An empty list is left out.
fn retain(value: &mut Value, field: &str, keep: impl Fn(&Value) -> bool) {
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    if let Some(list) = metadata.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(keep);
        if list.is_empty() {
            metadata.remove(field);
        }
    }
}

fn cause(verb: &'static str) -> Cause {
    Cause { user: "system:kube-controller-manager".into(), verb }
}
