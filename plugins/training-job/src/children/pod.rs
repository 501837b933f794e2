//! The Pod of a replica as it is created. Pods of a running job are kept as they are, so another version of this file changes none.

use super::{environment, environment::Environment, labels, mpi, pod_template, volumes};
use crate::api::{Framework, GangScheduler, ReplicaType};
use crate::fingerprint::ANNOTATION;
use crate::job::{Job, ReplicaId};
use pilothouse_pods::api::SecurityContext;
use pilothouse_pods::fields::set_unless_empty;
use pilothouse_pods::security::{self, Capabilities};
use pilothouse_pods::{gpu, volumes::Volumes};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The annotation in which Volcano looks for the PodGroup of a Pod.
const VOLCANO_POD_GROUP: &str = "scheduling.k8s.io/group-name";

/// The label in which the coscheduling plugin of scheduler-plugins looks for the PodGroup of a Pod.
const COSCHEDULING_POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";

/// The taints that the API server lets every Pod tolerate for five minutes.
const DEFAULT_TOLERATED_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// What the Pods of all replicas have in common.
pub struct PodTemplate<'j, 'o> {
    job: &'j Job<'o>,
    environment: Environment,
    volumes: Volumes,
}

impl<'j, 'o> PodTemplate<'j, 'o> {
    /// The template of a job.
    pub fn of(job: &'j Job<'o>) -> Self {
        let (environment, volumes) = (Environment::of(job), volumes::of(job));
        Self { job, environment, volumes }
    }

    /// The job.
    pub fn job(&self) -> &'j Job<'o> {
        self.job
    }

    /// The ConfigMap that the environment of the Pods refers to, if it needs one.
    pub fn config_map(&self) -> Option<Value> {
        self.environment.config_map(self.job)
    }

    /// The Pod of one replica.
    pub fn pod(&self, replica: ReplicaId) -> Value {
        let (job, name) = (self.job, self.job.pod_name(replica));
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": labels::of_pod(job, replica),
                "annotations": { ANNOTATION: job.fingerprint },
            },
            "spec": {
                "hostname": name,
                "subdomain": job.name,
                "restartPolicy": job.pod_restart_policy(replica.replica_type),
                "enableServiceLinks": false,
                "automountServiceAccountToken": job.spec.service_account_name.is_some(),
                "securityContext": security::of_pod(job.spec.security_context.as_ref()),
                "containers": [self.container(replica)],
                "volumes": self.volumes.volumes,
            },
        });
        set_scheduling_fields(job, replica.replica_type, &mut pod["spec"]);
        add_to_pod_group(job, &mut pod);
        pod_template::apply(job, replica, &mut pod);
        pod
    }

    fn container(&self, replica: ReplicaId) -> Value {
        let (job, spec) = (self.job, self.job.spec);
        let name = spec.framework.as_str();
        let program = Program::of(job, replica.replica_type);
        let mut container = json!({
            "name": name,
            "image": program.image,
            "command": program.command,
            "env": self.environment.variables(job, replica),
            "ports": [{ "name": name, "containerPort": job.port(), "protocol": "TCP" }],
            "volumeMounts": self.volumes.mounts,
            "securityContext": security::of_container(capabilities(spec.security_context.as_ref())),
            // The last log lines of a failed container become its termination message, which the job's status repeats.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        });
        set_unless_empty(&mut container, "args", json!(program.args));
        set_unless_empty(&mut container, "envFrom", json!(environment::env_from(job)));
        set_unless_empty(&mut container, "imagePullPolicy", json!(spec.image_pull_policy));
        set_unless_empty(&mut container, "resources", resources(job, replica.replica_type));
        container
    }
}

/// What a replica runs.
struct Program<'j> {
    image: &'j str,
    command: Cow<'j, [String]>,
    args: &'j [String],
}

impl<'j> Program<'j> {
    /// That of its role, where the spec gives one, or else that of the job.
    fn of(job: &Job<'j>, replica_type: ReplicaType) -> Self {
        let (spec, role) = (job.spec, job.role(replica_type));
        let own_command = role.map(|role| role.command.as_slice()).filter(|command| !command.is_empty());
        let own_args = role.map(|role| role.args.as_slice()).filter(|args| !args.is_empty() || own_command.is_some());
        let image = role.and_then(|role| role.image.as_deref()).unwrap_or(&spec.image);
        if spec.framework == Framework::Mpi && replica_type == ReplicaType::Worker && own_command.is_none() {
            return Self { image, command: Cow::Owned(mpi::worker_command(job)), args: &[] };
        }
        let command = Cow::Borrowed(own_command.unwrap_or(&spec.command));
        Self { image, command, args: own_args.unwrap_or(&spec.args) }
    }
}

/// The compute resources of one replica's container.
pub fn resources(job: &Job<'_>, replica_type: ReplicaType) -> Value {
    let own = job.role(replica_type).and_then(|role| role.resources.as_ref());
    let mut resources = json!(own.or(job.spec.resources.as_ref()).cloned().unwrap_or_default());
    let gpu_name = gpu_resource(job);
    let gpus = job.gpus(replica_type);
    if gpus > 0 {
        resources["limits"][gpu_name] = json!(gpus.to_string());
    } else if own.is_none() && replica_type != ReplicaType::Worker {
        for field in ["limits", "requests"] {
            if let Some(quantities) = resources.get_mut(field).and_then(Value::as_object_mut) {
                quantities.remove(gpu_name);
            }
        }
    }
    resources
}

/// Gives a container requests for what it only limits, as the API server does.
pub fn complete_requests(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, quantity) in limits {
        let requests = &mut container["resources"]["requests"];
        if requests.get(&name).is_none() {
            requests[&name] = quantity;
        }
    }
}

/// The resource name of a GPU.
pub fn gpu_resource<'j>(job: &Job<'j>) -> &'j str {
    job.spec.gpu_resource.as_deref().unwrap_or(gpu::DEFAULT_RESOURCE)
}

/// Sets the fields that decide where the Pod runs, and as whom.
fn set_scheduling_fields(job: &Job<'_>, replica_type: ReplicaType, pod_spec: &mut Value) {
    let spec = job.spec;
    set_unless_empty(pod_spec, "serviceAccountName", json!(spec.service_account_name));
    set_unless_empty(pod_spec, "priorityClassName", json!(spec.priority_class_name));
    set_unless_empty(pod_spec, "imagePullSecrets", json!(spec.image_pull_secrets));
    set_unless_empty(pod_spec, "nodeSelector", json!(spec.node_selector));
    set_unless_empty(pod_spec, "tolerations", json!(tolerations(job, replica_type)));
    set_unless_empty(pod_spec, "affinity", json!(affinity(job)));
    let grace_period = json!(spec.termination_grace_period_seconds);
    set_unless_empty(pod_spec, "terminationGracePeriodSeconds", grace_period);
}

fn tolerations(job: &Job<'_>, replica_type: ReplicaType) -> Vec<Value> {
    let mut tolerations: Vec<_> = job.spec.tolerations.iter().map(|toleration| json!(toleration)).collect();
    // A replica without GPUs that is selected onto nodes with GPUs must tolerate what keeps others away from them.
    let shares_nodes = job.spec.gpu_per_worker > 0 && !job.spec.node_selector.is_empty();
    if job.gpus(replica_type) > 0 || shares_nodes {
        tolerations.push(gpu::toleration(gpu_resource(job)));
    }
    if tolerations.is_empty() {
        return tolerations;
    }
    // The API server adds two tolerations to every Pod, and the list is one field with one owner. So whoever returns one
    // toleration must return these two as well, or they would look like drift.
    for taint in DEFAULT_TOLERATED_TAINTS {
        let covers_taint = |key: &Option<String>| key.as_deref().is_none_or(|key| key == taint);
        if !job.spec.tolerations.iter().any(|toleration| covers_taint(&toleration.key)) {
            tolerations
                .push(json!({ "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }));
        }
    }
    tolerations
}

/// Prefers nodes with the same value of the topology label.
fn affinity(job: &Job<'_>) -> Option<Value> {
    let topology_key = job.spec.topology_key.as_ref()?;
    let term = json!({
        "topologyKey": topology_key,
        "labelSelector": { "matchLabels": { labels::JOB_NAME: job.name } },
    });
    Some(json!({ "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "podAffinityTerm": term }],
    } }))
}

/// What becomes of the capabilities of a worker. Images of training frameworks usually run as root, and root without
/// capabilities cannot write files that belong to others. So only jobs that do not run as root lose them.
fn capabilities(given: Option<&SecurityContext>) -> Capabilities {
    match given.is_some_and(|given| given.run_as_non_root.unwrap_or_default()) {
        true => Capabilities::Dropped,
        false => Capabilities::Kept,
    }
}

/// Makes a Pod part of the PodGroup of its job.
pub fn add_to_pod_group(job: &Job<'_>, pod: &mut Value) {
    let Some(gang) = &job.spec.gang_scheduling else { return };
    let default_name = match gang.scheduler {
        GangScheduler::Volcano => "volcano",
        GangScheduler::SchedulerPlugins => "scheduler-plugins-scheduler",
    };
    pod["spec"]["schedulerName"] = json!(gang.scheduler_name.as_deref().unwrap_or(default_name));
    match gang.scheduler {
        GangScheduler::Volcano => pod["metadata"]["annotations"][VOLCANO_POD_GROUP] = json!(job.name),
        GangScheduler::SchedulerPlugins => pod["metadata"]["labels"][COSCHEDULING_POD_GROUP] = json!(job.name),
    }
}
