//! Judges each write of a host when it happens: whether what it touches is its own, whether a delete follows from the latest answer of
//! the plugin, whether children come and go in their order, and whether the host may write at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use pilothouse_controller::labels;
use pilothouse_engine::contract::{Child, Response};
use serde_json::Value;

use super::{
    Property, Violation,
    reconciled::{controller, is_reconciled},
    subset::missing,
};
use crate::{host_id::HostId, network::date, paths::OWN_NAMESPACE, plugin::decide::has_condition};

/// How late a write may arrive after its time was read.
const DELAYED: SignedDuration = SignedDuration::from_mins(5);

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
    /// When.
    pub now: Timestamp,
}

/// What the judgement is based on, and what it found.
#[derive(Debug, Default)]
pub struct Writes(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The latest answer for each object, by host and UID.
    answers: BTreeMap<(HostId, String), Answer>,
    /// The children that exist.
    existing: BTreeSet<ChildName>,
    /// Those that wait for others: how many are before each in the order of its object's children, and the UID of the object.
    places: BTreeMap<ChildName, (u64, String)>,
    /// The UIDs of objects that are being deleted.
    deleting: BTreeSet<String>,
    /// Whether it is judged in which order children go.
    judges_order: bool,
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

/// An answer of the plugin.
#[derive(Debug)]
struct Answer {
    /// The children; none if it leaves them as they are.
    children: Option<BTreeMap<ChildName, Wanted>>,
    /// Which of them did not exist since, and not in the host's caches either.
    missing: BTreeSet<ChildName>,
}

/// A child that there shall be.
#[derive(Debug)]
struct Wanted {
    body: Value,
    /// One that it waits for and that was not as it shall be when the plugin was asked.
    obstacle: Option<ChildName>,
}

impl Writes {
    /// From now on it is judged in which order children go. A host that does not know all of them cannot keep to it.
    pub fn judge_order(&self) {
        self.lock().judges_order = true;
    }

    /// A host's plugin answered for an object of which it was shown these children.
    pub fn answered(&self, host: HostId, (object, shown): (&Value, &[Value]), response: &Response) {
        let uid = text(&object["metadata"]["uid"]).to_owned();
        let namespace = text(&object["metadata"]["namespace"]);
        let shown: BTreeMap<_, _> = shown.iter().map(|child| (ChildName::of(child), child)).collect();
        // Without children they stay as they are: what was wanted before is no longer known, and nothing is unwanted.
        let children = response.children.as_ref().map(|children| wanted(children, namespace, &shown));
        let mut inner = self.lock();
        let names = children.iter().flat_map(BTreeMap::keys);
        let missing =
            names.filter(|name| !inner.existing.contains(*name) && !shown.contains_key(*name)).cloned().collect();
        inner.answers.insert((host, uid), Answer { children, missing });
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
            Some(after) => {
                for answer in inner.answers.values_mut() {
                    answer.missing.remove(&name);
                }
                inner.note_order(&name, after);
                inner.existing.insert(name);
            }
            None => {
                inner.places.remove(&name);
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
        let found = if is_reconciled(&object["kind"]) { of_object(write) } else { inner.of_child(write, &name) };
        inner.violations.extend(found);
    }

    /// A host without the Lease that it needs wrote.
    pub fn wrote_without_lease(&self, host: HostId, (lease, holder): (&str, &str), what: &str) {
        let what = format!("{host} sends {what} while the Lease {lease} names '{holder}'");
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
    let name = text(&before["metadata"]["name"]);
    if write.is_delete {
        return violation(format!("{} deletes the object {name}", write.host));
    }
    let after = write.after?;
    let same = |pointer: &str| before.pointer(pointer) == after.pointer(pointer);
    let kept = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/ownerReferences"];
    if let Some(changed) = kept.into_iter().find(|pointer| !same(pointer)) {
        return violation(format!("{} changes {changed} of the object {name}", write.host));
    }
    let wrong = wrong_time(before, after, write.now)?;
    let what = format!("{} writes into the object {name} that {wrong}, and it is {}", write.host, write.now);
    Some(Violation { property: Property::TimesAreTheServers, what })
}

/// A condition whose time a write changes to one that was not now: later than an API server could say, or long ago.
fn wrong_time(before: &Value, after: &Value, now: Timestamp) -> Option<String> {
    let of = |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let known = of(before);
    let latest = now.saturating_add(SignedDuration::from_secs(date::MOST + 1)).unwrap_or(now);
    let earliest = now.saturating_sub(DELAYED).unwrap_or(now);
    of(after).iter().find_map(|condition| {
        let time = text(&condition["lastTransitionTime"]);
        let is_new = !known.iter().any(|known| known["lastTransitionTime"] == time);
        let is_wrong = |time: &Timestamp| *time > latest || *time < earliest;
        let wrong = time.parse().ok().filter(|time| is_new && is_wrong(time))?;
        Some(format!("{} changed at {wrong}", text(&condition["type"])))
    })
}

impl Inner {
    /// Judges a write of anything else.
    fn of_child(&self, write: HostWrite<'_>, name: &ChildName) -> Option<Violation> {
        let Some(before) = write.before else { return self.too_early(write, name) };
        let owner = match self.owner(before, name) {
            Ok(owner) => owner,
            Err(why) => {
                let what = format!("{} writes {name}, which {why}", write.host);
                return Some(Violation { property: Property::OnlyOwnObjects, what });
            }
        };
        if !write.is_delete {
            return self.too_early(write, name);
        }
        let answer = self.answers.get(&(write.host, owner.to_owned()));
        if self.deleting.contains(owner) {
            // The host may not know of it yet. Then it deletes what its plugin does not want, and what must be created anew.
            let children = answer.and_then(|answer| answer.children.as_ref());
            return match children.and_then(|children| children.get(name)) {
                Some(wanted) if is_recreated(&wanted.body, before) => None,
                Some(_) => self.out_of_order(write, (name, owner), None),
                None => self.out_of_order(write, (name, owner), children),
            };
        }
        let why = match answer.map(|answer| (answer, &answer.children)) {
            None => "its plugin was never asked about the owner",
            Some((_, None)) => "the latest answer leaves the children as they are",
            Some((answer, Some(children))) => match children.get(name) {
                Some(wanted) if !is_recreated(&wanted.body, before) => "the latest answer holds it",
                Some(_) => return None,
                None => {
                    let Some(missing) = answer.missing.first() else {
                        return self.out_of_order(write, (name, owner), Some(children));
                    };
                    let what = format!("{} deletes {name} before {missing} exists", write.host);
                    return Some(Violation { property: Property::DeletesLast, what });
                }
            },
        };
        let what = format!("{} deletes {name}, but {why}", write.host);
        Some(Violation { property: Property::OnlyUnwantedDeleted, what })
    }

    /// Judges whether a child that a host writes had to wait.
    fn too_early(&self, write: HostWrite<'_>, name: &ChildName) -> Option<Violation> {
        let owner = self.owner(write.after?, name).ok()?;
        let answer = self.answers.get(&(write.host, owner.to_owned()))?;
        let awaited = answer.children.as_ref()?.get(name)?.obstacle.as_ref()?;
        let what = format!("{} writes {name} before {awaited} is as it shall be", write.host);
        Some(Violation { property: Property::InOrder, what })
    }

    /// Judges whether another child had to go before one that a host deletes. Without wanted children all of them go.
    fn out_of_order(
        &self,
        write: HostWrite<'_>,
        (name, owner): (&ChildName, &str),
        wanted: Option<&BTreeMap<ChildName, Wanted>>,
    ) -> Option<Violation> {
        let place = write.before.and_then(place).unwrap_or_default();
        let goes = |other: &ChildName| wanted.is_none_or(|wanted| !wanted.contains_key(other));
        let is_first = |other: &ChildName, at: &(u64, String)| at.0 > place && at.1 == owner && goes(other);
        let (first, _) = self.places.iter().find(|(other, at)| self.judges_order && is_first(other, at))?;
        let what = format!("{} deletes {name} before {first} is gone", write.host);
        Some(Violation { property: Property::InOrder, what })
    }

    /// Notes the place of a child in the order of its object's children, and which objects are being deleted.
    fn note_order(&mut self, name: &ChildName, object: &Value) {
        if is_reconciled(&object["kind"]) {
            if !object["metadata"]["deletionTimestamp"].is_null() {
                self.deleting.insert(text(&object["metadata"]["uid"]).to_owned());
            }
            return;
        }
        let (labels, annotations) = (&object["metadata"]["labels"], &object["metadata"]["annotations"]);
        // What was released is nobody's any more, also where it has the marks of a child: it is left behind when its object goes.
        let is_known = !labels[labels::PLUGIN].is_null() && annotations[labels::ON_REMOVAL] != labels::KEEP;
        let is_known = is_known && controller(object).is_some();
        let owner = place(object).filter(|_| is_known).zip(self.owner(object, name).ok().map(str::to_owned));
        match owner {
            Some(at) => drop(self.places.insert(name.clone(), at)),
            None => drop(self.places.remove(name)),
        }
    }

    /// Judges what garbage collection did.
    fn collected(&mut self, before: &Value, after: Option<&Value>) {
        let uid = text(&before["metadata"]["uid"]).to_owned();
        let owners = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array().cloned();
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
        let annotation = |key: &str| child["metadata"]["annotations"][key].as_str().unwrap_or_default();
        let label = |key: &str| child["metadata"]["labels"][key].as_str();
        match controller(child) {
            Some(owner) if is_reconciled(&owner["kind"]) => Ok(owner["uid"].as_str().unwrap_or_default()),
            Some(owner) => Err(format!("{} '{}' controls", owner["kind"], owner["name"])),
            None if self.adoptable.contains(name) => Ok(label(labels::OWNER_UID).unwrap_or_default()),
            None => {
                let group = text(&child["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
                let identity = labels::identity(&name.kind, group, &name.object());
                let owner = label(labels::OWNER_UID).filter(|_| annotation(labels::IDENTITY) == identity);
                owner.ok_or_else(|| "has no owner and is not marked as a child".to_owned())
            }
        }
    }
}

/// How many children are before one in the order of its object's children; none if it waits for no other.
fn place(child: &Value) -> Option<u64> {
    child["metadata"]["annotations"][labels::ORDER].as_str()?.parse().ok()
}

/// The children that an answer asks for, of an object in a namespace, of whose children these were shown.
fn wanted(children: &[Child], namespace: &str, shown: &BTreeMap<ChildName, &Value>) -> BTreeMap<ChildName, Wanted> {
    let parsed: Vec<_> = children.iter().map(|child| serde_json::from_str(&child.object).unwrap_or_default()).collect();
    let names: Vec<_> = parsed.iter().map(|body| ChildName::of(body).or_in(namespace)).collect();
    let is_as_wanted = |place: usize| {
        let found = names.get(place).and_then(|name| shown.get(name));
        found.zip(parsed.get(place)).is_some_and(|(found, body)| is_current(found) && missing(body, found).is_none())
    };
    let obstacle = |child: &Child| {
        let awaited = child.after.iter().filter_map(|place| usize::try_from(*place).ok());
        awaited.into_iter().find(|place| !is_as_wanted(*place)).and_then(|place| names.get(place)).cloned()
    };
    let obstacles: Vec<_> = children.iter().map(obstacle).collect();
    let wanted = parsed.into_iter().zip(obstacles).map(|(body, obstacle)| Wanted { body, obstacle });
    names.into_iter().zip(wanted).collect()
}

/// Whether a child is there to stay, and its controller knows its spec; of a Job, whether it has completed.
fn is_current(child: &Value) -> bool {
    let is_done = match child["kind"].as_str().unwrap_or_default() {
        "Deployment" => child["status"]["observedGeneration"] == child["metadata"]["generation"],
        "Job" => has_condition(child, "Complete"),
        _ => true,
    };
    child["metadata"]["deletionTimestamp"].is_null() && is_done
}

/// Whether a wanted child can only be had by creating it anew: a field differs that cannot change.
fn is_recreated(wanted: &Value, live: &Value) -> bool {
    let is_job = live["kind"] == "Job";
    let immutable = if is_job { ["/spec/completions", "/spec/template"] } else { ["/spec/selector/matchLabels"; 2] };
    immutable.into_iter().any(|pointer| {
        let (wanted, live) = (wanted.pointer(pointer), live.pointer(pointer));
        wanted.is_some_and(|wanted| missing(wanted, live.unwrap_or(&Value::Null)).is_some())
    })
}

impl ChildName {
    fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let [kind, namespace, name] = [&object["kind"], &metadata["namespace"], &metadata["name"]].map(text);
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
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

fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}
