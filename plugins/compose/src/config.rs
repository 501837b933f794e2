//! The configuration as its author writes it. Its fields only; what they mean is in `composition.rs`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A composition: one kind, and what its objects become.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The plugin's name, a DNS label.
    pub name: String,
    /// The composition's own version, for people.
    #[serde(default)]
    pub version: Option<String>,
    /// The kind whose objects it is about.
    pub kind: KindConfig,
    /// Objects of others that it reads.
    #[serde(default)]
    pub lookups: Vec<LookupConfig>,
    /// Values that have a name, to be used several times.
    #[serde(default)]
    pub variables: Vec<VariableConfig>,
    /// The children.
    #[serde(default)]
    pub resources: Vec<ResourceConfig>,
    /// The status.
    #[serde(default)]
    pub status: Map<String, Value>,
    /// Conditions.
    #[serde(default)]
    pub conditions: Vec<ConditionConfig>,
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindConfig {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// An object of somebody else, or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LookupConfig {
    /// The name under which expressions know it.
    pub id: String,
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// The name of the one object.
    #[serde(default)]
    pub name: Option<Value>,
    /// Instead of a name: the label selector of a list of them.
    #[serde(default)]
    pub label_selector: Option<Value>,
    /// Another namespace than that of the object.
    #[serde(default)]
    pub namespace: Option<Value>,
    /// With a label selector: in all namespaces.
    #[serde(default)]
    pub all_namespaces: bool,
    /// Whether the object does without it. Its value is `null` then.
    #[serde(default)]
    pub optional: bool,
    /// What is said where it is missing.
    #[serde(default)]
    pub missing: Option<MissingConfig>,
}

/// What is said where something is missing.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MissingConfig {
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: Value,
}

/// A value that has a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VariableConfig {
    /// The name under which expressions know it.
    pub id: String,
    /// The value.
    pub value: Value,
}

/// A child, or several of one template.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceConfig {
    /// The name under which expressions know it as it lives in the cluster.
    pub id: String,
    /// The child.
    pub template: Value,
    /// What must be true of it, so that the object is ready and those go on that read it.
    #[serde(default)]
    pub ready_when: Vec<Value>,
    /// What must be true, so that there is such a child.
    #[serde(default)]
    pub include_when: Vec<Value>,
    /// One child for each element of these lists.
    #[serde(default)]
    pub for_each: Vec<Map<String, Value>>,
    /// How the host treats it.
    #[serde(default)]
    pub handling: HandlingConfig,
    /// What becomes of it where a change of it is refused.
    #[serde(default)]
    pub on_immutable: OnImmutable,
    /// What becomes of it once it is not wanted any more.
    #[serde(default)]
    pub on_removal: OnRemoval,
    /// JSON pointers of fields that others set.
    #[serde(default)]
    pub unmanaged_fields: Vec<String>,
}

/// How the host treats a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum HandlingConfig {
    /// It is kept as the template says.
    #[default]
    Apply,
    /// It is created, and never changed.
    Create,
}

/// What becomes of a child where a change of it is refused because a field cannot change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OnImmutable {
    /// It is reported.
    #[default]
    Fail,
    /// The child is deleted and made anew.
    Recreate,
}

/// What becomes of a child that is not wanted any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OnRemoval {
    /// It is deleted.
    #[default]
    Delete,
    /// It stays.
    Keep,
}

/// A condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConditionConfig {
    /// Its type.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// Whether it holds: true, false, or one of the words `True`, `False` and `Unknown`.
    pub status: Value,
    /// One CamelCase word for programs.
    pub reason: Value,
    /// A sentence for people.
    #[serde(default)]
    pub message: Option<Value>,
}
