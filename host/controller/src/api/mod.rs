//! The host's own kinds: the Rust types from which their CustomResourceDefinitions are made. Values only.

mod condition;
mod plugin;

pub use self::{
    condition::Condition,
    plugin::{
        ConfigMapSource, Grants, IdentitySpec, KindGrant, KindName, LimitsSpec, LookupGrant, NamespaceSelector,
        ObjectCounts, OciSource, Plugin, PluginSpec, PluginStatus, SelectorOperator, SelectorRequirement,
        ServiceAccountNamespace, Source, TransparencyLog, VerificationSpec,
    },
};
