//! The reference plugin `training-job`: a `TrainingJob` becomes Pods with stable names that know each other, and is followed
//! to its end: failures are retried, limits kept, what is left is cleaned up. It deletes nothing and writes nothing itself:
//! it only says what shall exist. What it must remember is in the object's status.

mod answer;
pub mod api;
mod children;
mod conditions;
#[cfg(feature = "crd")]
pub mod crd;
mod decide;
mod finalize;
mod fingerprint;
mod finished;
mod gate;
mod group;
mod job;
mod live;
mod outcome;
mod progress;
mod reconcile;
mod restart_policy;
mod running;
mod suspended;
mod tell;
mod time;
mod validate;

use api::{TrainingJobSpec, TrainingJobStatus};
use pilothouse_sdk::Object;

pub use finalize::finalize;
pub use reconcile::reconcile;

pilothouse_sdk::plugin! {
    name: "training-job",
    reconciles: "ml.example.com/v1alpha1" "TrainingJob",
    children: [
        "v1" "ConfigMap",
        "v1" "Pod" reads ["/metadata/annotations", "/status"],
        "v1" "Service" reads ["/metadata/uid"],
        "scheduling.volcano.sh/v1beta1" "PodGroup",
        "scheduling.x-k8s.io/v1alpha1" "PodGroup",
    ],
    lookups: [
        "v1" "ConfigMap",
        "v1" "PersistentVolumeClaim",
        "scheduling.volcano.sh/v1beta1" "PodGroup",
        "scheduling.x-k8s.io/v1alpha1" "PodGroup",
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

/// A `TrainingJob` as the API serves it.
pub type TrainingJob = Object<TrainingJobSpec, TrainingJobStatus>;
