//! What earlier calls knew of a job: the status of a `TrainingJob`, in a ConfigMap beside the job. The kind `PyTorchJob` is Kubeflow's, and
//! its API server drops fields of a status that it does not declare. The ConfigMap is written before a Pod goes because of it.

use crate::api::PyTorchJobStatus;
use crate::children::labels;
use crate::news::News;
use pilothouse_sdk::{Condition, ConditionStatus, Error, Kind, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use training_job::api::{Phase, StatusCondition, TrainingJobStatus};
use training_job::{Job, Referent};

/// The key of the status.
const STATUS: &str = "status.json";

/// The key of its conditions, which are no part of the status that plugins write.
const CONDITIONS: &str = "conditions.json";

/// The key of what is still to be told.
const NEWS: &str = "news.json";

/// The ConfigMap: its content.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateMap {
    data: BTreeMap<String, String>,
}

impl Kind for StateMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

#[derive(Serialize)]
struct Written<'c> {
    #[serde(rename = "type")]
    condition_type: &'c str,
    status: &'c str,
    reason: &'c str,
    message: &'c str,
}

/// The name of the ConfigMap.
pub fn name(job_name: &str) -> String {
    format!("{job_name}-pytorchjob-state")
}

/// What the ConfigMap is. No Pod is made before it exists: without it, each call would count a failure anew and forget the last one.
pub fn referent(job_name: &str) -> Referent {
    ("v1".to_owned(), "ConfigMap".to_owned(), name(job_name))
}

/// The ConfigMap of a job, if it exists.
///
/// # Errors
/// It cannot be read.
pub fn observed<O>(request: &Request<O>, job_name: &str) -> Result<Option<StateMap>, Error> {
    request.child::<StateMap>(&name(job_name))
}

/// What is known of a job. Without the ConfigMap it is what its status says: another controller may have served it, to its end.
pub fn read(state: Option<&StateMap>, status: Option<&PyTorchJobStatus>) -> TrainingJobStatus {
    let known = state.and_then(|state| {
        let status: TrainingJobStatus = serde_json::from_str(state.data.get(STATUS)?).ok()?;
        let conditions: Vec<StatusCondition> = serde_json::from_str(state.data.get(CONDITIONS)?).ok()?;
        Some(TrainingJobStatus { conditions, ..status })
    });
    known.unwrap_or_else(|| status.map(of_status).unwrap_or_default())
}

fn of_status(status: &PyTorchJobStatus) -> TrainingJobStatus {
    let is_true = |wanted: &str| status.conditions.iter().any(|it| it.condition_type == wanted && it.status == "True");
    let phase =
        [("Succeeded", Phase::Succeeded), ("Failed", Phase::Failed)].into_iter().find(|(name, _)| is_true(name));
    TrainingJobStatus {
        phase: phase.map(|(_, phase)| phase),
        start_time: status.start_time.clone(),
        completion_time: status.completion_time.clone(),
        conditions: status.conditions.clone(),
        ..TrainingJobStatus::default()
    }
}

/// What is still to be told of a job.
pub fn news(state: Option<&StateMap>) -> News {
    let text = state.and_then(|state| state.data.get(NEWS));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The ConfigMap that holds a status and its conditions.
pub fn config_map(job: &Job<'_>, status: &TrainingJobStatus, conditions: &[Condition], news: &News) -> Value {
    let written = conditions.iter().map(|condition| Written {
        condition_type: &condition.condition_type,
        status: if condition.status == ConditionStatus::IsTrue { "True" } else { "False" },
        reason: &condition.reason,
        message: &condition.message,
    });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name(job.name), "labels": labels::of_job(job) },
        "data": {
            STATUS: json!(status).to_string(),
            CONDITIONS: json!(written.collect::<Vec<_>>()).to_string(),
            NEWS: json!(news).to_string(),
        },
    })
}

/// Whether an observed ConfigMap has the content of a desired one.
pub fn is_same(observed: Option<&StateMap>, desired: &Value) -> bool {
    observed.is_some_and(|observed| json!(observed.data) == desired["data"])
}
