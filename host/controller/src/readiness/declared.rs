//! How far a child is by the expressions that the manifest of its plugin has for its kind. Judges nothing else of it.

use pilothouse_engine::{ChildReadiness, Expression, contract::Readiness};
use serde_json::Value;

use super::{
    common::unobserved,
    not_current::{failed, in_progress},
};
use crate::{lines::shortened, object::Object};

/// The most bytes of a message.
const LONGEST_MESSAGE: usize = 1024;

/// How far a child is.
pub(super) fn readiness(declared: &ChildReadiness, object: &Object) -> Readiness {
    let child: Value = serde_json::from_str(&object.text.read()).unwrap_or_default();
    if let Some(unobserved) = unobserved(&child["status"], object.generation) {
        return unobserved;
    }
    // What cannot be said yet, for its fields are not there, has not failed.
    if declared.failed.as_ref().is_some_and(|has_failed| has_failed.is_true_of(&child).unwrap_or_default()) {
        return failed("Failed", &message(declared, &child, "it has failed"));
    }
    match declared.current.is_true_of(&child) {
        Ok(true) => Readiness::current(),
        Ok(false) => in_progress("NotCurrent", &message(declared, &child, "it is not as its spec says yet")),
        Err(error) => {
            in_progress("NotCurrent", &message(declared, &child, &format!("it is not known how far it is: {error}")))
        }
    }
}

/// What the plugin says of it, or else `otherwise`.
fn message(declared: &ChildReadiness, child: &Value, otherwise: &str) -> String {
    let said = declared.message.as_ref().and_then(|message: &Expression| message.text_of(child).ok());
    said.filter(|said| !said.is_empty()).map_or_else(|| otherwise.to_owned(), |said| shortened(&said, LONGEST_MESSAGE))
}
