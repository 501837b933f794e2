//! What becomes of one object and of its children, in plain words and values. Pure.

use pilothouse_controller::pipeline::plan::{diff::Difference, masked};
use pilothouse_engine::contract::KindRef;
use serde::Serialize;
use serde_json::Value;

use crate::{
    ChildChange, ForecastObject,
    outcome::{self, Outcome, Trouble},
};

/// What becomes of an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReport {
    /// Its namespace; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub state: State,
    /// Why it is in error, or left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether its status says the same today.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_in_error_today: bool,
    /// Whether the host would add a finalizer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adds_finalizer: bool,
    /// The labels and annotations that a decorator would change on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// What would become of its children, step by step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Vec<ChildReport>>,
}

/// What becomes of an object, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// A child, a finalizer, or a label or annotation of a decorator would change.
    Changed,
    /// Nothing would.
    Unchanged,
    /// The host would leave it alone.
    LeftAlone,
    /// It is pinned to another version.
    Pinned,
    /// It is being deleted, or its time is over.
    Deleting,
    /// It would be in error.
    InError,
}

/// What becomes of a child.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildReport {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What the host would do.
    pub action: Action,
    /// Why, of a delete or one that is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The fields that would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// The digest of what would be applied, as in the child's annotation `pilothouse.dev/applied`. None for a Secret: from it a short value
    /// can be found by trying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The body of one that would be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Why the API server would refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// What the host would do with a child, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Action {
    /// Create it.
    Create,
    /// Change it.
    Update,
    /// Delete it and create it anew.
    Recreate,
    /// Delete it.
    Delete,
    /// Not delete it until somebody confirms that.
    HoldBack,
}

/// A field that would change.
#[derive(Debug, Serialize)]
pub struct Field {
    /// Where it is, as a JSON pointer.
    pub path: String,
    /// What it is; null if it is missing.
    pub from: Value,
    /// What it would be; null if it would be missing.
    pub to: Value,
}

/// Why the API server would refuse a write.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

impl ObjectReport {
    /// Its namespace, if it has one, and its name.
    pub fn full_name(&self) -> String {
        match self.namespace.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{}", self.namespace, self.name),
        }
    }

    /// What a forecast says of an object.
    pub fn of(kind: &KindRef, object: &ForecastObject) -> Self {
        let outcome = &object.outcome;
        let (state, reason, message) = match outcome {
            Outcome::LeftAlone(why) => (State::LeftAlone, Some(format!("{why:?}")), Some(why.to_string())),
            Outcome::Pinned => (State::Pinned, None, None),
            Outcome::Deleting => (State::Deleting, None, None),
            Outcome::Answered { trouble: Some(Trouble { reason, message, .. }), .. } => {
                (State::InError, Some(reason.clone()), Some(message.clone()))
            }
            Outcome::Answered { .. } if outcome.is_change() => (State::Changed, None, None),
            Outcome::Answered { .. } => (State::Unchanged, None, None),
        };
        let (steps, adds_finalizer, fields) = match outcome {
            Outcome::Answered { steps, adds_finalizer, decoration, .. } => {
                let step = |step: &Vec<ChildChange>| step.iter().map(ChildReport::of).collect();
                let fields = decoration.iter().map(|difference| Field::of(kind, difference)).collect();
                (steps.iter().map(step).collect(), *adds_finalizer, fields)
            }
            Outcome::LeftAlone(_) | Outcome::Pinned | Outcome::Deleting => (Vec::new(), false, Vec::new()),
        };
        Self {
            namespace: object.name.namespace.to_string(),
            name: object.name.name.to_string(),
            state,
            reason,
            message,
            is_in_error_today: outcome.trouble().is_some_and(|trouble| trouble.is_present),
            adds_finalizer,
            fields,
            steps,
        }
    }
}

impl Action {
    /// What it is in a printed plan.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Update => "~",
            Self::Recreate => "-/+",
            Self::Delete => "-",
            Self::HoldBack => "?",
        }
    }
}

impl ChildReport {
    fn of(change: &ChildChange) -> Self {
        let kind = &change.kind;
        let fields = |differences: &[_]| differences.iter().map(|difference| Field::of(kind, difference)).collect();
        let (action, cause, fields, body) = match &change.action {
            outcome::Action::Create(body) => (Action::Create, None, Vec::new(), Some(masked::body(kind, body))),
            outcome::Action::Update(differences) => (Action::Update, None, fields(differences), None),
            outcome::Action::Recreate(differences) => (Action::Recreate, None, fields(differences), None),
            outcome::Action::Delete(cause) => (Action::Delete, Some(cause.clone()), Vec::new(), None),
            outcome::Action::HoldBack(why) => (Action::HoldBack, Some(why.clone()), Vec::new(), None),
        };
        Self {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            namespace: change.name.namespace.to_string(),
            name: change.name.name.to_string(),
            action,
            cause,
            fields,
            digest: masked::digest(kind, change.digest.clone()),
            body,
            refused: change
                .refused
                .as_ref()
                .map(|refused| Refused { reason: refused.reason.clone(), message: refused.message.clone() }),
        }
    }
}

impl Field {
    fn of(kind: &KindRef, difference: &Difference) -> Self {
        let shown = |value| masked::value(kind, &difference.path, value);
        Self { path: difference.path.clone(), from: shown(&difference.live), to: shown(&difference.desired) }
    }
}
