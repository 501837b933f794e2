//! What the host does with a response: it writes children until none differs, then it writes the status and takes the Events
//! and measurements that come with it. It counts creations, deletions and status writes, and can stop before any of them.

use super::kubelet::{GRACE_PERIOD, has_ended, mark_deleted};
use super::{ChildKey, ReportedEvent, SimulatedCluster, is_deleting};
use pilothouse_sdk::raw::{Child, Condition, KindRef, Response};
use pilothouse_sdk::{ConditionStatus, Error, Handling, RefusedChild, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many times the host calls the plugin in one reconcile at most.
const MAX_ROUNDS: usize = 5;

/// A round that creates so many children more than there were does not count.
const WAVE: usize = 10;

/// Nor does one that creates so many bytes of them.
const WAVE_BYTES: usize = 128 << 10;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileEnd {
    /// The status is written, or did not differ.
    StatusWritten,
    /// The host stopped before the next write.
    HostStopped,
}

/// Why a reconcile did not get to its end.
enum Interruption {
    HostStopped,
    Failed(Error),
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl SimulatedCluster {
    /// Reconciles until nothing is left to do at this time, and checks that one more reconcile changes nothing.
    pub fn reconcile_until_stable(&mut self) -> Result<(), Error> {
        for _ in 0..10 {
            if self.reconcile()? == ReconcileEnd::HostStopped {
                self.writes_left = None;
                continue;
            }
            if self.requeue_after != Some(0) {
                let before = (self.job.clone(), self.children.clone());
                self.reconcile()?;
                let is_stable = before == (self.job.clone(), self.children.clone());
                let changed = || Error::Test("a second call with the same request has another result".to_owned());
                return is_stable.then_some(()).ok_or_else(changed);
            }
        }
        Err(Error::Test("the job does not become stable".to_owned()))
    }

    /// Reconciles once: calls the plugin until no child differs, then writes the status.
    pub fn reconcile(&mut self) -> Result<ReconcileEnd, Error> {
        match self.run_rounds() {
            Ok(()) => Ok(ReconcileEnd::StatusWritten),
            Err(Interruption::HostStopped) => Ok(ReconcileEnd::HostStopped),
            Err(Interruption::Failed(error)) => Err(error),
        }
    }

    fn run_rounds(&mut self) -> Result<(), Interruption> {
        let mut rounds = 0;
        while rounds < MAX_ROUNDS {
            let (before, answer) = (self.children.len(), self.call_plugin()?);
            self.created_bytes = 0;
            if self.write_children(&answer.response)? + self.force_deletions(&answer.forced_deletions)? == 0 {
                return self.report(answer.response);
            }
            let now = self.children.len();
            let is_wave = now >= before + WAVE || (now > before && self.created_bytes >= WAVE_BYTES);
            rounds += usize::from(!is_wave);
        }
        Err(Error::Test("the plugin returns other children in every round".to_owned()).into())
    }

    /// Writes the children that differ, and returns how many there were.
    fn write_children(&mut self, response: &Response) -> Result<usize, Interruption> {
        let Some(returned) = &response.children else { return Ok(0) };
        let desired = by_key(returned)?;
        let mut writes = 0;
        for (key, Desired { child, handling, unmanaged }) in &desired {
            match (self.children.get(key), handling) {
                (None, Handling::Keep) => {}
                (None, Handling::Apply | Handling::Create) => match self.refusal(key, child) {
                    Some(refusal) => writes += self.refuse(refusal),
                    None => {
                        self.begin_write()?;
                        self.create(key, child);
                        writes += 1;
                    }
                },
                (Some(observed), Handling::Apply) if !is_deleting(observed) => {
                    writes += self.update(key, child, unmanaged, &observed.clone())?;
                }
                (Some(_), _) => {}
            }
        }
        if self.deletes_are_held {
            return Ok(writes);
        }
        let surplus =
            self.children.iter().filter(|(key, observed)| !desired.contains_key(*key) && !is_deleting(observed));
        for key in surplus.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.begin_write()?;
            self.removes_many |= response.removes_many;
            self.delete(&key);
            writes += 1;
        }
        Ok(writes)
    }

    /// Removes the children that are being deleted and are not waited for, and returns how many there were.
    fn force_deletions(&mut self, forced: &[Value]) -> Result<usize, Interruption> {
        let mut writes = 0;
        for child in forced.iter().filter(|child| is_deleting(child)) {
            self.begin_write()?;
            self.children.remove(&key_of(child));
            writes += 1;
        }
        Ok(writes)
    }

    /// Why a child cannot be created, if it cannot.
    fn refusal(&self, key: &ChildKey, child: &Value) -> Option<RefusedChild> {
        let words = self.refused_pods.get(&key.name).filter(|_| key.kind == "Pod");
        let (reason, message) = match words {
            Some(words) => ("AdmissionDenied", words.clone()),
            None if self.taken_names.contains(key) => ("NameConflict", "was made by somebody else".to_owned()),
            None => return None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(RefusedChild {
            kind: KindRef { api_version: text(&child["apiVersion"]).unwrap_or_default(), kind: key.kind.clone() },
            namespace: text(&self.job["metadata"]["namespace"]),
            name: key.name.clone(),
            reason: reason.to_owned(),
            message,
        })
    }

    /// Remembers a refused write, to tell the plugin. Returns 1 if that is news to it.
    fn refuse(&mut self, refusal: RefusedChild) -> usize {
        let is_known =
            self.refused.iter().any(|known| known.kind.kind == refusal.kind.kind && known.name == refusal.name);
        if !is_known {
            self.refused.push(refusal);
        }
        usize::from(!is_known)
    }

    fn create(&mut self, key: &ChildKey, child: &Value) {
        self.created_children += 1;
        self.created_bytes += child.to_string().len();
        let mut created = child.clone();
        created["metadata"]["uid"] = json!(format!("uid-{}", self.created_children));
        created["metadata"]["creationTimestamp"] = json!(self.time_after(0));
        self.refused.retain(|refused| refused.kind.kind != key.kind || refused.name != key.name);
        if key.kind == "Pod" {
            created["status"] = json!({ "phase": "Pending" });
        }
        self.children.insert(key.clone(), created);
    }

    /// Updates a child that differs, and returns how many writes that took. The spec of a Pod cannot change, so one that differs is an
    /// error of the plugin, and so is one that is left out without being left to others.
    fn update(
        &mut self,
        key: &ChildKey,
        desired: &Value,
        unmanaged: &[String],
        observed: &Value,
    ) -> Result<usize, Error> {
        let mut updated = observed.clone();
        for (field, value) in desired.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata") {
            updated[field] = value.clone();
        }
        for field in ["labels", "annotations"] {
            for (name, value) in desired["metadata"][field].as_object().into_iter().flatten() {
                updated["metadata"][field][name] = value.clone();
            }
        }
        let has_its_spec = desired.get("spec").is_some() || unmanaged.iter().any(|field| field == "/spec");
        if key.kind == "Pod" && (updated["spec"] != observed["spec"] || !has_its_spec) {
            return Err(Error::Test(format!("Pod '{}' would be changed in place", key.name)));
        }
        if updated == *observed {
            return Ok(0);
        }
        self.children.insert(key.clone(), updated);
        Ok(1)
    }

    fn delete(&mut self, key: &ChildKey) {
        let ends_at = self.time_after(GRACE_PERIOD);
        match self.children.get_mut(key) {
            Some(pod) if self.graceful_deletion && key.kind == "Pod" && !has_ended(pod) => mark_deleted(pod, &ends_at),
            _ => drop(self.children.remove(key)),
        }
    }

    /// Writes the status if it differs. Events and measurements count only together with such a write.
    fn report(&mut self, response: Response) -> Result<(), Interruption> {
        let mut status = match &response.status {
            Some(text) => read(text)?,
            None => self.job.get("status").cloned().unwrap_or_else(|| json!({})),
        };
        status["conditions"] = conditions(&response);
        if self.job.get("status") != Some(&status) {
            self.begin_write()?;
            self.job["status"] = status;
            let events = response.events.into_iter();
            self.events.extend(events.map(|event| ReportedEvent { reason: event.reason, message: event.message }));
            for measurement in response.measurements {
                *self.measurements.entry(measurement.name).or_default() += measurement.value;
            }
        }
        self.requeue_after = match &response.verdict {
            Verdict::Wait(waiting) => {
                Some(response.requeue_after.map_or(waiting.seconds, |seconds| seconds.min(waiting.seconds)))
            }
            _ => response.requeue_after,
        };
        self.verdict = response.verdict;
        Ok(())
    }

    /// Counts a write, or stops the host if it may make no more.
    fn begin_write(&mut self) -> Result<(), Interruption> {
        match &mut self.writes_left {
            None => Ok(()),
            Some(0) => Err(Interruption::HostStopped),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

/// A child of an answer.
struct Desired {
    child: Value,
    handling: Handling,
    unmanaged: Vec<String>,
}

fn by_key(children: &[Child]) -> Result<BTreeMap<ChildKey, Desired>, Error> {
    let mut by_key = BTreeMap::new();
    for Child { object, handling, unmanaged_fields, .. } in children {
        let desired = Desired { child: read(object)?, handling: *handling, unmanaged: unmanaged_fields.clone() };
        if by_key.insert(key_of(&desired.child), desired).is_some() {
            return Err(Error::Test(format!("the response has a child twice: {object}")));
        }
    }
    Ok(by_key)
}

fn key_of(child: &Value) -> ChildKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ChildKey { kind: text(&child["kind"]), name: text(&child["metadata"]["name"]) }
}

/// The conditions of the status: those of the plugin, and the host's own `Ready` where the verdict calls for one.
fn conditions(response: &Response) -> Value {
    let ready = match &response.verdict {
        Verdict::Wait(waiting) => Some(not_ready(&waiting.reason, &waiting.message)),
        Verdict::Invalid(message) => Some(not_ready("Invalid", message)),
        _ => None,
    };
    let of_plugin = response.conditions.iter();
    let of_plugin = of_plugin.filter(|condition| condition.condition_type != "Ready" || ready.is_none());
    let mut all: Vec<_> = of_plugin.map(written).chain(ready.iter().map(written)).collect();
    all.sort_by_key(|condition| condition["type"].to_string());
    Value::Array(all)
}

fn not_ready(reason: &str, message: &str) -> Condition {
    Condition::new("Ready", ConditionStatus::IsFalse, reason, message)
}

fn written(condition: &Condition) -> Value {
    let status = match condition.status {
        ConditionStatus::IsTrue => "True",
        ConditionStatus::IsFalse => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    json!({
        "type": condition.condition_type, "status": status, "reason": condition.reason, "message": condition.message,
    })
}

fn read(json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|error| Error::Test(format!("{error}: {json}")))
}
