//! Why an SLA or its autoscaling cannot be carried out: one sentence for each mistake. It does not check anything.

use thiserror::Error;

/// A mistake that only the user can correct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlaError {
    /// No latency.
    #[error("spec.sla.maxLatency '{0}' is no latency such as 100ms or 1.5s")]
    InvalidLatency(String),
    /// More at least than at most.
    #[error("spec.autoscaling.maxReplicas is {max}, but at least {min} replicas are needed")]
    InvalidBounds {
        /// The most replicas.
        max: i32,
        /// The least replicas.
        min: i32,
    },
    /// Nothing to scale by.
    #[error(
        "spec.autoscaling needs metrics, and none of the engine '{0}' are known; add them to engines in the plugin's configuration, \
         or set spec.autoscaling.autoscaler to external or none"
    )]
    NoMetrics(String),
}
