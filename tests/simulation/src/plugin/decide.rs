//! What the simulated plugin answers: a pure function of an object, its children, what it looked up, and the plugin's version. The
//! properties call it as well, to know what there shall be.

use pilothouse_engine::contract::{Child, ImmutablePolicy, RemovalPolicy, Response, Verdict, Waiting};
use serde_json::{Value, json};

use super::{
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

/// The spec of an object; an empty one where it has none that makes sense.
pub fn spec_of(object: &Value) -> Spec {
    object.get("spec").and_then(|spec| serde_json::from_value(spec.clone()).ok()).unwrap_or_default()
}

/// The answer.
pub fn decide(inputs: Inputs<'_>) -> Response {
    let spec = spec_of(inputs.object);
    if spec.follows.is_some() && inputs.followed.is_none() {
        return Response::verdict(Verdict::Invalid("the ConfigMap that it follows does not exist".to_owned()));
    }
    let wanted: Vec<_> = spec.children.iter().filter(|child| inputs.version.declares(child.kind)).collect();
    let waits = spec.awaits && wanted.iter().any(|child| !is_available(child, inputs));
    let verdict = if waits {
        let message = "a Deployment is not available".to_owned();
        Verdict::Wait(Waiting { reason: "Rollout".to_owned(), message, seconds: 60 })
    } else {
        Verdict::Done
    };
    let status = json!({"children": wanted.len(), "followed": inputs.followed});
    Response {
        children: Some(wanted.iter().map(|child| desired(child, inputs)).collect()),
        status: Some(status.to_string()),
        requeue_after: spec.requeue_after,
        ..Response::verdict(verdict)
    }
}

/// The answer for an object that is being deleted: no children, and the object may go.
pub fn finalize() -> Response {
    Response { children: Some(Vec::new()), ..Response::verdict(Verdict::Done) }
}

/// The name of a child.
pub fn name_of(object: &Value, child: &ChildSpec) -> String {
    format!("{}-{}", object["metadata"]["name"].as_str().unwrap_or_default(), child.name)
}

/// The child as JSON, without what the host adds.
pub fn body(child: &ChildSpec, inputs: Inputs<'_>) -> Value {
    let name = name_of(inputs.object, child);
    let mut body = json!({
        "apiVersion": child.kind.api_version(), "kind": child.kind.as_str(),
        "metadata": {"name": name, "labels": {"example.com/version": inputs.version.as_str()}},
    });
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
        ChildKind::Widget => json!({"spec": {"size": value}}),
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
            ChildKind::Widget => ("spec", "colour", json!("red")),
        };
        body[pointer][key] = content;
    }
    body
}

fn desired(child: &ChildSpec, inputs: Inputs<'_>) -> Child {
    Child {
        on_immutable: ImmutablePolicy::Recreate,
        on_removal: if child.keep { RemovalPolicy::Keep } else { RemovalPolicy::Delete },
        ..Child::applied(body(child, inputs).to_string())
    }
}

/// Whether a child is no Deployment, or one whose Pods are all available.
fn is_available(child: &ChildSpec, inputs: Inputs<'_>) -> bool {
    if child.kind != ChildKind::Deployment {
        return true;
    }
    let name = name_of(inputs.object, child);
    let live = inputs.children.iter().find(|live| live["kind"] == "Deployment" && live["metadata"]["name"] == *name);
    live.is_some_and(|live| {
        let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
        number("/status/observedGeneration") >= number("/metadata/generation")
            && number("/status/availableReplicas") >= number("/spec/replicas")
    })
}

/// A byte in base64.
fn base64(value: u8) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = [DIGITS[usize::from(value >> 2)], DIGITS[usize::from((value & 3) << 4)]];
    digits.into_iter().map(char::from).chain(['=', '=']).collect()
}
