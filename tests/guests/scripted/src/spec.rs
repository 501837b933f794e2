//! What a test can say in the spec of its object.

use crate::Answer;
use pilothouse_sdk::Object;
use serde::Deserialize;
use serde_json::Value;

/// The object.
pub type Scripted = Object<Spec, Value>;

/// What to do in a call.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Spec {
    /// What to look up, in this order, before anything else.
    pub lookups: Vec<Lookup>,
    /// How long to compute after the lookups, in units of about a millisecond.
    pub compute: u32,
    /// The answer to `reconcile`.
    pub response: Answer,
    /// The answer to `finalize`.
    pub finalize: Option<Answer>,
}

/// One lookup, by name or by selector.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lookup {
    /// Under which word the answer refers to what is found; default: the name or the selector.
    #[serde(default)]
    pub r#as: Option<String>,
    /// `ConfigMap` or `Secret`.
    pub kind: String,
    /// The namespace to look into; without one, the host decides.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Whether to look in all namespaces; only with a selector.
    #[serde(default)]
    pub all_namespaces: bool,
    /// The name of the object to get.
    #[serde(default)]
    pub name: Option<String>,
    /// The label selector; only without a name.
    #[serde(default)]
    pub selector: Option<String>,
    /// What to return, in the place of `response`, where nothing is found. Values are not copied into it.
    #[serde(default)]
    pub missing: Option<Answer>,
}
