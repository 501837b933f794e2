//! Why an SLA or its autoscaling cannot be carried out: one sentence for each mistake. It does not check anything.

use thiserror::Error;

/// A mistake that only the user can correct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlaError {
    /// No latency.
    #[error("spec.sla.maxLatency '{0}' is no latency such as 100ms or 1.5s")]
    InvalidLatency(String),
    /// A part of a millisecond.
    #[error("spec.sla.maxLatency '{0}' is finer than a millisecond; give whole milliseconds, such as 2ms or 1.5s")]
    TooFine(String),
    /// More replicas than there may be.
    #[error(
        "spec.sla.minThroughput of {throughput} needs {replicas} replicas, and there are 10000 at most; ask for less, or correct \
         spec.sla.throughputPerReplica"
    )]
    TooManyReplicas {
        /// The requests per second.
        throughput: u32,
        /// The replicas that they need.
        replicas: u32,
    },
    /// More at least than at most.
    #[error("spec.autoscaling.maxReplicas is {max}, but at least {min} replicas are needed")]
    InvalidBounds {
        /// The most replicas.
        max: i32,
        /// The least replicas.
        min: i32,
    },
    /// No Pod at all, by an autoscaler that cannot.
    #[error(
        "spec.autoscaling.minReplicas is 0, which only KEDA can: set spec.autoscaling.autoscaler to keda, or give 1 or more"
    )]
    ZeroWithoutKeda,
    /// No Pod at all, and nothing that would ask for the first one.
    #[error(
        "spec.autoscaling.minReplicas is 0, and the engine's metrics vanish with its Pods, so nothing would ask for the first one; \
         give a trigger in spec.autoscaling.keda.triggers, such as the requests that a router sees"
    )]
    NothingAsksForTheFirst,
    /// No Prometheus.
    #[error(
        "spec.autoscaling.keda.serverAddress is missing; KEDA needs the address of the Prometheus that has the metrics"
    )]
    NoServerAddress,
    /// A label that no query can have.
    #[error(
        "spec.autoscaling.metricLabels has '{0}', which is no label of a Prometheus; give letters, digits and '_', such as \
         app_kubernetes_io_name"
    )]
    InvalidMetricLabel(String),
    /// Nothing to scale by.
    #[error(
        "spec.autoscaling needs metrics, and none of the engine '{0}' are known; add them to engines in the plugin's configuration, \
         or set spec.autoscaling.autoscaler to external or none"
    )]
    NoMetrics(String),
}
