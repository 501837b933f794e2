//! Requests to which both servers once gave different answers. Random requests lead there seldom.

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, Catalog};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    script::Step,
};

/// The namespace of the objects.
const NAMESPACE: &str = "cases";

/// The type of the body of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// Sends the requests of all cases.
///
/// # Errors
/// If the servers answer differently.
pub async fn run(client: Client) -> Result<()> {
    let mut both = Both::new(client, ApiServer::new(Arc::new(Catalog::new()?)));
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    both.ask(&Step::with("POST", "/api/v1/namespaces", namespace), Compared::Outcome).await?;
    for (case, steps) in [
        ("a Job is kept with the labels of its template only once it is written again", first_write_of_a_job()),
        ("a Job has labels of its own", first_write_of_a_labelled_job()),
        ("the address of a Pod is the first of its addresses", addresses_of_a_pod()),
    ] {
        for step in steps {
            both.ask(&step, Compared::Whole).await.context(case)?;
        }
    }
    Ok(())
}

fn first_write_of_a_job() -> Vec<Step> {
    let nothing = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}});
    let spec = json!({"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}});
    let mut steps = vec![create("/apis/batch/v1", "jobs", &nothing, &spec)];
    // The first is kept, and the second changes nothing.
    steps.extend([apply("/apis/batch/v1", "jobs/plain", &nothing), apply("/apis/batch/v1", "jobs/plain", &nothing)]);
    steps
}

fn first_write_of_a_labelled_job() -> Vec<Step> {
    let nothing = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "labelled"}});
    let mut labelled = nothing.clone();
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let spec = json!({"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}});
    vec![create("/apis/batch/v1", "jobs", &labelled, &spec), apply("/apis/batch/v1", "jobs/labelled", &nothing)]
}

fn addresses_of_a_pod() -> Vec<Step> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    let with = |status: Value| {
        let mut pod = pod.clone();
        pod["status"] = status;
        apply("/api/v1", "pods/a/status", &pod)
    };
    vec![
        create("/api/v1", "pods", &pod, &json!({"containers": [container()]})),
        with(json!({"podIP": "10.1.1.1"})),
        with(json!({})),
        with(json!({"podIP": "10.1.1.2"})),
    ]
}

fn container() -> Value {
    json!({"name": "main", "image": "example.com/main:1"})
}

fn create(group: &str, plural: &str, object: &Value, spec: &Value) -> Step {
    let mut object = object.clone();
    object["spec"] = spec.clone();
    Step::with("POST", &format!("{group}/namespaces/{NAMESPACE}/{plural}"), object)
}

fn apply(group: &str, path: &str, object: &Value) -> Step {
    let uri = format!("{group}/namespaces/{NAMESPACE}/{path}?fieldManager=applier&force=true");
    let mut step = Step::with("PATCH", &uri, object.clone());
    step.content_type = APPLY;
    step
}
