//! The host's own kinds: the Rust types from which their CustomResourceDefinitions are made. Values only.

mod condition;
mod plugin;

pub use self::{
    condition::Condition,
    plugin::{
        ConfigMapSource, Grants, KindGrant, KindName, LookupGrant, NamespaceSelector, ObjectCounts, Plugin, PluginSpec,
        PluginStatus, SelectorOperator, SelectorRequirement, ServiceAccountNamespace, Source,
    },
};
