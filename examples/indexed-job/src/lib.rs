//! An `IndexedJob` becomes a Pod for each index, so many at a time, which finds its index in `JOB_INDEX`.

use std::collections::BTreeMap;

use pilothouse_sdk::{Condition, Error, Handling, Object, Options, Request, Response, k8s_openapi::api::core::v1::Pod};
use serde::Deserialize;
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "indexed-job",
    reconciles: "ctl.enisoc.com/v1" "IndexedJob",
    children: ["v1" "Pod"],
    reconcile: reconcile,
}

/// What the user asks for.
#[derive(Deserialize)]
pub struct Spec {
    #[serde(default = "one")]
    completions: usize,
    #[serde(default = "one")]
    parallelism: usize,
    template: Value,
}

fn one() -> usize {
    1
}

/// Makes the next Pods until all have succeeded.
///
/// # Errors
/// A Pod cannot be read.
pub fn reconcile(request: &Request<Object<Spec, Value>>) -> Result<Response, Error> {
    let (job, spec) = (&request.object, &request.object.spec);
    let index = |pod: &Pod| pod.metadata.name.as_ref()?.rsplit_once('-')?.1.parse::<usize>().ok();
    let phase = |pod: Pod| pod.status.and_then(|status| status.phase).unwrap_or_default();
    let pods: BTreeMap<_, _> =
        request.children::<Pod>()?.into_iter().filter_map(|pod| Some((index(&pod)?, phase(pod)))).collect();
    let count = |wanted: &str| pods.values().filter(|phase| *phase == wanted).count();
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    let active = pods.len() - succeeded - failed;

    let written = job.status.as_ref().and_then(|status| status["conditions"].as_array()).into_iter().flatten();
    let was_complete = written.filter(|it| it["type"] == "Complete").any(|it| it["status"] == "True");
    let is_complete = was_complete || succeeded == spec.completions;
    let missing = (0..spec.completions).filter(|index| !is_complete && !pods.contains_key(index));
    let next = missing.take(spec.parallelism.saturating_sub(active));
    // What runs stays as it is.
    let options = Options { handling: Handling::Create, ..Options::default() };
    let response = (pods.keys().copied().chain(next))
        .fold(Response::done().no_children(), |response, index| response.child_with(pod(job, index), options.clone()))
        .condition(Condition::when("Complete", is_complete, if is_complete { "Succeeded" } else { "Running" }, ""));
    // Pods of a job that is complete may be gone by now: its status stays.
    let status = json!({ "active": active, "succeeded": succeeded, "failed": failed });
    Ok(if was_complete { response } else { response.status(status) })
}

/// The Pod of an index.
fn pod(job: &Object<Spec, Value>, index: usize) -> Value {
    let mut pod = job.spec.template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(format!("{}-{index}", job.name()));
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        let mut env = container["env"].as_array().cloned().unwrap_or_default();
        env.push(json!({ "name": "JOB_INDEX", "value": index.to_string() }));
        container["env"] = json!(env);
    }
    pod
}
