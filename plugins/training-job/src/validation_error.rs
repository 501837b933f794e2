//! Why a job is invalid: one sentence for each mistake, which names the field and says what to do. It does not check anything.

use thiserror::Error;

/// The longest name of a job, in characters. With `-worker-99` after it, it is still a valid host name.
pub const MAX_NAME_LENGTH: usize = 53;

/// The longest host name.
pub const MAX_HOST_NAME_LENGTH: usize = 63;

/// A mistake in a job that only its user can correct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValidationError {
    #[error("metadata.name is {length} characters long; names of Pods are made of it, so it can have at most {max}")]
    NameTooLong { length: usize, max: usize },
    #[error(
        "metadata.name '{0}' is the name of a Service, so it must begin with a letter and hold only lower-case letters, \
         digits and '-'"
    )]
    InvalidName(String),
    #[error("spec.{field} is {value}; give {min} to {max}")]
    OutOfRange { field: &'static str, value: u32, min: u32, max: u32 },
    #[error("spec.image is missing; name the image to train with")]
    MissingImage,
    #[error("spec.command is missing; give the training command")]
    MissingCommand,
    #[error("spec.env sets {0}, which tells workers apart and is set for each of them; remove it")]
    ReservedVariable(String),
    #[error("spec.env sets {0} twice; keep one")]
    DuplicateVariable(String),
    #[error("spec.resources and spec.gpuPerWorker both give {0}; keep spec.gpuPerWorker")]
    GpusGivenTwice(String),
    #[error("spec.parameterServers is for framework tensorflow only; remove it")]
    ParameterServersNotSupported,
    #[error("spec.{0} is set by the job itself, which finds its Pods and tells them apart by it; remove it")]
    OwnField(String),
    #[error("spec.{0} is not a text; put its value in quotes")]
    NotText(String),
    #[error("spec.roles names {0}, which framework {1} does not have; remove it")]
    RoleNotSupported(&'static str, &'static str),
    #[error(
        "spec.runPolicy.podFailurePolicy.rules[{0}] says of no failure whether it fits; give it onExitCodes, onReasons or \
         onPodConditions"
    )]
    RuleFitsNothing(usize),
    #[error("spec.mpi is missing; name the Secret with the SSH keys in spec.mpi.sshSecretName")]
    MissingMpi,
    #[error("spec.mpi is for framework mpi only; remove it")]
    MpiNotSupported,
    #[error(
        "spec.successPolicy is AllWorkers, but workers of framework mpi never end by themselves; remove it, and the job succeeds \
         with its launcher"
    )]
    WorkersNeverSucceed,
    #[error("spec.roles names {0} twice; keep one")]
    DuplicateRole(&'static str),
    #[error("spec.elastic is for framework pytorch only; remove it")]
    ElasticNotSupported,
    #[error("spec.elastic.minWorkers must be at least 1 and at most spec.elastic.maxWorkers")]
    InvalidElasticBounds,
    #[error("spec.workers is {workers}, but spec.elastic allows {min} to {max}")]
    OutsideElasticBounds { workers: u32, min: u32, max: u32 },
    #[error("spec.checkpointDir '{0}' must be an absolute path without '.' and '..'")]
    InvalidCheckpointDir(String),
    #[error(
        "TF_CONFIG would have {length} bytes, and no variable may have more than {max}; give the job a shorter name or fewer workers"
    )]
    ClusterTooLarge { length: usize, max: usize },
    #[error(
        "spec.hyperparameters would be a variable of {length} bytes, and no variable may have more than {max}; put big values into a \
         ConfigMap and mount it with spec.configMaps"
    )]
    HyperparametersTooLarge { length: usize, max: usize },
    #[error("two volumes would be mounted at {0}; give one of them another path")]
    DuplicateMountPath(String),
}
