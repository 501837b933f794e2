//! What the host does with an answer: rounds of writes, then the status and what is new in it. Everything it writes goes
//! through one count, so that it can stop before any write.

use super::{Key, World, is_deleting};
use pilothouse_sdk::raw::{Child, Response};
use pilothouse_sdk::{ConditionStatus, Error, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rounds of one reconcile, as in the host.
const ROUNDS: usize = 5;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The status was written, or was right already.
    Reported,
    /// The host stopped before the next write.
    Crashed,
}

impl World {
    /// Reconciles once: rounds until nothing is left to write, then the status with what is new in it.
    pub fn reconcile(&mut self) -> Result<End, Error> {
        for _ in 0..ROUNDS {
            let response = self.ask()?.response;
            match self.apply(&response)? {
                Some(true) => {}
                Some(false) => return self.report(response),
                None => return Ok(End::Crashed),
            }
        }
        Err(Error::Test("the plugin does not come to rest".to_owned()))
    }

    /// Writes children; none if the host stopped, otherwise whether there was anything to write.
    fn apply(&mut self, response: &Response) -> Result<Option<bool>, Error> {
        let Some(listed) = &response.children else { return Ok(Some(false)) };
        let mut wanted = BTreeMap::new();
        for Child { object, .. } in listed {
            let child: Value = read(object)?;
            if wanted.insert(key(&child), child).is_some() {
                return Err(Error::Test(format!("a child twice: {object}")));
            }
        }
        let mut wrote = false;
        for (key, child) in &wanted {
            match self.children.get(key) {
                None => {
                    if !self.may_write() {
                        return Ok(None);
                    }
                    self.create(key, child);
                    wrote = true;
                }
                Some(live) if is_deleting(live) => {}
                Some(live) => wrote |= self.update(key, child, &live.clone())?,
            }
        }
        let surplus = self.children.iter().filter(|(key, live)| !wanted.contains_key(*key) && !is_deleting(live));
        for key in surplus.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            if !self.may_write() {
                return Ok(None);
            }
            self.removes_many |= response.removes_many;
            self.delete(&key);
            wrote = true;
        }
        Ok(Some(wrote))
    }

    fn create(&mut self, key: &Key, child: &Value) {
        self.made += 1;
        let mut live = child.clone();
        live["metadata"]["uid"] = json!(format!("uid-{}", self.made));
        if key.0 == "Pod" {
            live["status"] = json!({ "phase": "Pending" });
        }
        self.children.insert(key.clone(), live);
    }

    /// A Pod that is there can be returned as it is, and not otherwise.
    fn update(&mut self, key: &Key, child: &Value, live: &Value) -> Result<bool, Error> {
        let mut after = live.clone();
        for field in child.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata") {
            after[field.0] = field.1.clone();
        }
        after["metadata"]["labels"] = child["metadata"]["labels"].clone();
        after["metadata"]["annotations"] = child["metadata"]["annotations"].clone();
        let is_same = after["metadata"]["labels"] == live["metadata"]["labels"] && after["spec"] == live["spec"];
        if key.0 == "Pod" && !is_same {
            return Err(Error::Test(format!("Pod '{}' would be changed in place", key.1)));
        }
        let changes = !is_same || after["data"] != live["data"];
        if changes {
            self.children.insert(key.clone(), after);
        }
        Ok(changes)
    }

    fn delete(&mut self, key: &Key) {
        let time = self.time(0);
        match self.children.get_mut(key) {
            Some(live) if self.graceful && key.0 == "Pod" => live["metadata"]["deletionTimestamp"] = json!(time),
            _ => drop(self.children.remove(key)),
        }
    }

    /// Writes the status if it differs, and takes what is new with it.
    fn report(&mut self, response: Response) -> Result<End, Error> {
        let mut status = match &response.status {
            Some(text) => read(text)?,
            None => self.job.get("status").cloned().unwrap_or_else(|| json!({})),
        };
        status["conditions"] = self.conditions(&response);
        if self.job.get("status") != Some(&status) {
            if !self.may_write() {
                return Ok(End::Crashed);
            }
            self.job["status"] = status;
            self.events.extend(response.events.into_iter().map(|event| (event.reason, event.message)));
            for sample in response.measurements {
                *self.samples.entry(sample.name).or_default() += sample.value;
            }
        }
        self.requeue = match &response.verdict {
            Verdict::Wait(waiting) => {
                Some(response.requeue_after.map_or(waiting.seconds, |asked| asked.min(waiting.seconds)))
            }
            _ => response.requeue_after,
        };
        self.verdict = response.verdict;
        Ok(End::Reported)
    }

    fn conditions(&self, response: &Response) -> Value {
        let ready = match &response.verdict {
            Verdict::Wait(waiting) => Some((waiting.reason.clone(), waiting.message.clone())),
            Verdict::Invalid(message) => Some(("Invalid".to_owned(), message.clone())),
            _ => None,
        };
        let word = |status| match status {
            ConditionStatus::IsTrue => "True",
            ConditionStatus::IsFalse => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        let own = response.conditions.iter().filter(|own| own.condition_type != "Ready" || ready.is_none());
        let own = own.map(|own| {
            json!({ "type": own.condition_type, "status": word(own.status), "reason": own.reason,
            "message": own.message })
        });
        let hosts = ready.iter().map(|(reason, message)| {
            json!({ "type": "Ready", "status": "False", "reason": reason,
            "message": message })
        });
        let mut all: Vec<_> = own.chain(hosts).collect();
        all.sort_by_key(|condition| condition["type"].to_string());
        Value::Array(all)
    }

    fn may_write(&mut self) -> bool {
        match &mut self.writes_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// Reads JSON.
fn read(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}

fn key(child: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&child["kind"]), text(&child["metadata"]["name"]))
}
