//! A small simulated cluster around a plugin that runs jobs as Pods, for its tests. It holds one job, its children and a clock, and does
//! with responses what the host does, down to the order of its writes. It can stop before any write, as a host does that is killed. It
//! knows no kind of job.

mod host;
mod kubelet;

pub use host::ReconcileEnd;
pub use kubelet::has_ended;
use pilothouse_sdk::raw::{Request, Response};
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Kind, RefusedChild, Verdict};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of an answer that the host takes, less an eighth for what a real cluster adds.
const MAX_ANSWER: usize = (1 << 20) / 8 * 7;

/// When the simulated time begins: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

/// Which child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildKey {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The functions of a plugin.
#[derive(Clone, Copy)]
pub struct Plugin {
    /// What it answers for a job.
    pub reconcile: fn(Request) -> Response,
    /// What it answers for a job that is being deleted, if it has a finalizer.
    pub finalize: Option<fn(Request) -> Response>,
}

/// The cluster.
pub struct SimulatedCluster {
    plugin: Plugin,
    /// The job, with its status.
    pub job: Value,
    /// Its children, as they are.
    pub children: BTreeMap<ChildKey, Value>,
    /// Objects that lookups find besides the children.
    pub other_objects: Vec<Value>,
    /// Whether there is Volcano's kind of PodGroups.
    pub volcano_is_installed: bool,
    /// Whether there is the kind of PodGroups of scheduler-plugins.
    pub scheduler_plugins_is_installed: bool,
    /// Whether there is Kueue's kind of Workloads.
    pub kueue_is_installed: bool,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Whether deleted Pods exist on with a `deletionTimestamp`, until [`Self::finish_deletions`]. Pods that have ended go at once
    /// nevertheless, as from a real API server.
    pub graceful_deletion: bool,
    /// Pods that the API server refuses to create, with its words.
    pub refused_pods: BTreeMap<String, String>,
    /// The names of children that somebody else has.
    pub taken_names: BTreeSet<ChildKey>,
    /// Whether the host holds deletes back: it lacks the right, or waits until somebody confirms them.
    pub deletes_are_held: bool,
    /// What the host knows to be refused.
    refused: Vec<RefusedChild>,
    /// How many writes the host makes before it stops; none if it does not stop.
    pub writes_left: Option<usize>,
    /// The Events that the host has recorded.
    pub events: Vec<ReportedEvent>,
    /// The sum of all measurements, by name.
    pub measurements: BTreeMap<String, f64>,
    /// The verdict of the last response.
    pub verdict: Verdict,
    /// After how many seconds the host reconciles again.
    pub requeue_after: Option<u32>,
    /// Whether children were removed by a response that says that it removes many.
    pub removes_many: bool,
    created_children: u64,
    /// How long those of this round were together.
    created_bytes: usize,
}

/// An Event that the host has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedEvent {
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl std::fmt::Display for ReportedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

struct VolcanoPodGroup;
struct SchedulerPluginsPodGroup;
struct Workload;

impl Kind for VolcanoPodGroup {
    const API_VERSION: &'static str = "scheduling.volcano.sh/v1beta1";
    const KIND: &'static str = "PodGroup";
}

impl Kind for SchedulerPluginsPodGroup {
    const API_VERSION: &'static str = "scheduling.x-k8s.io/v1alpha1";
    const KIND: &'static str = "PodGroup";
}

impl Kind for Workload {
    const API_VERSION: &'static str = "kueue.x-k8s.io/v1beta1";
    const KIND: &'static str = "Workload";
}

impl ChildKey {
    /// The child of this kind and name.
    pub fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }
}

impl SimulatedCluster {
    /// A cluster with this job, which this plugin runs.
    pub fn of(plugin: Plugin, job: Value) -> Self {
        Self {
            plugin,
            job,
            children: BTreeMap::new(),
            other_objects: Vec::new(),
            volcano_is_installed: false,
            scheduler_plugins_is_installed: false,
            kueue_is_installed: false,
            now: START,
            graceful_deletion: false,
            refused_pods: BTreeMap::new(),
            taken_names: BTreeSet::new(),
            deletes_are_held: false,
            refused: Vec::new(),
            writes_left: None,
            events: Vec::new(),
            measurements: BTreeMap::new(),
            verdict: Verdict::Done,
            requeue_after: None,
            removes_many: false,
            created_children: 0,
            created_bytes: 0,
        }
    }

    /// Makes the Pods of the job, and lets all of them run.
    ///
    /// # Errors
    /// As [`Self::reconcile_until_stable`].
    pub fn run_all_pods(&mut self) -> Result<(), Error> {
        self.reconcile_until_stable()?;
        self.set_phase_of_all_pods("Running");
        self.reconcile_until_stable()
    }

    /// Calls the plugin once, and does nothing with the response.
    pub fn call_plugin(&self) -> Result<Answer, Error> {
        let mut case = Case::of(&self.job).now(&self.time_after(0));
        for child in self.children.values() {
            case = case.child(child).found(child);
        }
        case = self.other_objects.iter().fold(case, Case::found);
        case = self.refused.iter().cloned().fold(case, Case::refused);
        case = if self.volcano_is_installed { case } else { case.not_installed::<VolcanoPodGroup>() };
        case = match self.scheduler_plugins_is_installed {
            true => case,
            false => case.not_installed::<SchedulerPluginsPodGroup>(),
        };
        case = if self.kueue_is_installed { case } else { case.not_installed::<Workload>() };
        let has_none = || Error::Test("the plugin has no finalizer".to_owned());
        let function = match is_deleting(&self.job) {
            true => self.plugin.finalize.ok_or_else(has_none)?,
            false => self.plugin.reconcile,
        };
        let answer = case.run_raw(function)?;
        let children: usize = answer.response.children.iter().flatten().map(|child| child.object.len()).sum();
        let bytes = children + answer.response.status.as_ref().map_or(0, String::len);
        let too_large = || Error::Test(format!("an answer of {bytes} bytes"));
        (bytes < MAX_ANSWER).then_some(answer).ok_or_else(too_large)
    }

    /// The time so many seconds from now, as text.
    pub fn time_after(&self, seconds: i64) -> String {
        let time = k8s_openapi::jiff::Timestamp::from_second(self.now + seconds);
        time.unwrap_or_default().to_string()
    }

    /// Lets time pass.
    pub fn advance_clock(&mut self, seconds: i64) {
        self.now += seconds;
    }

    /// The names of the Pods, with those that are being deleted.
    pub fn pod_names(&self) -> Vec<&str> {
        self.child_names("Pod")
    }

    /// The names of the children of a kind.
    pub fn child_names(&self, kind: &str) -> Vec<&str> {
        self.children.keys().filter(|key| key.kind == kind).map(|key| key.name.as_str()).collect()
    }

    /// A child.
    pub fn child(&self, kind: &str, name: &str) -> Result<&Value, Error> {
        let child = self.children.get(&ChildKey::new(kind, name));
        child.ok_or_else(|| Error::Test(format!("no {kind} '{name}'")))
    }

    /// A child, to be changed.
    pub fn child_mut(&mut self, kind: &str, name: &str) -> Result<&mut Value, Error> {
        let child = self.children.get_mut(&ChildKey::new(kind, name));
        child.ok_or_else(|| Error::Test(format!("no {kind} '{name}'")))
    }

    /// The UID of a Pod.
    pub fn pod_uid(&self, pod: &str) -> Result<&str, Error> {
        Ok(self.child("Pod", pod)?["metadata"]["uid"].as_str().unwrap_or_default())
    }

    /// Whether a condition is `True`.
    pub fn is_condition_true(&self, condition_type: &str) -> bool {
        self.condition_of(condition_type)["status"] == "True"
    }

    /// The status and reason of a condition: `True TrainingJobRunning`. Empty if there is none.
    pub fn condition(&self, condition_type: &str) -> String {
        let text = |field: &str| self.condition_of(condition_type)[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason")).trim().to_owned()
    }

    /// The message of a condition.
    pub fn condition_message(&self, condition_type: &str) -> String {
        self.condition_of(condition_type)["message"].as_str().unwrap_or_default().to_owned()
    }

    fn condition_of(&self, condition_type: &str) -> &Value {
        let conditions = self.job.pointer("/status/conditions").and_then(Value::as_array);
        let found = conditions.into_iter().flatten().find(|condition| condition["type"] == condition_type);
        found.unwrap_or(&Value::Null)
    }

    /// How many Events of a reason the host has recorded.
    pub fn event_count(&self, reason: &str) -> usize {
        self.events.iter().filter(|event| event.reason == reason).count()
    }

    /// The sum of all measurements of a name.
    pub fn measured(&self, name: &str) -> f64 {
        self.measurements.get(name).copied().unwrap_or_default()
    }
}

/// Reads YAML or JSON.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}
