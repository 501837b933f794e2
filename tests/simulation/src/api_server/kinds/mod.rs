//! The kinds that the server serves: what they are called, what their objects may look like, and what is special about them.
//! Decides nothing about a single request.

mod apps;
mod autoscaling;
mod built_in;
mod catalog;
mod config;
mod custom;
mod definition;
pub(super) mod discovery;
mod edit;
mod event;
mod job;
mod lease;
mod namespace;
mod network;
mod pod;
mod pod_spec;
mod selector;
mod served;
mod service;
mod strategy;
mod validation;
mod volume_claim;

use std::sync::Arc;

use serde_json::Value;

pub use self::{
    catalog::{Catalog, CatalogError},
    served::Served,
    strategy::{Gone, Strategy},
};
pub(super) use self::{
    definition::{CLEANUP, established},
    namespace::FINALIZER as NAMESPACE_FINALIZER,
    pod::admit as admit_pod,
};
use super::{error::About, fields::Set, schema::Node};

/// What a kind is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The group; empty for the core kinds.
    pub group: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The kind of lists.
    pub list_kind: Arc<str>,
    /// The word in paths.
    pub plural: Arc<str>,
    /// The word for one.
    pub singular: Arc<str>,
    /// Shorter words.
    pub short_names: Vec<Arc<str>>,
}

/// One version of a kind.
#[derive(Debug)]
pub struct Kind {
    /// What it is called.
    pub names: Names,
    /// Group and version, as objects say them.
    pub api_version: Arc<str>,
    /// `plural.group`: the same for all versions.
    pub resource: Arc<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What its objects may look like.
    pub schema: Arc<Node>,
    /// Whether it has the status subresource.
    pub has_status: bool,
    /// Where its scale is; none without that subresource.
    pub scale: Option<Scale>,
    /// What is special about it.
    pub strategy: &'static Strategy,
    /// The fields that nobody can write through the object itself, and through its status.
    pub reset: Reset,
    /// The object of which nothing is said: the structures that Go always has.
    pub empty: Value,
    /// Whether objects are kept in this version.
    pub is_stored: bool,
    /// The schema as the server publishes it; null for a built-in kind, which is in a document of its own.
    pub published: Value,
}

/// Where the scale of an object is, each a path of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The desired replicas.
    pub spec: Vec<String>,
    /// The present replicas.
    pub status: Vec<String>,
    /// The selector, as a text; empty for none.
    pub selector: Vec<String>,
}

/// The fields that cannot be written.
#[derive(Debug, Default)]
pub struct Reset {
    /// Through the object itself.
    pub main: Set,
    /// Through the status.
    pub status: Set,
}

impl Kind {
    /// The resource and the name of an object, for errors.
    pub fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.names.group, resource: &self.names.plural, name }
    }

    /// The kind and the name of an object, for errors about its content.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.names.group, resource: &self.names.kind, name }
    }

    /// Whether its definition came from a user.
    pub fn is_custom(&self) -> bool {
        !self.published.is_null()
    }

    /// Where an object is kept.
    pub fn key(&self, namespace: &str, name: &str) -> Arc<str> {
        if self.namespaced { format!("{namespace}/{name}").into() } else { name.into() }
    }
}

/// A set of fields from its serialized form, for tables.
fn fields(value: &Value) -> Set {
    value.as_object().map(Set::parse).unwrap_or_default()
}
