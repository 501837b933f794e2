//! Why a server cannot be made of an object: one sentence for each mistake, which names the field and says what to do. It does not
//! check anything.

use thiserror::Error;

/// A mistake in an object that only its user can correct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No table has the engine.
    #[error("spec.engine '{name}' is not known; give one of {known}, or add it to the plugin's configuration")]
    UnknownEngine {
        /// The engine.
        name: String,
        /// The known ones.
        known: String,
    },
    /// The engine cannot cut a model into stages.
    #[error("spec.pipelineParallelSize is {stages}, and the engine '{engine}' has no stages; give 1")]
    NoStages {
        /// The stages.
        stages: u32,
        /// The engine.
        engine: String,
    },
    /// The engine runs on one node only.
    #[error(
        "{gpus} GPUs need {nodes} nodes of {per_pod}, and the engine '{engine}' runs on one; take fewer, say in spec.gpusPerNode that \
         a node has so many, or give a command of your own"
    )]
    OneNodeOnly {
        /// The GPUs of a server.
        gpus: u32,
        /// The nodes that they need.
        nodes: u32,
        /// The GPUs of each.
        per_pod: u32,
        /// The engine.
        engine: String,
    },
    /// The engine has no image of its own.
    #[error("spec.image is missing; the engine '{0}' has no image of its own")]
    MissingImage(String),
    /// A number is outside of its range.
    #[error("spec.{field} is {value}; give {min} to {max}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// A budget that a StatefulSet cannot keep to.
    #[error(
        "the Pods of a StatefulSet are replaced one after the other, and spec.disruptionBudget lets none be missing; let it miss one"
    )]
    OneAfterTheOther,
    /// A variable that the server gets anyway.
    #[error("spec.env sets {0}, which the server gets from other fields; remove it")]
    ReservedVariable(String),
    /// An adapter that would be asked for as the model, or as another one.
    #[error("spec.loraAdapters has the name '{0}' that the model or another adapter has; give it another one")]
    AdapterNameTaken(String),
    /// Adapters that nothing tells the server of.
    #[error(
        "spec.loraAdapters needs an engine that is told of adapters, and '{0}' is not; remove them, add arguments to the engine in the \
         plugin's configuration, or give a command of your own"
    )]
    NoAdapters(String),
    /// A variable twice.
    #[error("spec.env sets {0} twice; keep one")]
    DuplicateVariable(String),
    /// The model would be mounted over something else.
    #[error(
        "spec.modelPath is {path}, so {source_field} would be mounted at {directory}, where the server has another volume; give \
         spec.modelPath another path"
    )]
    MountPathTaken {
        /// The path of the model.
        path: String,
        /// The field that says where the model comes from.
        source_field: &'static str,
        /// Where it would be mounted.
        directory: String,
    },
    /// GPUs by two fields.
    #[error("spec.resources and spec.{field} both give {resource}; keep spec.{field}")]
    GpusGivenTwice {
        /// The other field.
        field: &'static str,
        /// The resource.
        resource: String,
    },
    /// A URI that cannot be read.
    #[error("spec.modelSource.uri '{uri}' {problem}")]
    InvalidUri {
        /// The URI.
        uri: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A path with dots, or none at all.
    #[error("spec.{field} '{path}' must be an absolute path without '.' and '..'")]
    InvalidPath {
        /// The field.
        field: &'static str,
        /// The path.
        path: String,
    },
    /// An image that refuses root, and no user.
    #[error(
        "spec.securityContext.runAsNonRoot needs spec.securityContext.runAsUser: nobody knows which user the image '{0}' has"
    )]
    UnknownUser(String),
    /// A quantity that is none.
    #[error("spec.{field} '{value}' is no quantity such as 80G")]
    InvalidQuantity {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
    },
    /// Draining takes longer than there is time.
    #[error(
        "spec.drainSeconds is {drain}, and spec.terminationGracePeriodSeconds only {grace}; requests need time after the drain"
    )]
    DrainTooLong {
        /// The seconds of the drain.
        drain: u32,
        /// The seconds in all.
        grace: u32,
    },
    /// No Pod could ever be replaced.
    #[error(
        "no Pod could be replaced, for the rollout lets none be missing and none be added; set spec.rollout.maxSurge, or let \
         spec.rollout.maxUnavailable and spec.disruptionBudget miss one"
    )]
    RolloutStandsStill,
    /// A rollout would break the budget.
    #[error(
        "spec.rollout.maxUnavailable lets {rollout} Pods be missing, and spec.disruptionBudget only {budget}; a rollout must \
         keep to the budget"
    )]
    RolloutBreaksBudget {
        /// How many the rollout lets be missing.
        rollout: i64,
        /// How many the budget lets be missing.
        budget: i64,
    },
    /// Both fields of a budget, or neither.
    #[error("spec.disruptionBudget has one of maxUnavailable and minAvailable")]
    AmbiguousBudget,
    /// The merged template would not work.
    #[error("spec.podTemplate {0}")]
    Template(#[from] TemplateError),
}

/// Why a Pod template of a user cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A label of the selector.
    #[error("changes the label {0}, by which the Pods are found; remove it")]
    SelectorLabel(String),
    /// The server's container is gone.
    #[error("removes the container 'model', which is the server")]
    NoServer,
    /// The server's port has changed.
    #[error("changes the port {port} of the container 'model'; set spec.port")]
    Port {
        /// The port.
        port: u32,
    },
    /// A variable that the server is configured by.
    #[error("sets the variable {0} of the container 'model'; it follows from other fields")]
    Variable(String),
    /// Pods that end do not serve.
    #[error("sets restartPolicy {0}; a server is always restarted")]
    RestartPolicy(String),
    /// Pods with names of their own.
    #[error("sets {0}, which tells Pods apart; remove it")]
    Identity(&'static str),
    /// Something else than what the field holds.
    #[error("has a field {0} of another type than a Pod template has")]
    Shape(String),
}
