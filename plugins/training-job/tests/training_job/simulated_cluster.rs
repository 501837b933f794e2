//! The simulated cluster with a `TrainingJob` in it.

pub use pilothouse_simulated_cluster::{ChildKey, ReconcileEnd, SimulatedCluster, has_ended, is_deleting, parse};

use pilothouse_sdk::Error;
use pilothouse_simulated_cluster::Plugin;
use serde_json::{Value, json};
use training_job::api::{Phase, TrainingJobStatus};

/// The plugin.
const PLUGIN: Plugin = Plugin { reconcile: training_job::reconcile_raw, finalize: Some(training_job::finalize_raw) };

/// What a cluster with a `TrainingJob` has besides.
pub trait TrainingJobCluster: Sized {
    /// A cluster with a job `mnist` in namespace `ml`. `spec` has the fields that matter, in YAML's flow form; other required
    /// fields are filled in.
    fn new(spec: &str) -> Result<Self, Error>;

    /// A cluster with this job.
    fn with_job(job: Value) -> Self;

    /// As [`Self::new`], with a job whose Pods all run.
    fn running(spec: &str) -> Result<Self, Error>;

    /// The status.
    fn status(&self) -> Result<TrainingJobStatus, Error>;

    /// The phase.
    fn phase(&self) -> Result<Option<Phase>, Error>;
}

impl TrainingJobCluster for SimulatedCluster {
    fn new(spec: &str) -> Result<Self, Error> {
        let mut fields: Value = parse(&format!("{{{spec}}}"))?;
        for (field, value) in
            [("framework", json!("pytorch")), ("image", json!("image")), ("command", json!(["python", "train.py"]))]
        {
            if fields.get(field).is_none() {
                fields[field] = value;
            }
        }
        Ok(Self::with_job(json!({
            "apiVersion": "ml.example.com/v1alpha1",
            "kind": "TrainingJob",
            "metadata": { "name": "mnist", "namespace": "ml", "uid": "job", "generation": 1 },
            "spec": fields,
        })))
    }

    fn with_job(job: Value) -> Self {
        Self::of(PLUGIN, job)
    }

    fn running(spec: &str) -> Result<Self, Error> {
        let mut cluster = Self::new(spec)?;
        cluster.run_all_pods()?;
        Ok(cluster)
    }

    fn status(&self) -> Result<TrainingJobStatus, Error> {
        let status = self.job.get("status").cloned().unwrap_or_default();
        serde_json::from_value(status).map_err(|error| Error::Test(error.to_string()))
    }

    fn phase(&self) -> Result<Option<Phase>, Error> {
        Ok(self.status()?.phase)
    }
}
