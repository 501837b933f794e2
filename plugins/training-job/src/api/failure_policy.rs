//! What becomes of Pods that have failed: rules in the form of `podFailurePolicy` of `batch/v1` Jobs.

use serde::{Deserialize, Serialize};

/// Rules for Pods that have failed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PodFailurePolicy {
    /// The rules. The first one that fits a Pod counts.
    #[cfg_attr(feature = "crd", schemars(length(max = 20)))]
    #[serde(default)]
    pub rules: Vec<PodFailureRule>,
}

/// What becomes of some failed Pods. A Pod fits if it fits everything that the rule gives, and that is something.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PodFailureRule {
    /// What becomes of them.
    pub action: PodFailureAction,
    /// The exit codes of the training container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,
    /// Reasons of the Pod or of its training container, such as `Evicted` or `OOMKilled`.
    #[cfg_attr(feature = "crd", schemars(length(max = 20), inner(length(min = 1, max = 253))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_reasons: Vec<String>,
    /// Conditions of the Pod. One of them must fit.
    #[cfg_attr(feature = "crd", schemars(length(max = 20)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_pod_conditions: Vec<OnPodCondition>,
}

/// What becomes of a failed Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum PodFailureAction {
    /// The job fails.
    FailJob,
    /// It is restarted, and that does not count against the backoff limit.
    Ignore,
    /// It is restarted, and that counts against the backoff limit.
    Count,
}

/// Exit codes of a container.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    /// Whether the exit code must be among the values or must not.
    pub operator: ExitCodeOperator,
    /// Exit codes. A container that ended with 0 has not failed.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 255)))]
    pub values: Vec<i32>,
}

/// How an exit code is compared with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum ExitCodeOperator {
    /// It is one of them.
    In,
    /// It is none of them.
    NotIn,
}

/// A condition of a Pod.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OnPodCondition {
    /// Its type, such as `DisruptionTarget`.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 316)))]
    #[serde(rename = "type")]
    pub condition_type: String,
    /// Its status. Default: `True`.
    #[cfg_attr(feature = "crd", schemars(regex(pattern = r"^(True|False|Unknown)$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
