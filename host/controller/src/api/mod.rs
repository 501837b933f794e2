//! The host's own kinds: the Rust types from which their CustomResourceDefinitions are made, and how their objects are read.

mod condition;
mod json_text;
mod names;
mod plugin;
mod reading;
mod rollout;
mod selector;

pub use self::{
    condition::Condition,
    json_text::JsonText,
    plugin::{
        ConfigMapSource, Grants, IdentitySpec, KindGrant, KindName, LastError, LimitsSpec, LookupGrant, ObjectCounts,
        OciSource, Plugin, PluginSpec, PluginStatus, ReadinessRule, ServiceAccountNamespace, Source, TransparencyLog,
        VerificationSpec,
    },
    reading::{find_plugin, list_plugins, plugins, read_plugin},
    rollout::{Pin, RolloutPhase, RolloutSpec, RolloutStatus, RolloutStep, RolloutStrategy},
    selector::{LabelSelector, SelectorOperator, SelectorRequirement},
};
