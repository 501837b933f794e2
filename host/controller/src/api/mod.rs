//! The host's own kinds: the Rust types from which their CustomResourceDefinitions are made, and how their objects are read.

mod condition;
mod json_text;
mod names;
mod plan;
mod plugin;
mod reading;
mod rollout;
mod selector;

pub use self::{
    condition::Condition,
    json_text::JsonText,
    plan::{AWAITING_APPROVAL, LeftBehind, PlanState, PlanStatus, PlanSummary, PlannedChildren, PlannedObjects},
    plugin::{
        ConfigMapSource, DirectorySource, Grants, IdentitySpec, KindGrant, KindName, LastError, LimitsSpec,
        LookupGrant, ObjectCounts, OciSource, Plugin, PluginSpec, PluginStatus, ReadinessRule, ServiceAccountNamespace,
        Source, StableConfig, StableSource, TransparencyLog, VerificationSpec,
    },
    reading::{find_plugin, list_plugins, plugins, read_plugin},
    rollout::{
        FormerVersion, NewVersion, Pin, PinStatus, PlanPolicy, RolloutPhase, RolloutSpec, RolloutStatus, RolloutStep,
        RolloutStrategy,
    },
    selector::{LabelSelector, SelectorOperator, SelectorRequirement},
};
