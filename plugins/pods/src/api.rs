//! The fields of Pods that objects of several kinds may set, in the form that Pods have them. They hold no behaviour.

mod container;
#[cfg(feature = "crd")]
pub mod schema;

pub use container::{
    EnvFrom, EnvVar, FieldRef, GroupRef, KeyRef, LocalRef, PullPolicy, Resources, SecurityContext, Toleration,
    ValueFrom,
};
