//! A small simulated cluster around the plugin: it keeps a job, its children and a clock, and does with answers what the
//! host does, down to the order of its writes. It can stop after any of them, as a host that is killed does.

mod host;

pub use host::End;
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use training_job::api::{Phase, TrainingJobStatus};

/// When the simulated time begins: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

/// The kind and name of a child.
type Key = (String, String);

/// The cluster.
pub struct World {
    pub job: Value,
    pub children: BTreeMap<Key, Value>,
    /// What lookups find besides the children.
    pub found: Vec<Value>,
    /// Kinds of PodGroups that are installed.
    pub volcano: bool,
    pub coscheduling: bool,
    pub now: i64,
    /// Whether deleted Pods stay for a while, until `collect`.
    pub graceful: bool,
    /// Writes that the host makes before it stops; none where it does not.
    pub writes_left: Option<usize>,
    pub events: Vec<(String, String)>,
    pub samples: BTreeMap<String, f64>,
    pub verdict: Verdict,
    pub requeue: Option<u32>,
    pub removes_many: bool,
    made: u64,
}

/// The scheduler's kinds.
pub struct Volcano;
pub struct Coscheduling;

impl pilothouse_sdk::Kind for Volcano {
    const API_VERSION: &'static str = "scheduling.volcano.sh/v1beta1";
    const KIND: &'static str = "PodGroup";
}

impl pilothouse_sdk::Kind for Coscheduling {
    const API_VERSION: &'static str = "scheduling.x-k8s.io/v1alpha1";
    const KIND: &'static str = "PodGroup";
}

impl World {
    /// A cluster with a job `mnist` in namespace `ml`. Of the spec only what matters is given: fields in YAML's flow form.
    pub fn of(spec: &str) -> Result<Self, Error> {
        let mut fields: Value = parse(&format!("{{{spec}}}"))?;
        for (field, value) in
            [("framework", json!("pytorch")), ("image", json!("image")), ("command", json!(["python", "train.py"]))]
        {
            if fields.get(field).is_none() {
                fields[field] = value;
            }
        }
        Ok(Self::with(json!({
            "apiVersion": "ml.example.com/v1alpha1",
            "kind": "TrainingJob",
            "metadata": { "name": "mnist", "namespace": "ml", "uid": "job", "generation": 1 },
            "spec": fields,
        })))
    }

    /// A cluster with this job.
    pub fn with(job: Value) -> Self {
        Self {
            job,
            children: BTreeMap::new(),
            found: Vec::new(),
            volcano: false,
            coscheduling: false,
            now: START,
            graceful: false,
            writes_left: None,
            events: Vec::new(),
            samples: BTreeMap::new(),
            verdict: Verdict::Done,
            requeue: None,
            removes_many: false,
            made: 0,
        }
    }

    /// A cluster with a job whose Pods all run.
    pub fn running(spec: &str) -> Result<Self, Error> {
        let mut world = Self::of(spec)?;
        world.settle()?;
        world.all("Running");
        world.settle()?;
        Ok(world)
    }

    /// Asks the plugin once.
    pub fn ask(&self) -> Result<Answer, Error> {
        let mut case = Case::of(&self.job).now(&self.time(0));
        for child in self.children.values() {
            case = case.child(child).found(child);
        }
        case = self.found.iter().fold(case, Case::found);
        case = if self.volcano { case } else { case.not_installed::<Volcano>() };
        case = if self.coscheduling { case } else { case.not_installed::<Coscheduling>() };
        let is_leaving = self.job.pointer("/metadata/deletionTimestamp").is_some();
        case.run_raw(if is_leaving { training_job::finalize_raw } else { training_job::reconcile_raw })
    }

    /// Reconciles until there is nothing left to do at this time, and checks that asking once more changes nothing.
    pub fn settle(&mut self) -> Result<(), Error> {
        for _ in 0..10 {
            let end = self.reconcile()?;
            if end == End::Crashed {
                self.writes_left = None;
                continue;
            }
            let (job, children) = (self.job.clone(), self.children.clone());
            if self.requeue != Some(0) {
                self.reconcile()?;
                let is_same = (job, children) == (self.job.clone(), self.children.clone());
                return if is_same { Ok(()) } else { Err(Error::Test("asked again, it answers otherwise".to_owned())) };
            }
        }
        Err(Error::Test("the job does not come to rest".to_owned()))
    }

    /// The time, so many seconds later.
    pub fn time(&self, later: i64) -> String {
        let time = k8s_openapi::jiff::Timestamp::from_second(self.now + later);
        time.unwrap_or_default().to_string()
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: i64) {
        self.now += seconds;
    }

    /// Gives a Pod a status, in YAML's flow form.
    pub fn set(&mut self, pod: &str, status: &str) -> Result<(), Error> {
        let status = parse(&format!("{{{status}}}"))?;
        let live = self.children.get_mut(&("Pod".to_owned(), pod.to_owned()));
        live.ok_or_else(|| Error::Test(format!("no Pod '{pod}'")))?["status"] = status;
        Ok(())
    }

    /// Gives all Pods a phase.
    pub fn all(&mut self, phase: &str) {
        for (_, pod) in self.children.iter_mut().filter(|((kind, _), _)| kind == "Pod") {
            pod["status"] = json!({ "phase": phase });
        }
    }

    /// Lets a Pod fail with an exit code.
    pub fn fail(&mut self, pod: &str, code: i32) -> Result<(), Error> {
        let container = self.job["spec"]["framework"].as_str().unwrap_or_default().to_owned();
        let status = format!(
            "phase: Failed, containerStatuses: [{{name: {container}, state: {{terminated: {{exitCode: {code}}}}}}}]"
        );
        self.set(pod, &status)
    }

    /// Takes a Pod away, as somebody else would.
    pub fn take(&mut self, pod: &str) {
        self.children.remove(&("Pod".to_owned(), pod.to_owned()));
    }

    /// Ends the grace of all deleted Pods.
    pub fn collect(&mut self) {
        self.children.retain(|_, live| !is_deleting(live));
    }

    /// Names of the Pods, those that are being deleted included.
    pub fn pods(&self) -> Vec<&str> {
        self.names("Pod")
    }

    /// Names of children of a kind.
    pub fn names(&self, kind: &str) -> Vec<&str> {
        self.children.keys().filter(|(of, _)| of == kind).map(|(_, name)| name.as_str()).collect()
    }

    /// A child.
    pub fn child(&self, kind: &str, name: &str) -> Result<&Value, Error> {
        let found = self.children.get(&(kind.to_owned(), name.to_owned()));
        found.ok_or_else(|| Error::Test(format!("no {kind} '{name}'")))
    }

    /// The UID of a Pod.
    pub fn uid(&self, pod: &str) -> Result<&str, Error> {
        Ok(self.child("Pod", pod)?["metadata"]["uid"].as_str().unwrap_or_default())
    }

    /// The status.
    pub fn status(&self) -> Result<TrainingJobStatus, Error> {
        let status = self.job.get("status").cloned().unwrap_or_default();
        serde_json::from_value(status).map_err(|error| Error::Test(error.to_string()))
    }

    /// The phase.
    pub fn phase(&self) -> Result<Option<Phase>, Error> {
        Ok(self.status()?.phase)
    }

    /// Conditions that are `True`, but for `Created`, and `Ready` with its reason if it is not.
    pub fn is(&self, condition_type: &str) -> Result<bool, Error> {
        Ok(self.status()?.is_condition_true(condition_type))
    }

    /// A condition in words: `True TrainingJobRunning`.
    pub fn condition(&self, condition_type: &str) -> Result<String, Error> {
        let status = self.status()?;
        let found = status.condition(condition_type).map(|seen| format!("{} {}", seen.status, seen.reason));
        Ok(found.unwrap_or_default())
    }

    /// The message of a condition.
    pub fn message(&self, condition_type: &str) -> Result<String, Error> {
        let status = self.status()?;
        Ok(status.condition(condition_type).map(|seen| seen.message.clone()).unwrap_or_default())
    }

    /// How often an event was told.
    pub fn told(&self, reason: &str) -> usize {
        self.events.iter().filter(|(told, _)| told == reason).count()
    }

    /// What a metric counted.
    pub fn counted(&self, metric: &str) -> f64 {
        self.samples.get(metric).copied().unwrap_or_default()
    }
}

/// Reads YAML or JSON.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}

fn is_deleting(live: &Value) -> bool {
    live.pointer("/metadata/deletionTimestamp").is_some()
}
