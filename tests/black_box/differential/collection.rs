//! Garbage collection in the background, in the foreground and with orphans, and the ends of namespaces: after each request both
//! clusters must come to the same state. Which step the real controllers take first is theirs.

use anyhow::Result;
use fastrand::Rng;
use pilothouse_simulation::api_server::{ApiServer, Catalog};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    script::Step,
    side::Answer,
};

/// The objects. Each can be owned by those before it, so none owns itself.
const OBJECTS: [(&str, &str); 6] = [
    ("configmaps", "a"),
    ("configmaps", "b"),
    ("secrets", "a"),
    ("configmaps", "c"),
    ("secrets", "b"),
    ("secrets", "c"),
];

/// The requests of one script.
const STEPS: usize = 25;

/// Runs one script in a namespace of its own.
///
/// # Errors
/// If the clusters do not come to the same state.
pub async fn run(client: kube::Client, seed: u64) -> Result<()> {
    let namespace = format!("collection-{seed}");
    let mut both = Both::new(client, ApiServer::new(std::sync::Arc::new(Catalog::new()?)));
    let (mut rng, reads) = (Rng::with_seed(seed), reads(&namespace));
    let body = json!({"metadata": {"name": namespace}});
    both.ask(&Step::with("POST", "/api/v1/namespaces", body), Compared::Outcome).await?;
    for _ in 0..STEPS {
        both.ask(&step(&mut rng, &namespace), Compared::Outcome).await?;
        both.settle(&reads, state).await?;
    }
    let path = format!("/api/v1/namespaces/{namespace}");
    both.ask(&Step::with("DELETE", &path, Value::Null), Compared::Outcome).await?;
    both.settle(&reads, state).await?;
    both.ask(&create(&mut rng, &namespace, 0), Compared::Outcome).await?;
    for index in 0..OBJECTS.len() {
        both.ask(&release(&namespace, index), Compared::Outcome).await?;
    }
    both.settle(&reads, state).await
}

fn reads(namespace: &str) -> Vec<String> {
    let path = format!("/api/v1/namespaces/{namespace}");
    vec![format!("{path}/configmaps"), format!("{path}/secrets"), path]
}

fn step(rng: &mut Rng, namespace: &str) -> Step {
    let index = rng.usize(0..OBJECTS.len());
    match rng.u8(0..10) {
        0..5 => create(rng, namespace, index),
        5..8 => delete(rng, namespace, index),
        8 => release(namespace, index),
        _ => {
            let owners = owners(rng, index);
            of_object("PATCH", namespace, index, json!({"metadata": {"ownerReferences": owners}}))
        }
    }
}

fn create(rng: &mut Rng, namespace: &str, index: usize) -> Step {
    let (plural, name) = OBJECTS[index];
    let mut metadata = json!({"name": name, "ownerReferences": owners(rng, index)});
    if rng.u8(0..4) == 0 {
        metadata["finalizers"] = json!(["example.com/hold"]);
    }
    let path = format!("/api/v1/namespaces/{namespace}/{plural}");
    Step::with("POST", &path, json!({"metadata": metadata})).about(plural, name)
}

fn owners(rng: &mut Rng, index: usize) -> Vec<Value> {
    let count = rng.usize(0..=2.min(index));
    let chosen = rng.choose_multiple(OBJECTS[..index].iter(), count);
    let owner = |(plural, name): &(&str, &str)| {
        let kind = if *plural == "secrets" { "Secret" } else { "ConfigMap" };
        json!({
            "apiVersion": "v1", "kind": kind, "name": name, "uid": format!("$uid:{plural}/{name}"),
            "blockOwnerDeletion": rng.bool(),
        })
    };
    chosen.into_iter().map(owner).collect()
}

fn delete(rng: &mut Rng, namespace: &str, index: usize) -> Step {
    let policies = ["Background", "Foreground", "Foreground", "Orphan"];
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if rng.u8(0..5) > 0 {
        options["propagationPolicy"] = policies[rng.usize(0..policies.len())].into();
    }
    of_object("DELETE", namespace, index, options)
}

fn release(namespace: &str, index: usize) -> Step {
    let patch = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"},
        {"op": "remove", "path": "/metadata/finalizers/0"}]);
    let mut step = of_object("PATCH", namespace, index, patch);
    step.content_type = "application/json-patch+json";
    step
}

fn of_object(method: &'static str, namespace: &str, index: usize, body: Value) -> Step {
    let (plural, name) = OBJECTS[index];
    let mut step = Step::with(method, &format!("/api/v1/namespaces/{namespace}/{plural}/{name}"), body);
    step.content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    step.about(plural, name)
}

/// What garbage collection does to objects.
fn state(answer: &Answer) -> Value {
    let of_object = |object: &Value| {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners: Vec<_> =
            owners.map(|owner| json!([owner["kind"], owner["name"], owner["blockOwnerDeletion"]])).collect();
        json!({
            "name": metadata["name"], "owners": owners, "finalizers": metadata["finalizers"],
            "isDeleting": !metadata["deletionTimestamp"].is_null(), "phase": object["status"]["phase"],
            "content": object["spec"]["finalizers"],
        })
    };
    match answer.body["items"].as_array() {
        Some(items) => items.iter().map(of_object).collect(),
        None => json!({"code": answer.code, "object": of_object(&answer.body)}),
    }
}
