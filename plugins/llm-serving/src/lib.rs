//! What the LLM serving plugins share. It is no plugin, and knows none of their kinds.
//!
//! A plugin makes a [`ServerSpec`](server_spec::ServerSpec) of its object, [`validate::checked`] makes a
//! [`Server`](server::Server) of it, and [`respond::respond`] the response:
//!
//! | files | subject |
//! |---|---|
//! | `api/`, `config.rs` | what users and installers write |
//! | `engine.rs`, `image.rs` | engines, and versions of their images |
//! | `server_spec.rs`, `server.rs`, `validate.rs`, `spec_error.rs` | from fields to a server that can be made |
//! | `gpus.rs`, `gpu_types.rs`, `parallelism.rs`, `quantity.rs` | GPUs and the nodes that have them |
//! | `source.rs`, `model_volume.rs` | where a model comes from |
//! | `container.rs`, `probes.rs`, `pod_template.rs`, `merge.rs`, `template_check.rs` | the Pod template |
//! | `rollout.rs`, `share.rs`, `budget.rs`, `deployment.rs`, `service.rs`, `surroundings.rs`, `gateway.rs`, `labels.rs` | the children |
//! | `clients.rs`, `own_pods.rs`, `trouble.rs`, `conditions.rs`, `respond.rs` | what is said of it |

pub mod api;
pub mod budget;
pub mod child;
pub mod clients;
pub mod conditions;
pub mod config;
pub mod container;
#[cfg(feature = "crd")]
pub mod crd;
pub mod deployment;
pub mod engine;
pub mod gateway;
pub mod gpu_types;
pub mod gpus;
pub mod image;
pub mod labels;
pub mod merge;
pub mod model_volume;
pub mod own_pods;
pub mod parallelism;
pub mod pod_template;
pub mod probes;
pub mod quantity;
pub mod respond;
pub mod rollout;
pub mod server;
pub mod server_spec;
pub mod service;
pub mod share;
pub mod source;
pub mod spec_error;
pub mod surroundings;
pub mod template_check;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod trouble;
pub mod validate;
