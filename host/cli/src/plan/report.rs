//! A plan as it is printed: plain words and values, without those of Secrets. Pure.

use pilothouse_controller::pipeline::plan::diff::Difference;
use pilothouse_engine::{Plugin, Reconciler, contract::KindRef};
use pilothouse_forecast::{self as forecast, ChildChange, Forecast, ForecastObject, Outcome, Trouble};
use serde::Serialize;
use serde_json::Value;

use super::{
    counts::Counts,
    masked,
    present::{Present, PresentVersion},
};

/// A plan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version that was tried.
    pub version: Version,
    /// What is at work today; none if no `Plugin` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<PresentVersion>,
    /// The kind of the objects.
    pub kind: String,
    /// How many there are, and what becomes of them.
    pub counts: Counts,
    /// What becomes of each.
    pub objects: Vec<ObjectReport>,
}

/// A version of a plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The name of the plugin.
    pub name: String,
    /// The version.
    pub version: String,
    /// The digest of the component.
    pub digest: String,
}

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
    /// What would become of its children, step by step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Vec<ChildReport>>,
}

/// What becomes of an object, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// A child, or a finalizer, would change.
    Changed,
    /// Nothing would.
    Unchanged,
    /// The host would leave it alone.
    LeftAlone,
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
    /// The digest of what would be applied, as in the child's annotation `pilothouse.dev/applied`.
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

impl Report {
    /// The report of a forecast.
    pub fn of(version: &Plugin, present: Option<&Present>, forecast: &Forecast) -> Self {
        let manifest = version.manifest();
        let objects: Vec<_> = forecast.objects.iter().map(ObjectReport::of).collect();
        Self {
            version: Version {
                name: manifest.name.clone(),
                version: manifest.version.clone(),
                digest: format!("sha256:{}", version.digest()),
            },
            present: present.map(Present::version),
            kind: forecast.kind.kind.clone(),
            counts: Counts::of(&objects),
            objects,
        }
    }
}

impl ObjectReport {
    fn of(object: &ForecastObject) -> Self {
        let outcome = &object.outcome;
        let (state, reason, message) = match outcome {
            Outcome::LeftAlone(why) => (State::LeftAlone, Some(format!("{why:?}")), Some(why.to_string())),
            Outcome::Deleting => (State::Deleting, None, None),
            Outcome::Answered { trouble: Some(Trouble { reason, message, .. }), .. } => {
                (State::InError, Some(reason.clone()), Some(message.clone()))
            }
            Outcome::Answered { .. } if outcome.is_change() => (State::Changed, None, None),
            Outcome::Answered { .. } => (State::Unchanged, None, None),
        };
        let (steps, adds_finalizer) = match outcome {
            Outcome::Answered { steps, adds_finalizer, .. } => {
                let step = |step: &Vec<ChildChange>| step.iter().map(ChildReport::of).collect();
                (steps.iter().map(step).collect(), *adds_finalizer)
            }
            Outcome::LeftAlone(_) | Outcome::Deleting => (Vec::new(), false),
        };
        Self {
            namespace: object.name.namespace.to_string(),
            name: object.name.name.to_string(),
            state,
            reason,
            message,
            is_in_error_today: outcome.trouble().is_some_and(|trouble| trouble.is_present),
            adds_finalizer,
            steps,
        }
    }
}

impl ChildReport {
    fn of(change: &ChildChange) -> Self {
        let kind = &change.kind;
        let fields = |differences: &[_]| differences.iter().map(|difference| Field::of(kind, difference)).collect();
        let (action, cause, fields, body) = match &change.action {
            forecast::Action::Create(body) => (Action::Create, None, Vec::new(), Some(masked::body(kind, body))),
            forecast::Action::Update(differences) => (Action::Update, None, fields(differences), None),
            forecast::Action::Recreate(differences) => (Action::Recreate, None, fields(differences), None),
            forecast::Action::Delete(cause) => (Action::Delete, Some(cause.clone()), Vec::new(), None),
            forecast::Action::HoldBack(why) => (Action::HoldBack, Some(why.clone()), Vec::new(), None),
        };
        Self {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            namespace: change.name.namespace.to_string(),
            name: change.name.name.to_string(),
            action,
            cause,
            fields,
            digest: change.digest.clone(),
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
