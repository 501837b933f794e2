//! The reference plugin `pytorch-job`: Kubeflow's `PyTorchJob`, with the children, names and status that Kubeflow's training operator
//! gives it. What happens to a job is decided by the crate `training-job`; this one translates.
//!
//! One call goes through these files:
//!
//! 1. `api.rs` reads the object with the training operator's defaults, `validate.rs` checks it.
//! 2. `translation.rs` makes a `TrainingJob` of it, `state.rs` finds what earlier calls knew.
//! 3. `kind.rs` gives the Pods and Services their names, and `children/` makes them.
//! 4. `answer.rs` turns the response into Kubeflow's words and its shape of a status (`status.rs`).

mod answer;
mod api;
mod children;
mod config;
mod kind;
mod news;
mod reconcile;
mod state;
mod status;

mod translation;
mod validate;
mod validation_error;

pub use api::PyTorchJob;
pub use reconcile::reconcile;

pilothouse_sdk::plugin! {
    name: "pytorch-job",
    reconciles: "kubeflow.org/v1" "PyTorchJob",
    children: [
        "v1" "ConfigMap",
        "v1" "Pod" reads [
            "/metadata/annotations/ml.example.com~1progress",
            "/metadata/annotations/ml.example.com~1template",
            "/metadata/deletionGracePeriodSeconds",
            "/metadata/finalizers",
            "/metadata/labels/training.kubeflow.org~1job-name",
            "/metadata/labels/training.kubeflow.org~1operator-name",
            "/metadata/labels/training.kubeflow.org~1replica-index",
            "/metadata/labels/training.kubeflow.org~1replica-type",
            "/spec/nodeName",
            "/status",
        ],
        "v1" "Service" reads ["/metadata/uid"],
        "autoscaling/v2" "HorizontalPodAutoscaler" reads ["/metadata/uid"],
        "scheduling.volcano.sh/v1beta1" "PodGroup",
        "scheduling.x-k8s.io/v1alpha1" "PodGroup",
    ],
    lookups: ["scheduling.volcano.sh/v1beta1" "PodGroup", "scheduling.x-k8s.io/v1alpha1" "PodGroup"],
    measurements: [
        counter "training_operator_jobs_created_total" "Jobs taken on" ["job_namespace", "framework"],
        counter "training_operator_jobs_successful_total" "Jobs that ended well" ["job_namespace", "framework"],
        counter "training_operator_jobs_failed_total" "Jobs that ended badly" ["job_namespace", "framework"],
        counter "training_operator_jobs_restarted_total" "Restarts after failures" ["job_namespace", "framework"],
    ],
    managed_by: "/spec/runPolicy/managedBy" or ["kubeflow.org/training-operator"],
    expires: "/status/completionTime" after "/spec/runPolicy/ttlSecondsAfterFinished",
    reconcile: reconcile,
}
