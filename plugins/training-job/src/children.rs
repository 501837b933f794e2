//! The children of a job, one file for each kind. They say what shall exist and decide nothing about when.

pub mod config_maps;
pub mod environment;
pub mod labels;
pub mod pod;
pub mod pod_group;
mod pytorch;
mod quantity;
pub mod service;
mod tensorflow;
mod variable;
pub mod volumes;
