//! Why a job is invalid: one sentence for each mistake, which names the field and says what to do. It does not check anything.

use crate::api::{CONTAINER, MASTER, WORKER};
use thiserror::Error;

/// The most replicas of a job: the Pods and Services of all of them, and what is known of each, must fit into one answer.
pub const MAX_REPLICAS: u32 = 500;

/// A mistake in a job that only its user can correct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValidationError {
    #[error("spec.pytorchReplicaSpecs is empty; give {MASTER}, {WORKER} or both")]
    NoReplicas,
    #[error("spec.elasticPolicy.nProcPerNode and spec.nprocPerNode say the same; keep the second")]
    ProcessesGivenTwice,
    #[error("spec.elasticPolicy needs workers; add spec.pytorchReplicaSpecs.{WORKER}")]
    ElasticWithoutWorkers,
    #[error(
        "metadata.name '{0}' becomes the name of Services, so it must begin with a letter and hold only lower-case letters, \
         digits and '-'"
    )]
    InvalidName(String),
    #[error("metadata.name is {length} characters long; with this many replicas it can have at most {max}")]
    NameTooLong { length: usize, max: usize },
    #[error(
        "spec.pytorchReplicaSpecs has up to {0} replicas; a job can have at most {MAX_REPLICAS}. For more, use a TrainingJob"
    )]
    TooManyReplicas(u32),
    #[error("spec.pytorchReplicaSpecs.{0} is no type of replica; give {MASTER} or {WORKER}")]
    UnknownReplicaType(String),
    #[error("spec.pytorchReplicaSpecs.{0}.replicas must be 1")]
    SeveralMasters(String),
    #[error("spec.pytorchReplicaSpecs.{replica_type}.template.spec.containers[{number}].image is missing")]
    MissingImage { replica_type: String, number: usize },
    #[error(
        "spec.pytorchReplicaSpecs.{0}.template.spec.containers has none with the name {CONTAINER}, which is the one that trains"
    )]
    NoContainer(String),
}
