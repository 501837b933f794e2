//! The reference plugin `training-job`: a `TrainingJob` becomes Pods with stable names that know each other. The plugin follows
//! the job to its end: it retries failures, enforces limits and cleans up. It writes and deletes nothing itself: it returns the
//! children that should exist, and the host applies them. It keeps no state between calls but the status of the object.
//!
//! One call goes through these files:
//!
//! 1. `reconcile.rs` chooses between a job that is refused, finished (`finished.rs`), suspended (`suspended.rs`) or active.
//! 2. `active.rs` handles an active job: `replicas.rs` matches the observed Pods with the status, `incident.rs` says what has
//!    happened to them and `failure.rs` what becomes of a failure, `decision.rs` decides what happens next within the limits of
//!    `limits.rs`, `preconditions.rs` says what the job still waits for.
//! 3. `children/` makes the desired children.
//! 4. `job_response.rs` puts the response together; `departure.rs` says which Pods have left, and `transition.rs` adds the
//!    Events and measurements of what is new in the status.
//!
//! `finalize.rs` answers instead while the job is being deleted.
//!
//! `training_job_kind.rs` is what differs for another kind of object that is a training job, such as `PyTorchJob`: the plugin `pytorch-job`
//! builds upon this crate without its exports.

mod active;
pub mod api;
mod backoff;
mod children;
mod conditions;
#[cfg(feature = "crd")]
pub mod crd;
mod decision;
mod departure;
mod desired_child;
mod disruption;
mod duration;
mod failure;
mod finalize;
mod fingerprint;
mod finish;
mod finished;
mod incident;
mod job;
mod job_response;
mod limits;
mod observed;
mod outcome;
mod preconditions;
mod progress;
mod reconcile;
mod replica_statuses;
mod replicas;
mod restart_policy;
mod suspended;
mod termination;
mod training_job_kind;
mod transition;
mod validate;
mod validation_error;
mod wave;

pub use api::TrainingJob;
pub use children::config_maps::ConfigMap;
pub use children::pod::add_to_pod_group;
pub use children::pod_group::{SchedulerPluginsPodGroup, VolcanoPodGroup};
pub use children::service::Service;
pub use desired_child::{DesiredChild, Referent};
pub use finalize::finalize;
pub use fingerprint::ANNOTATION;
pub use job::{Job, JobChildren, JobKind, ReplicaId};
pub use observed::{LiveChildren, Observed};
pub use reconcile::{reconcile, reconcile_job};

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "training-job",
    reconciles: "ml.example.com/v1alpha1" "TrainingJob",
    children: [
        "v1" "ConfigMap",
        "v1" "Pod" reads [
            "/metadata/annotations/ml.example.com~1progress",
            "/metadata/annotations/ml.example.com~1template",
            "/metadata/deletionGracePeriodSeconds",
            "/metadata/finalizers",
            "/metadata/labels/ml.example.com~1job-name",
            "/metadata/labels/ml.example.com~1replica-type",
            "/spec/nodeName",
            "/status",
        ],
        "v1" "Service" reads ["/metadata/uid"],
        "scheduling.volcano.sh/v1beta1" "PodGroup",
        "scheduling.x-k8s.io/v1alpha1" "PodGroup",
        "kueue.x-k8s.io/v1beta1" "Workload",
    ],
    lookups: [
        "v1" "ConfigMap",
        "v1" "PersistentVolumeClaim",
        "scheduling.volcano.sh/v1beta1" "PodGroup",
        "scheduling.x-k8s.io/v1alpha1" "PodGroup",
        "kueue.x-k8s.io/v1beta1" "ResourceFlavor",
        "kueue.x-k8s.io/v1beta1" "Workload",
        "kueue.x-k8s.io/v1beta1" "WorkloadPriorityClass",
    ],
    measurements: [
        counter "training_jobs_created_total" "Training jobs taken on" [],
        counter "training_jobs_succeeded_total" "Training jobs that ended well" ["namespace", "framework"],
        counter "training_jobs_failed_total" "Training jobs that ended badly" ["namespace", "framework"],
        counter "training_jobs_restarted_total" "Restarts after failures of workers" ["namespace", "framework"],
        histogram "training_job_duration_seconds" "Seconds from a training job's start to its end" []
            [60, 300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400, 172800, 345600, 604800, 1209600],
    ],
    finalizer: "trainingjob.ml.example.com/finalizer",
    managed_by: "/spec/runPolicy/managedBy",
    expires: "/status/expirationTime",
    reconcile: reconcile,
    finalize: finalize,
}
