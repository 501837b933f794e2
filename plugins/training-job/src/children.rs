//! The desired children of a job, one file for each kind or part of a Pod. They say what the children look like, and never
//! decide when they exist.

pub mod config_maps;
pub mod environment;
mod jax;
pub mod labels;
pub mod mpi;
pub mod pod;
pub mod pod_group;
pub mod pod_template;
mod pytorch;
mod quantity;
pub mod service;
pub mod tensorflow;
pub mod volumes;
pub mod workload;
