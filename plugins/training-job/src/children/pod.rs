//! The Pod of a member. Whoever changes what it makes of a spec raises [`crate::fingerprint::FORM`]: the Pods of a
//! running job are returned as they were made, or not at all.

use super::{environment, environment::Environment, labels, volumes::Volumes};
use crate::api::SecurityContext;
use crate::fingerprint::{ANNOTATION, annotation};
use crate::job::{Job, Role};
use serde_json::{Value, json};

/// The resource that a GPU is, if the job does not say it.
const GPU: &str = "nvidia.com/gpu";

/// The name of the scheduler's group, as two schedulers look for it.
const VOLCANO_GROUP: &str = "scheduling.k8s.io/group-name";
const COSCHEDULING_GROUP: &str = "scheduling.x-k8s.io/pod-group";

/// What the Pods of all members have in common.
pub struct Template<'j, 'o> {
    job: &'j Job<'o>,
    environment: Environment,
    volumes: Volumes,
    annotation: String,
}

impl<'j, 'o> Template<'j, 'o> {
    /// The template of a job.
    pub fn of(job: &'j Job<'o>) -> Self {
        let (environment, volumes) = (Environment::of(job), Volumes::of(job));
        Self { job, environment, volumes, annotation: annotation(&job.fingerprint) }
    }

    /// The ConfigMap that the Pods refer to for each other's names, if they need one.
    pub fn config_map(&self) -> Option<Value> {
        self.environment.config_map(self.job)
    }

    /// The Pod of one member.
    pub fn pod(&self, role: Role, index: u32) -> Value {
        let (job, name) = (self.job, self.job.pod_name(role, index));
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": labels::of_member(job, role, index),
                "annotations": { ANNOTATION: self.annotation },
            },
            "spec": {
                "hostname": name,
                "subdomain": job.name,
                "restartPolicy": job.pod_restart_policy(),
                "enableServiceLinks": false,
                "automountServiceAccountToken": job.spec.service_account_name.is_some(),
                "securityContext": pod_security(job.spec.security_context.as_ref()),
                "containers": [self.container(role, index)],
                "volumes": self.volumes.volumes,
            },
        });
        place(job, role, &mut pod["spec"]);
        join_group(job, &mut pod);
        pod
    }

    fn container(&self, role: Role, index: u32) -> Value {
        let (job, spec) = (self.job, self.job.spec);
        let name = spec.framework.word();
        let mut container = json!({
            "name": name,
            "image": spec.image,
            "command": spec.command,
            "env": self.environment.variables(job, role, index),
            "ports": [{ "name": name, "containerPort": job.port(), "protocol": "TCP" }],
            "volumeMounts": self.volumes.mounts,
            "securityContext": container_security(spec.security_context.as_ref()),
            // The last lines of a failed container's log are its message, and so in the job's status.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        });
        let optional = [
            ("args", json!(spec.args), spec.args.is_empty()),
            ("envFrom", json!(environment::sources(job)), spec.env_from.is_empty()),
            ("imagePullPolicy", json!(spec.image_pull_policy), spec.image_pull_policy.is_none()),
        ];
        for (field, value, is_absent) in optional {
            if !is_absent {
                container[field] = value;
            }
        }
        let resources = resources(job, role);
        if resources != json!({}) {
            container["resources"] = resources;
        }
        container
    }
}

/// What one member's container needs of its node. Parameter servers need no GPUs.
pub fn resources(job: &Job<'_>, role: Role) -> Value {
    let mut resources = json!(job.spec.resources.clone().unwrap_or_default());
    let gpu = gpu_resource(job);
    match role {
        Role::Worker if job.spec.gpu_per_worker > 0 => {
            resources["limits"][gpu] = json!(job.spec.gpu_per_worker.to_string());
        }
        Role::Worker => {}
        Role::ParameterServer => {
            for amounts in ["limits", "requests"] {
                if let Some(amounts) = resources.get_mut(amounts).and_then(Value::as_object_mut) {
                    amounts.remove(gpu);
                }
            }
        }
    }
    resources
}

/// The resource that a GPU is.
pub fn gpu_resource<'j>(job: &Job<'j>) -> &'j str {
    job.spec.gpu_resource.as_deref().unwrap_or(GPU)
}

/// Where a Pod can run and with what rights.
fn place(job: &Job<'_>, role: Role, pod: &mut Value) {
    let spec = job.spec;
    let tolerations = tolerations(job, role);
    let optional = [
        ("serviceAccountName", json!(spec.service_account_name), spec.service_account_name.is_none()),
        ("priorityClassName", json!(spec.priority_class_name), spec.priority_class_name.is_none()),
        ("imagePullSecrets", json!(spec.image_pull_secrets), spec.image_pull_secrets.is_empty()),
        ("nodeSelector", json!(spec.node_selector), spec.node_selector.is_empty()),
        ("tolerations", json!(tolerations), tolerations.is_empty()),
        ("affinity", affinity(job), spec.topology_key.is_none()),
        (
            "terminationGracePeriodSeconds",
            json!(spec.termination_grace_period_seconds),
            spec.termination_grace_period_seconds.is_none(),
        ),
    ];
    for (field, value, is_absent) in optional {
        if !is_absent {
            pod[field] = value;
        }
    }
}

/// The API server adds two tolerations to every Pod, and the list is one field with one owner. So whoever returns one
/// returns those two as well.
fn tolerations(job: &Job<'_>, role: Role) -> Vec<Value> {
    let mut tolerations: Vec<_> = job.spec.tolerations.iter().map(|toleration| json!(toleration)).collect();
    if role == Role::Worker && job.spec.gpu_per_worker > 0 {
        tolerations.push(json!({ "key": gpu_resource(job), "operator": "Exists", "effect": "NoSchedule" }));
    }
    if tolerations.is_empty() {
        return tolerations;
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !job.spec.tolerations.iter().any(|toleration| toleration.key.as_deref().is_none_or(|own| own == key)) {
            let default = json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
            tolerations.push(default);
        }
    }
    tolerations
}

fn affinity(job: &Job<'_>) -> Value {
    let term = json!({
        "topologyKey": job.spec.topology_key,
        "labelSelector": { "matchLabels": { labels::JOB: job.name } },
    });
    json!({ "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "podAffinityTerm": term }],
    } })
}

fn pod_security(asked: Option<&SecurityContext>) -> Value {
    let mut security = json!(asked.cloned().unwrap_or_default());
    security["seccompProfile"] = json!({ "type": "RuntimeDefault" });
    security
}

/// Images of training frameworks run as root and own what they write, so capabilities are taken only from those that
/// do not.
fn container_security(asked: Option<&SecurityContext>) -> Value {
    let mut security = json!({ "allowPrivilegeEscalation": false });
    if asked.is_some_and(|asked| asked.run_as_non_root.unwrap_or_default()) {
        security["capabilities"] = json!({ "drop": ["ALL"] });
    }
    security
}

/// Makes a Pod one of the group that its scheduler starts together.
fn join_group(job: &Job<'_>, pod: &mut Value) {
    use crate::api::GangScheduler::{SchedulerPlugins, Volcano};
    let Some(gang) = &job.spec.gang_scheduling else { return };
    let usual = match gang.scheduler {
        Volcano => "volcano",
        SchedulerPlugins => "scheduler-plugins-scheduler",
    };
    pod["spec"]["schedulerName"] = json!(gang.scheduler_name.as_deref().unwrap_or(usual));
    match gang.scheduler {
        Volcano => pod["metadata"]["annotations"][VOLCANO_GROUP] = json!(job.name),
        SchedulerPlugins => pod["metadata"]["labels"][COSCHEDULING_GROUP] = json!(job.name),
    }
}
