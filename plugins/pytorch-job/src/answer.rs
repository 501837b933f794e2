//! The response in Kubeflow's words: conditions, reasons, Events and metrics as the training operator has them. It changes no decision.

use crate::kind::PyTorchJobKind;
use crate::state::{self, StateMap};
use crate::status::status;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{Condition, ConditionStatus, Error, Kind, Measurement, Request, Response, raw};
use training_job::api::TrainingJobStatus;
use training_job::{ConfigMap, DesiredChild, Job, SchedulerPluginsPodGroup, Service, VolcanoPodGroup};

/// The conditions of Kubeflow, in the order in which one stands for the state of a job rather than those before it: `kubectl get` shows the
/// last one.
const CONDITIONS: [&str; 6] = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];

/// An autoscaler, of which only its existence matters.
struct Autoscaler;

impl Kind for Autoscaler {
    const API_VERSION: &'static str = "autoscaling/v2";
    const KIND: &'static str = "HorizontalPodAutoscaler";
}

/// A response of the machine, and what it is about.
pub struct Answer<'a, O> {
    /// The request.
    pub request: &'a Request<O>,
    /// The job.
    pub job: &'a Job<'a>,
    /// Its kind.
    pub kind: &'a PyTorchJobKind<'a>,
    /// What was known of it.
    pub state: Option<&'a StateMap>,
    /// The time in its status of the last news that were told.
    pub reported: Option<&'a str>,
}

impl<O> Answer<'_, O> {
    /// The response of the plugin.
    ///
    /// # Errors
    /// A child cannot be read.
    pub fn translate(&self, response: Response) -> Result<Response, Error> {
        let mut raw = raw::Response::from(response);
        // Only an error has no status, and it changes nothing.
        let Some(known) = raw.status.as_deref().and_then(|text| serde_json::from_str::<TrainingJobStatus>(text).ok())
        else {
            return Ok(raw.into());
        };
        let carried: Vec<_> =
            raw.conditions.iter().filter(|it| CONDITIONS.contains(&&*it.condition_type)).cloned().collect();
        raw.conditions.sort_by_key(order);
        raw.conditions.iter_mut().for_each(rename_condition);
        for event in &mut raw.events {
            event.reason = match event.reason.as_str() {
                "WorkersCreated" => "SuccessfulCreatePod".to_owned(),
                other => renamed(other),
            };
        }
        let measurements: Vec<_> = raw.measurements.iter().filter_map(renamed_measurement).collect();
        let before = state::news(self.state);
        let news = before.with(self.reported, &raw.events, &measurements)?;
        // Told is what the state has: what it does not have would be told again by the next call. The state may be another's.
        let is_kept = before == news;
        let is_to_tell = is_kept && !news.is_told(self.reported);
        raw.events = news.events().filter(|_| is_to_tell).collect();
        raw.measurements = news.measurements(self.job.namespace).filter(|_| is_to_tell).collect();
        let leaves_children = raw.children.is_none();
        let state = state::config_map(self.job, &known, &carried, &news);
        let told = if is_kept { news.time.as_deref() } else { self.reported };
        let response = Response::from(raw).status(status(self.job, self.kind.spec, &known, told));
        if leaves_children && state::is_same(self.state, &state) {
            return Ok(response);
        }
        let kept = if leaves_children { self.existing() } else { Vec::new() };
        Ok(kept
            .into_iter()
            .chain([DesiredChild::applied(&state)])
            .fold(response, |response, child| child.add_to(response)))
    }

    /// All children that exist, to be kept as they are, but for the state.
    fn existing(&self) -> Vec<DesiredChild> {
        let state = state::name(self.job.name);
        let config_maps = self.request.names::<ConfigMap>().filter(|name| *name != state);
        let mut kept: Vec<_> = config_maps.map(|name| DesiredChild::kept("v1", "ConfigMap", &name)).collect();
        kept.extend(self.existing_of::<ObservedPod>());
        kept.extend(self.existing_of::<Service>());
        kept.extend(self.existing_of::<Autoscaler>());
        kept.extend(self.existing_of::<VolcanoPodGroup>());
        kept.extend(self.existing_of::<SchedulerPluginsPodGroup>());
        kept
    }

    fn existing_of<K: Kind>(&self) -> impl Iterator<Item = DesiredChild> {
        self.request.names::<K>().map(|name| DesiredChild::kept(K::API_VERSION, K::KIND, &name))
    }
}

/// The training operator's name of a measurement, and its value; none if it has no such metric.
fn renamed_measurement(measurement: &Measurement) -> Option<(String, f64)> {
    let name = match measurement.name.as_str() {
        "training_jobs_created_total" => "training_operator_jobs_created_total",
        "training_jobs_succeeded_total" => "training_operator_jobs_successful_total",
        "training_jobs_failed_total" => "training_operator_jobs_failed_total",
        "training_jobs_restarted_total" => "training_operator_jobs_restarted_total",
        _ => return None,
    };
    Some((name.to_owned(), measurement.value))
}

/// Those that are false come first.
fn order(condition: &Condition) -> (bool, usize) {
    let place = CONDITIONS.iter().position(|known| *known == condition.condition_type);
    (condition.status == ConditionStatus::IsTrue, place.unwrap_or_default())
}

/// A condition that is true has its type for a reason; why exactly is in its message.
fn rename_condition(condition: &mut Condition) {
    let is_kubeflows = CONDITIONS.contains(&&*condition.condition_type);
    condition.reason = match is_kubeflows && condition.status == ConditionStatus::IsTrue {
        true => format!("PyTorchJob{}", condition.condition_type),
        false => renamed(&condition.reason),
    };
}

fn renamed(reason: &str) -> String {
    reason.strip_prefix("TrainingJob").map_or_else(|| reason.to_owned(), |rest| format!("PyTorchJob{rest}"))
}
