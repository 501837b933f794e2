//! Label selectors, as elsewhere in Kubernetes. Matches nothing itself.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The keys of labels: a name of at most 63 characters, after a DNS subdomain if need be.
const LABEL_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// The values of labels.
const LABEL_VALUE_PATTERN: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

/// A label selector, as elsewhere in Kubernetes: all of it has to match.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.matchLabels) || self.matchLabels.all(key, size(key) <= 317 && \
    key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
    .message("a key of matchLabels is no label"))]
pub struct LabelSelector {
    /// Labels and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "label_values")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// A requirement on a label.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)")
    .message("In and NotIn need values, Exists and DoesNotExist have none"))]
pub struct SelectorRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317), regex(pattern = LABEL_PATTERN))]
    pub key: String,
    /// What its value has to be.
    pub operator: SelectorOperator,
    /// The values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63), regex(pattern = LABEL_VALUE_PATTERN)))]
    pub values: Vec<String>,
}

/// What the value of a label has to be.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// One of the values.
    In,
    /// None of the values, or the label is missing.
    NotIn,
    /// Any.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

fn label_values(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({"type": "string", "maxLength": 63, "pattern": LABEL_VALUE_PATTERN});
    json_schema!({"type": "object", "maxProperties": 32, "additionalProperties": value})
}
