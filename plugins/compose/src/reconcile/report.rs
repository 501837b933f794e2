//! The status and the conditions that a composition says of its object. What is not known yet is left out of the status, and is `Unknown` as a
//! condition.

use pilothouse_expression::EvaluationError;
use pilothouse_sdk::{Condition, ConditionStatus, Response};
use serde_json::{Map, Value};

use super::findings::Findings;
use super::state::{ReadsOthers, Round, Unresolved};
use crate::parts::{self, Node};
use crate::problem::Path;
use crate::template::{NoValue, Template, ValueError, type_of};

/// The reason of a condition that is not known yet.
const NOT_KNOWN: &str = "NotKnownYet";

/// The condition that says whether the object is ready.
const READY: &str = "Ready";

/// What is said of an object.
pub struct Report {
    status: Map<String, Value>,
    conditions: Vec<Condition>,
}

impl Report {
    /// A response with what is said. `Ready` is the host's while the object waits or something is wrong, for it knows why.
    pub fn add_to(self, response: Response, findings: &Findings) -> Response {
        let Findings { waits, wrong, unready, missing, .. } = findings;
        let is_known = waits.is_empty() && wrong.is_empty() && missing.is_empty();
        // What is missing takes everything as it is, also what was said of it.
        let response = match missing.is_empty() {
            true => response.status(self.status),
            false => response,
        };
        let is_said = |condition: &Condition| {
            let contradicts = !unready.is_empty() && condition.status == ConditionStatus::IsTrue;
            condition.condition_type != READY || (is_known && !contradicts)
        };
        self.conditions.into_iter().filter(is_said).fold(response, Response::condition)
    }
}

/// What a composition says of its object. What is wrong is added to `wrong`.
pub fn report(round: &Round<'_>, wrong: &mut Vec<String>) -> Report {
    let teller = Teller { round, values: round.values(), values_to_tell: round.values_to_tell() };
    let mut status = Map::new();
    for (field, template) in &round.composition.status {
        match teller.told(template, &Path::of("status").field(field)) {
            Ok(value) => status.extend(value.map(|value| (field.clone(), value))),
            Err(Unresolved::Wrong(why)) => wrong.push(why),
            Err(Unresolved::Waits(_) | Unresolved::Excluded) => {}
        }
    }
    let mut conditions = Vec::new();
    for condition in &round.composition.conditions {
        match teller.condition(condition) {
            Ok(said) => conditions.push(said),
            Err(Unresolved::Waits(why)) => {
                let unknown = ConditionStatus::Unknown;
                conditions.push(Condition::new(&condition.condition_type, unknown, NOT_KNOWN, why));
            }
            Err(Unresolved::Wrong(why)) => wrong.push(why),
            Err(Unresolved::Excluded) => {}
        }
    }
    Report { status, conditions }
}

/// Evaluates what is told.
struct Teller<'t> {
    round: &'t Round<'t>,
    values: Vec<Option<&'t Value>>,
    /// With `null` for what is not there.
    values_to_tell: Vec<Option<&'t Value>>,
}

impl Teller<'_> {
    /// The value of a template. One that reads something that is not there may still have a value: it can ask whether that is `null`, and with
    /// `.?` for what is below it.
    fn told(&self, template: &Template, path: &Path) -> Result<Option<Value>, Unresolved> {
        let error = match template.value(path, &self.values) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let is_not_there = matches!(error.error, ValueError::Evaluation(EvaluationError::NotThere(_)));
        match is_not_there.then(|| template.value(path, &self.values_to_tell)) {
            Some(Ok(value)) => Ok(value),
            _ => Err(self.unresolved(template, &error)),
        }
    }

    fn text(&self, template: &Template, path: &Path) -> Result<String, Unresolved> {
        match self.told(template, path)? {
            Some(Value::String(text)) => Ok(text),
            other => Err(Unresolved::Wrong(format!("{path}: it must be a text, not {}", type_of(other.as_ref())))),
        }
    }

    fn condition(&self, condition: &parts::Condition) -> Result<Condition, Unresolved> {
        let parts::Condition { path, condition_type, status, reason, message } = condition;
        let place = path.field("status");
        let is = match self.told(status, &place)? {
            Some(Value::Bool(true)) => ConditionStatus::IsTrue,
            Some(Value::Bool(false)) => ConditionStatus::IsFalse,
            Some(Value::String(word)) if word == "True" => ConditionStatus::IsTrue,
            Some(Value::String(word)) if word == "False" => ConditionStatus::IsFalse,
            Some(Value::String(word)) if word == "Unknown" => ConditionStatus::Unknown,
            other => {
                let found = other.as_ref().map_or_else(|| type_of(None).to_owned(), Value::to_string);
                return Err(Unresolved::Wrong(format!(
                    "{place}: it must be true, false, True, False or Unknown, not {found}"
                )));
            }
        };
        let message = message.as_ref().map(|message| self.text(message, &path.field("message"))).transpose()?;
        let reason = self.text(reason, &path.field("reason"))?;
        Ok(Condition::new(condition_type, is, reason, message.unwrap_or_default()))
    }

    fn unresolved(&self, template: &Template, error: &NoValue) -> Unresolved {
        let composition = self.round.composition;
        let places = template.references().into_iter().filter_map(|reference| composition.place(&reference.name));
        let mut nodes = places.filter_map(|place| composition.nodes.get(place));
        let reads_others = nodes.any(|node| match node {
            Node::Variable { .. } => self.round.reads_others(node) == ReadsOthers::Yes,
            Node::Lookup(_) | Node::Resource(_) => true,
        });
        let reads = if reads_others { ReadsOthers::Yes } else { ReadsOthers::No };
        self.round.unresolved(error, reads)
    }
}
