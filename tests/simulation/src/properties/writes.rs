//! Judges each write of a host when it happens: whether what it touches is its own, whether a delete follows from the latest answer of
//! the plugin, and whether the host may write at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pilothouse_controller::labels;
use pilothouse_engine::contract::Response;
use serde_json::Value;

use super::{Property, Violation, subset::missing};
use crate::{host_id::HostId, paths::OWN_NAMESPACE, plugin::scope::Scope};

/// A child by kind, namespace and name. The namespace is empty for one without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChildName {
    kind: String,
    namespace: String,
    name: String,
}

/// One write of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite<'a> {
    /// The host.
    pub host: HostId,
    /// The object before; none if it is new.
    pub before: Option<&'a Value>,
    /// The object after; none if it is gone.
    pub after: Option<&'a Value>,
    /// Whether it was a delete, even if the object only waits for its finalizers.
    pub is_delete: bool,
}

/// What the judgement is based on, and what it found.
#[derive(Debug, Default)]
pub struct Writes(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The children of the latest answer for each object, by host and UID; none if it leaves them as they are.
    answers: BTreeMap<(HostId, String), Option<BTreeMap<ChildName, Value>>>,
    /// Which of the children of the latest answer did not exist since, and not in the host's caches either, by the same.
    missing: BTreeMap<(HostId, String), BTreeSet<ChildName>>,
    /// The children that exist.
    existing: BTreeSet<ChildName>,
    /// The UIDs of children that garbage collection released from an owner, with the owner's UID.
    released: BTreeSet<(String, String)>,
    /// What users let objects adopt.
    adoptable: BTreeSet<ChildName>,
    /// How many writes hosts made, without those of Leases and Events.
    count: u64,
    /// The latest write, in words.
    latest: String,
    violations: Vec<Violation>,
}

impl Writes {
    /// A host's plugin answered for an object of which it was shown these children.
    pub fn answered(&self, host: HostId, (object, shown): (&Value, &[Value]), response: &Response) {
        let uid = text(object, "/metadata/uid").to_owned();
        let namespace = text(object, "/metadata/namespace");
        let children: Option<BTreeMap<ChildName, Value>> = response.children.as_ref().map(|children| {
            let parsed = children.iter().filter_map(|child| serde_json::from_str::<Value>(&child.object).ok());
            parsed.map(|child| (ChildName::of(&child).or_in(namespace), child)).collect()
        });
        let mut inner = self.lock();
        let wanted = children.iter().flat_map(BTreeMap::keys);
        let shown: BTreeSet<_> = shown.iter().map(ChildName::of).collect();
        let missing =
            wanted.filter(|name| !inner.existing.contains(*name) && !shown.contains(*name)).cloned().collect();
        inner.missing.insert((host, uid.clone()), missing);
        match children {
            Some(children) => drop(inner.answers.insert((host, uid), Some(children))),
            // The children stay as they are: what was wanted before is no longer known, and nothing is unwanted.
            None => drop(inner.answers.insert((host, uid), None)),
        }
    }

    /// A user lets an object adopt what has this kind and name.
    pub fn may_be_adopted(&self, kind: &str, namespace: &str, name: &str) {
        let (kind, namespace, name) = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.lock().adoptable.insert(ChildName { kind, namespace, name });
    }

    /// Something came, changed or went, whoever did it.
    pub fn changed(&self, by_garbage_collection: bool, before: Option<&Value>, after: Option<&Value>) {
        let Some(object) = before.or(after) else { return };
        let (mut inner, name) = (self.lock(), ChildName::of(object));
        match after {
            Some(_) => {
                for missing in inner.missing.values_mut() {
                    missing.remove(&name);
                }
                inner.existing.insert(name);
            }
            None => {
                inner.existing.remove(&name);
            }
        }
        if by_garbage_collection && let Some(before) = before {
            inner.collected(before, after);
        }
    }

    /// A host sent a write, whether or not it changes anything.
    pub fn asked(&self, what: impl FnOnce() -> String) {
        let mut inner = self.lock();
        inner.count += 1;
        inner.latest = what();
    }

    /// A host changed something.
    pub fn wrote(&self, write: HostWrite<'_>) {
        let Some(object) = write.before.or(write.after) else { return };
        let name = ChildName::of(object);
        // The record of kinds is the host's own.
        if ["Lease", "Event"].contains(&name.kind.as_str()) || name.namespace == OWN_NAMESPACE {
            return;
        }
        let mut inner = self.lock();
        let found = if Scope::is_reconciled(&object["kind"]) { of_object(write) } else { inner.of_child(write, &name) };
        inner.violations.extend(found);
    }

    /// A host without the Lease wrote.
    pub fn wrote_without_lease(&self, host: HostId, holder: &str, what: &str) {
        let what = format!("{host} sends {what} while the Lease names '{holder}'");
        self.lock().violations.push(Violation { property: Property::OneWriter, what });
    }

    /// Something else was violated.
    pub fn violated(&self, violation: Violation) {
        self.lock().violations.push(violation);
    }

    /// How many writes there were, and the latest.
    pub fn count(&self) -> (u64, String) {
        let inner = self.lock();
        (inner.count, inner.latest.clone())
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<Violation> {
        self.lock().violations.first().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Judges a write of an object that the plugin reconciles.
fn of_object(write: HostWrite<'_>) -> Option<Violation> {
    let violation = |what: String| Some(Violation { property: Property::ObjectsAreTheirUsers, what });
    let Some(before) = write.before else { return violation(format!("{} creates an object", write.host)) };
    let name = text(before, "/metadata/name");
    if write.is_delete {
        return violation(format!("{} deletes the object {name}", write.host));
    }
    let after = write.after?;
    let same = |pointer: &str| before.pointer(pointer) == after.pointer(pointer);
    let kept = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/ownerReferences"];
    let changed = kept.into_iter().find(|pointer| !same(pointer))?;
    violation(format!("{} changes {changed} of the object {name}", write.host))
}

impl Inner {
    /// Judges a write of anything else.
    fn of_child(&self, write: HostWrite<'_>, name: &ChildName) -> Option<Violation> {
        let before = write.before?;
        let owner = match self.owner(before, name) {
            Ok(owner) => owner,
            Err(why) => {
                let what = format!("{} writes {name}, which {why}", write.host);
                return Some(Violation { property: Property::OnlyOwnObjects, what });
            }
        };
        if !write.is_delete {
            return None;
        }
        let of = (write.host, owner.to_owned());
        let why = match self.answers.get(&of) {
            None => "its plugin was never asked about the owner",
            Some(None) => "the latest answer leaves the children as they are",
            Some(Some(children)) => match children.get(name) {
                Some(wanted) if !is_recreated(wanted, before) => "the latest answer holds it",
                Some(_) => return None,
                None => {
                    let missing = self.missing.get(&of).and_then(|missing| missing.first())?;
                    let what = format!("{} deletes {name} before {missing} exists", write.host);
                    return Some(Violation { property: Property::DeletesLast, what });
                }
            },
        };
        let what = format!("{} deletes {name}, but {why}", write.host);
        Some(Violation { property: Property::OnlyUnwantedDeleted, what })
    }

    /// Judges what garbage collection did.
    fn collected(&mut self, before: &Value, after: Option<&Value>) {
        let uid = text(before, "/metadata/uid").to_owned();
        let owners = |object: &Value| {
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned();
            owners.unwrap_or_default().into_iter().filter_map(|owner| Some(owner["uid"].as_str()?.to_owned()))
        };
        let Some(after) = after else {
            if owners(before).any(|owner| self.released.contains(&(uid.clone(), owner))) {
                let name = ChildName::of(before);
                let what = format!("{name} was left behind on purpose, and got its deleted owner again");
                self.violations.push(Violation { property: Property::OrphansStay, what });
            }
            return;
        };
        let left: BTreeSet<_> = owners(after).collect();
        let released = owners(before).filter(|owner| !left.contains(owner));
        self.released.extend(released.map(|owner| (uid.clone(), owner)));
    }

    /// The UID of the object that a child belongs to; why it belongs to none.
    fn owner<'a>(&self, child: &'a Value, name: &ChildName) -> Result<&'a str, String> {
        let owners = child.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let controller = owners.into_iter().find(|owner| owner["controller"] == true);
        let annotation = |key: &str| child["metadata"]["annotations"][key].as_str().unwrap_or_default();
        let label = |key: &str| child["metadata"]["labels"][key].as_str();
        match controller {
            Some(owner) if Scope::is_reconciled(&owner["kind"]) => Ok(owner["uid"].as_str().unwrap_or_default()),
            Some(owner) => Err(format!("{} '{}' controls", owner["kind"], owner["name"])),
            None if self.adoptable.contains(name) => Ok(label(labels::OWNER_UID).unwrap_or_default()),
            None => {
                let group = text(child, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
                let identity = labels::identity(&name.kind, group, &name.object());
                let owner = label(labels::OWNER_UID).filter(|_| annotation(labels::IDENTITY) == identity);
                owner.ok_or_else(|| "has no owner and is not marked as a child".to_owned())
            }
        }
    }
}

/// Whether a wanted child can only be had by creating it anew: a field differs that cannot change.
fn is_recreated(wanted: &Value, live: &Value) -> bool {
    let immutable = ["/spec/selector/matchLabels"];
    immutable.into_iter().any(|pointer| {
        let (wanted, live) = (wanted.pointer(pointer), live.pointer(pointer));
        wanted.is_some_and(|wanted| missing(wanted, live.unwrap_or(&Value::Null)).is_some())
    })
}

impl ChildName {
    fn of(object: &Value) -> Self {
        let text = |pointer: &str| text(object, pointer).to_owned();
        Self { kind: text("/kind"), namespace: text("/metadata/namespace"), name: text("/metadata/name") }
    }

    /// The same in a namespace, if it names none.
    fn or_in(mut self, namespace: &str) -> Self {
        if self.namespace.is_empty() {
            self.namespace = namespace.to_owned();
        }
        self
    }

    /// The namespace, if there is one, and the name.
    fn object(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Display for ChildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.object())
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
