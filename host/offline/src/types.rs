//! What an API server would refuse of an object of Kubernetes' own kinds: fields that their types do not have, and values of another type.
//! Knows the kinds that plugins return most; of others it says nothing, and of none whether the values make sense.

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service, ServiceAccount},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
        scheduling::v1::PriorityClass,
    },
    serde::de::DeserializeOwned,
};
use pilothouse_controller::schema;
use pilothouse_engine::contract::KindRef;
use serde_json::Value;

/// What an API server would refuse of an object, a sentence each.
pub(crate) fn refused(kind: &KindRef, object: &Value) -> Vec<String> {
    let read = match (kind.api_version.as_str(), kind.kind.as_str()) {
        ("v1", "ConfigMap") => read::<ConfigMap>,
        ("v1", "Namespace") => read::<Namespace>,
        ("v1", "PersistentVolumeClaim") => read::<PersistentVolumeClaim>,
        ("v1", "Pod") => read::<Pod>,
        ("v1", "ResourceQuota") => read::<ResourceQuota>,
        ("v1", "Secret") => read::<Secret>,
        ("v1", "Service") => read::<Service>,
        ("v1", "ServiceAccount") => read::<ServiceAccount>,
        ("apps/v1", "DaemonSet") => read::<DaemonSet>,
        ("apps/v1", "Deployment") => read::<Deployment>,
        ("apps/v1", "ReplicaSet") => read::<ReplicaSet>,
        ("apps/v1", "StatefulSet") => read::<StatefulSet>,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => read::<HorizontalPodAutoscaler>,
        ("batch/v1", "CronJob") => read::<CronJob>,
        ("batch/v1", "Job") => read::<Job>,
        ("coordination.k8s.io/v1", "Lease") => read::<Lease>,
        ("networking.k8s.io/v1", "Ingress") => read::<Ingress>,
        ("networking.k8s.io/v1", "NetworkPolicy") => read::<NetworkPolicy>,
        ("policy/v1", "PodDisruptionBudget") => read::<PodDisruptionBudget>,
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => read::<ClusterRole>,
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => read::<ClusterRoleBinding>,
        ("rbac.authorization.k8s.io/v1", "Role") => read::<Role>,
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => read::<RoleBinding>,
        ("scheduling.k8s.io/v1", "PriorityClass") => read::<PriorityClass>,
        _ => return Vec::new(),
    };
    let Read { unknown, wrong } = read_with_quantities(read, object.clone());
    let mut found: Vec<_> = unknown
        .iter()
        .map(|path| format!("{path} is no field of {kind}; is there a typo, or the wrong place?"))
        .collect();
    found.extend(wrong.map(|wrong| format!("{} has another type: {}", wrong.path, wrong.why)));
    found
}

/// What was found as an object was read as its type.
struct Read {
    /// The paths of fields that the type does not have.
    unknown: Vec<String>,
    /// The first value of another type.
    wrong: Option<Wrong>,
}

struct Wrong {
    path: String,
    pointer: String,
    why: String,
}

/// The API server takes a number for a quantity, and the types of the client do not.
fn read_with_quantities(read: fn(&Value) -> Read, mut object: Value) -> Read {
    loop {
        let found = read(&object);
        let Some(wrong) = &found.wrong else { return found };
        match object.pointer_mut(&wrong.pointer) {
            Some(value) if value.is_number() && wrong.why.contains("expected Quantity") => {
                *value = Value::String(value.to_string());
            }
            _ => return found,
        }
    }
}

fn read<T: DeserializeOwned>(object: &Value) -> Read {
    let mut unknown = Vec::new();
    let mut note = |path: serde_ignored::Path<'_>| unknown.push(shown(&path));
    let noting = serde_ignored::Deserializer::new(object, &mut note);
    let wrong = serde_path_to_error::deserialize::<_, T>(noting).err();
    let wrong = wrong.map(|error| Wrong {
        path: error.path().to_string(),
        pointer: pointer(error.path()),
        why: error.inner().to_string(),
    });
    Read { unknown, wrong }
}

/// A path as people write it.
fn shown(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", shown(parent)),
        Path::Map { parent, key } => match shown(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => shown(parent),
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let keys = path.iter().map(|segment| match segment {
        Segment::Seq { index } => index.to_string(),
        Segment::Map { key } => key.clone(),
        Segment::Enum { variant } => variant.clone(),
        Segment::Unknown => "?".to_owned(),
    });
    schema::pointer(&keys.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_types_that_the_kind_does_not_have_are_found() {
        let pod = |container: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}});
        let quantities =
            json!({"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi", "example.com/gpu": 2}}});
        let probe = json!({"name": "a", "readinessProbe": {"httpGet": {"port": "http"}}});
        for (object, words) in [
            (pod(json!({"name": "a"})), &[][..]),
            (pod(quantities), &[]),
            (pod(probe), &[]),
            (
                pod(json!({"name": "a", "imagePullpolicy": "Always"})),
                &["spec.containers[0].imagePullpolicy is no field of v1 Pod; is there a typo, or the wrong place?"],
            ),
            (
                pod(json!({"name": "a", "env": [{"name": "PORT", "value": 80}]})),
                &["spec.containers[0].env[0].value has another type: invalid type: integer `80`, expected a string"],
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "label": {}}, "dta": {}}),
                &[
                    "dta is no field of v1 ConfigMap; is there a typo, or the wrong place?",
                    "metadata.label is no field of v1 ConfigMap; is there a typo, or the wrong place?",
                ],
            ),
            (json!({"apiVersion": "example.com/v1", "kind": "Web", "dta": 1}), &[]),
        ] {
            let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
            let mut found = refused(&KindRef::new(text("apiVersion"), text("kind")), &object);
            found.sort();
            assert_eq!(found, words, "{object}");
        }
    }
}
