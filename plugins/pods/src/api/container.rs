//! The fields of a container and its Pod that an object may set, in the form that Pods have them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An environment variable.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 256), regex(pattern = r"^[-._a-zA-Z][-._a-zA-Z0-9]*$"))
    )]
    pub name: String,
    /// Its value. `$(NAME)` stands for the value of an earlier variable.
    #[cfg_attr(feature = "crd", schemars(length(max = 16384)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where its value comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
}

/// Where a variable's value comes from: one of these.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ValueFrom {
    /// A key of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A field of the Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}

/// A key of a ConfigMap or Secret in the object's namespace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the ConfigMap or Secret.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 190)))]
    pub name: String,
    /// The key.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub key: String,
    /// Whether Pods start without it if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// A field of the Pod.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// Its path, such as `status.podIP`.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub field_path: String,
}

/// A ConfigMap or Secret whose keys become environment variables: one of the two.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvFrom {
    /// A prefix for the name of every variable.
    #[cfg_attr(feature = "crd", schemars(length(max = 128)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<GroupRef>,
    /// The Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<GroupRef>,
}

/// A ConfigMap or Secret in the object's namespace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupRef {
    /// Its name.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 190)))]
    pub name: String,
    /// Whether Pods start without it if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Its name.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub name: String,
}

/// Compute resources.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The most that a container may use.
    #[cfg_attr(feature = "crd", schemars(schema_with = "super::schema::quantities"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Value>,
    /// What is reserved for a container.
    #[cfg_attr(feature = "crd", schemars(schema_with = "super::schema::quantities"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Value>,
}

/// A toleration of a taint, as in a Pod.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key. Default: every key.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 317)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Exists`, or `Equal` to the value.
    #[cfg_attr(feature = "crd", schemars(regex(pattern = r"^(Exists|Equal)$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The taint's value.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 63)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The taint's effect. Default: every effect.
    #[cfg_attr(feature = "crd", schemars(regex(pattern = r"^(NoSchedule|PreferNoSchedule|NoExecute)$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// How many seconds a taint with effect `NoExecute` is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum PullPolicy {
    /// Always.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// Never: the node must have it.
    Never,
}

/// The user and groups that containers run as.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecurityContext {
    /// Whether images that run as root are refused. It also drops all capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<bool>,
    /// The user.
    #[cfg_attr(feature = "crd", schemars(range(min = 0)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<i64>,
    /// The group.
    #[cfg_attr(feature = "crd", schemars(range(min = 0)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<i64>,
    /// The group that owns the volumes.
    #[cfg_attr(feature = "crd", schemars(range(min = 0)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<i64>,
}
