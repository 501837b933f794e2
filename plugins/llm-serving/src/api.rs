//! The API types that kinds of LLM servers share. They hold no behaviour.

mod gateway;
mod model;
mod serving;
mod source;
mod status;

pub use gateway::{EndpointPicker, FailureMode, GatewayRef, HttpRoute, InferencePool};
pub use model::{LoraAdapter, ModelFields};
pub use serving::{DisruptionBudget, Ingress, Monitor, MonitorKind, NetworkPolicy, RolloutFields, ServingFields};
pub use source::ModelSource;
pub use status::ServingStatus;
