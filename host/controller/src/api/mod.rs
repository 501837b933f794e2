//! The host's own kinds: the Rust types from which their CustomResourceDefinitions are made, and how their objects are read.

mod condition;
mod json_text;
mod plugin;
mod reading;

pub use self::{
    condition::Condition,
    json_text::JsonText,
    plugin::{
        ConfigMapSource, Grants, IdentitySpec, KindGrant, KindName, LastError, LimitsSpec, LookupGrant,
        NamespaceSelector, ObjectCounts, OciSource, Plugin, PluginSpec, PluginStatus, ReadinessRule, SelectorOperator,
        SelectorRequirement, ServiceAccountNamespace, Source, TransparencyLog, VerificationSpec,
    },
    reading::{find_plugin, list_plugins, plugins, read_plugin},
};
