//! What a server is made of, before anything is checked or filled in. Plain values.

use crate::api::{ModelFields, ServingFields};
use crate::engine::DefaultEngine;
use crate::parallelism::Spread;
use pilothouse_pods::api::Resources;

/// Which object a server is of, and how its children are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The object's name.
    pub object: &'a str,
    /// The object's namespace.
    pub namespace: &'a str,
    /// The object's kind in lower case. With the name of the workload it tells the Pods of one object from those of all others.
    pub component: &'static str,
    /// The name of the workload and of its Service.
    pub workload: String,
}

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerSpec<'a> {
    /// Which object it is of.
    pub identity: Identity<'a>,
    /// The name of the model.
    pub model_name: &'a str,
    /// How many Pods there are, unless they are suspended.
    pub replicas: i32,
    /// The GPUs of each server, or of each stage of one; none if only their type tells that there are any.
    pub gpu_count: Option<u32>,
    /// The field that says how many.
    pub gpu_count_field: &'static str,
    /// Whether a server may be more than one Pod.
    pub spread: Spread,
    /// The other compute resources of each Pod.
    pub resources: Resources,
    /// What the model is.
    pub model: &'a ModelFields,
    /// How it is served.
    pub serving: &'a ServingFields,
    /// The engine of objects that name none.
    pub default_engine: DefaultEngine,
    /// The port of objects that name none; none for the engine's own.
    pub default_port: Option<u32>,
}

impl ServerSpec<'_> {
    /// How many Pods there shall be.
    pub fn desired_replicas(&self) -> i32 {
        if self.serving.suspend.unwrap_or_default() { 0 } else { self.replicas }
    }
}
