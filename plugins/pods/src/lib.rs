//! What plugins that run Pods share: the fields of a container that an object may set, GPUs, volumes, security contexts, names,
//! how far a rollout is, and why a Pod does not run. It is no plugin, and it knows no kind of object.

pub mod api;
pub mod claim;
#[cfg(feature = "crd")]
pub mod crd;
pub mod fields;
pub mod gpu;
pub mod hash;
pub mod name;
pub mod observed_pod;
pub mod owner;
pub mod security;
pub mod strategic_merge;
pub mod time;
pub mod transition;
pub mod variable;
pub mod volumes;
pub mod workload;
