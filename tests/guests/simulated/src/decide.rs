//! What the plugin answers: a pure function of an object, its children, what it looked up, and the plugin's version. The properties
//! of the simulation call it as well, to know what there shall be.

use pilothouse_sdk::{
    Condition, ConditionStatus, Handling, ImmutablePolicy, RemovalPolicy, Verdict,
    raw::{Child, Response, Waiting},
};
use serde_json::{Value, json};

use crate::{
    scope::{Place, Scope},
    spec::{ChildKind, ChildSpec, Spec},
    version::Version,
};

/// What an answer is based on.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The version of the plugin.
    pub version: Version,
    /// The object.
    pub object: &'a Value,
    /// Its children.
    pub children: &'a [&'a Value],
    /// The value of the ConfigMap that the object follows; none if that does not exist.
    pub followed: Option<&'a str>,
}

/// The namespace and the name of the ConfigMap that an object follows; none if it follows none. Without a namespace it is the
/// object's.
pub fn followed(object: &Value) -> Option<(Option<&'static str>, String)> {
    let namespace = (Scope::of(object) == Scope::Cluster).then(|| Place::Home.namespace());
    Spec::of(object).follows.map(|name| (namespace, name))
}

/// The value of the ConfigMap that an object follows.
pub fn value_of(followed: &Value) -> &str {
    followed.pointer("/data/value").and_then(Value::as_str).unwrap_or_default()
}

/// The answer.
pub fn decide(inputs: Inputs<'_>) -> Response {
    let spec = Spec::of(inputs.object);
    if !says_children(&spec, inputs.followed) {
        return response(Verdict::Invalid("the ConfigMap that it follows does not exist".to_owned()));
    }
    let wanted = inputs.version.wanted(&spec);
    let verdict = if waits(&spec, &wanted, inputs) {
        let message = "a Deployment is not available, or a Job has not completed".to_owned();
        Verdict::Wait(Waiting { reason: "Rollout".to_owned(), message, seconds: 60 })
    } else {
        Verdict::Done
    };
    Response {
        conditions: ready(inputs.version).into_iter().collect(),
        children: Some(wanted.iter().enumerate().map(|(place, child)| desired(child, place, inputs)).collect()),
        status: Some(status(&wanted, inputs.followed).to_string()),
        requeue_after: spec.requeue_after,
        ..response(verdict)
    }
}

/// Whether the object waits for Deployments or Jobs.
pub fn waits(spec: &Spec, wanted: &[&ChildSpec], inputs: Inputs<'_>) -> bool {
    spec.awaits && wanted.iter().any(|child| !is_available(child, inputs))
}

/// The status of an object that wants these children.
pub fn status(wanted: &[&ChildSpec], followed: Option<&str>) -> Value {
    json!({"children": wanted.len(), "followed": followed})
}

/// Whether the answer says which children there shall be. If not, they stay as they are.
pub fn says_children(spec: &Spec, followed: Option<&str>) -> bool {
    spec.follows.is_none() || followed.is_some()
}

/// What a version says of `Ready`. Whether the object is ready is up to its Deployments and Jobs alone then, if it awaits them, and not to
/// all of its children.
fn ready(version: Version) -> Option<Condition> {
    (!version.leaves_ready()).then(|| Condition {
        condition_type: "Ready".to_owned(),
        status: ConditionStatus::IsTrue,
        reason: "Done".to_owned(),
        message: String::new(),
    })
}

/// The answer for an object that is being deleted: no children, and the object may go.
pub fn finalize() -> Response {
    Response { children: Some(Vec::new()), ..response(Verdict::Done) }
}

fn response(verdict: Verdict) -> Response {
    Response {
        verdict,
        children: None,
        removes_many: false,
        status: None,
        conditions: Vec::new(),
        events: Vec::new(),
        measurements: Vec::new(),
        requeue_after: None,
    }
}

/// The child as JSON, without what the host adds.
pub fn body(child: &ChildSpec, inputs: Inputs<'_>) -> Value {
    let (name, scope) = (child.full_name(inputs.object), Scope::of(inputs.object));
    let mut body = json!({
        "apiVersion": child.kind.api_version(), "kind": child.kind.as_str(),
        "metadata": {"name": name, "labels": {"example.com/version": inputs.version.as_str()}},
    });
    if scope == Scope::Cluster && !child.namespace(scope).is_empty() {
        body["metadata"]["namespace"] = child.namespace(scope).into();
    }
    if let Some(followed) = inputs.followed {
        body["metadata"]["annotations"] = json!({"example.com/followed": followed});
    }
    let value = child.value;
    let fields = match child.kind {
        ChildKind::ConfigMap => json!({"data": {"value": value.to_string()}}),
        ChildKind::Secret => json!({"data": {"value": base64(value)}}),
        ChildKind::Service => json!({"spec": {
            "selector": {"app": name}, "ports": [{"name": "http", "port": 8000 + u32::from(value)}],
        }}),
        // The selector cannot change, so some changes of the value need another Deployment.
        ChildKind::Deployment => {
            let labels = json!({"app": name, "half": (value / 4).to_string()});
            json!({"spec": {
                "replicas": value % 4, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": format!("example.com/main:{value}")}]},
                },
            }})
        }
        ChildKind::Job => job(value),
        ChildKind::Widget | ChildKind::ClusterWidget => json!({"spec": {"size": value}}),
    };
    for (field, content) in fields.as_object().into_iter().flatten() {
        body[field] = content.clone();
    }
    if child.extra {
        let (pointer, key, content) = match child.kind {
            ChildKind::ConfigMap => ("data", "extra", json!("yes")),
            ChildKind::Secret => ("data", "extra", json!("eWVz")),
            ChildKind::Service => ("spec", "sessionAffinity", json!("ClientIP")),
            ChildKind::Deployment => ("spec", "minReadySeconds", json!(1)),
            ChildKind::Job => ("spec", "suspend", json!(true)),
            ChildKind::Widget | ChildKind::ClusterWidget => ("spec", "colour", json!("red")),
        };
        body[pointer][key] = content;
    }
    body
}

/// A Job that completes, or with some values fails. Its template and its completions cannot change, so some changes of the value need
/// another Job.
fn job(value: u8) -> Value {
    let command = if value % 4 == 3 { "false" } else { "true" };
    json!({"spec": {
        "parallelism": 1 + value % 2, "completions": 1 + value / 4, "backoffLimit": 1,
        "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "example.com/main", "command": [command]}],
        }},
    }})
}

fn desired(child: &ChildSpec, place: usize, inputs: Inputs<'_>) -> Child {
    Child {
        object: body(child, inputs).to_string(),
        on_immutable: ImmutablePolicy::Recreate,
        on_removal: if child.keep { RemovalPolicy::Keep } else { RemovalPolicy::Delete },
        unmanaged_fields: Vec::new(),
        handling: Handling::Apply,
        after: inputs
            .version
            .awaited(child, place)
            .and_then(|awaited| u32::try_from(awaited).ok())
            .into_iter()
            .collect(),
    }
}

/// Whether a child is a Deployment whose Pods are all available, a Job that has completed, or neither of the two.
pub fn is_available(child: &ChildSpec, inputs: Inputs<'_>) -> bool {
    match child.kind {
        ChildKind::Deployment => live(child, inputs).is_some_and(|live| {
            let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
            number("/status/observedGeneration") >= number("/metadata/generation")
                && number("/status/availableReplicas") >= number("/spec/replicas")
        }),
        ChildKind::Job => live(child, inputs).is_some_and(|live| has_condition(live, "Complete")),
        _ => true,
    }
}

/// Whether a child is a Job that never completes: it has failed, or is suspended.
pub fn is_stuck(child: &ChildSpec, inputs: Inputs<'_>) -> bool {
    let has_ended = |live: &Value| has_condition(live, "Failed") || has_condition(live, "Suspended");
    child.kind == ChildKind::Job && !is_available(child, inputs) && live(child, inputs).is_some_and(has_ended)
}

/// What there is of a child.
fn live<'a>(child: &ChildSpec, inputs: Inputs<'a>) -> Option<&'a Value> {
    let (name, namespace) = (child.full_name(inputs.object), child.namespace(Scope::of(inputs.object)));
    let is_it = |live: &&&Value| {
        let metadata = &live["metadata"];
        live["kind"] == child.kind.as_str() && metadata["name"] == *name && metadata["namespace"] == namespace
    };
    inputs.children.iter().find(is_it).copied()
}

/// Whether an object has a condition that is true.
pub fn has_condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == name && condition["status"] == "True")
}

/// A byte in base64.
fn base64(value: u8) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = [DIGITS[usize::from(value >> 2)], DIGITS[usize::from((value & 3) << 4)]];
    digits.into_iter().map(char::from).chain(['=', '=']).collect()
}
