//! How another version of a plugin takes over, as a `Plugin` asks for it and as its status tells it. Values only.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{names::NAME_PATTERN, selector::LabelSelector};

/// The form of a digest.
const DIGEST_PATTERN: &str = r"^sha256:[0-9a-f]{64}$";

/// How another version takes over.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(has(self.strategy) && self.strategy == 'Canary') == (has(self.steps) && size(self.steps) > 0)")
    .message("Canary needs steps, and Immediate has none"))]
pub struct RolloutSpec {
    /// For all objects at once, or for some of them first.
    #[serde(default)]
    pub strategy: RolloutStrategy,
    /// The steps of a canary. Each adds objects to those of the steps before. After the last one the new version takes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub steps: Vec<RolloutStep>,
    /// How many of the canary's objects may fail, in percent, before the version that worked gets them back. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99))]
    pub max_failed_percent: Option<u32>,
    /// Objects that a version of their own answers, whatever happens to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub pins: Vec<Pin>,
    /// Whether somebody has to approve a new version before it takes over or is tried on the first object.
    #[serde(default)]
    pub plan: PlanPolicy,
    /// The digest of the version that is approved. No other one is: a third version needs an approval of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DIGEST_PATTERN))]
    pub approved: Option<String>,
    /// The digest of the configuration with which that version is approved, as `status.plan.configDigest` has it. With another one it is
    /// not. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DIGEST_PATTERN))]
    pub approved_config: Option<String>,
}

/// Whether a new version needs an approval.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanPolicy {
    /// It does not.
    #[default]
    Skip,
    /// The status of the `Plugin` shows what it would do, and it waits until its digest is in `approved`.
    Require,
}

/// How another version takes over.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutStrategy {
    /// For all objects at once.
    #[default]
    Immediate,
    /// For some of them first.
    Canary,
}

/// A step of a canary: which objects come to it, and for how long they are watched.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.percent), has(self.objects), has(self.selector)].filter(it, it).size() == 1")
    .message("a step names one of percent, objects and selector"))]
pub struct RolloutStep {
    /// So many objects of all, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<u32>,
    /// So many objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub objects: Option<u32>,
    /// The objects with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// For how long, in s.
    #[schemars(range(min = 1, max = 604800))]
    pub seconds: u32,
}

/// An object that a version of its own answers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.digest) != has(self.version)").message("a pin names one of digest and version"))]
pub struct Pin {
    /// Its namespace; empty for a cluster-scoped one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// The digest of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DIGEST_PATTERN))]
    pub digest: Option<String>,
    /// The number of the version, as its manifest says. Of several components with this number, the one that was at work last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub version: Option<String>,
}

/// What is wrong with the pins of a `Plugin`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinStatus {
    /// One word, as of the condition `Degraded`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// The versions to which objects are pinned and that do not answer them, so that they stay as they are: a digest, or `version` and its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

/// How far a version is that does not answer all objects yet, or that was taken back.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Whether it goes on.
    pub phase: RolloutPhase,
    /// The digest of the new version.
    pub digest: String,
    /// The new version, as its manifest says.
    pub version: String,
    /// The step that it is in, from 1 on.
    pub step: u32,
    /// How many steps there are.
    pub steps: u32,
    /// Since when it is in the step, or taken back, as RFC 3339.
    pub since: String,
    /// The digest of the configuration with which it is watched in the step. With another one the step begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
    /// The newest object that can belong to it was created then, as RFC 3339. Younger ones are answered by the version that worked.
    pub created_until: String,
    /// The objects that belong to it because of percent or a number: those whose hash is not greater than this, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
    /// The selectors of the steps that have begun, as they were then: a later change of the steps moves no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub selectors: Option<Vec<LabelSelector>>,
    /// How many objects it answers.
    pub objects: usize,
    /// How many of them are failing.
    pub failing: usize,
    /// How many of them were failing when they came to it.
    pub failing_before: usize,
    /// How many of them were not ready when they came to it.
    pub not_ready_before: usize,
    /// Why it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RolloutStatus {
    /// Whether the version is still tried, and was not taken back.
    pub fn goes_on(&self) -> bool {
        self.phase == RolloutPhase::Progressing
    }
}

/// How a new version stands that does not answer all objects, in one word.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewVersion {
    /// It waits until somebody approves it.
    AwaitingApproval,
    /// Some objects are answered by it.
    Canary,
    /// It was taken back, and is not tried again.
    RolledBack,
}

/// A version that was at work.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerVersion {
    /// The version, as its manifest says.
    pub version: String,
    /// The digest of the component.
    pub digest: String,
}

/// Whether a new version goes on.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutPhase {
    /// Some objects are answered by it.
    Progressing,
    /// It was taken back, and is not tried again.
    RolledBack,
}
