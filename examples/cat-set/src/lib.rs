//! A `CatSet` becomes numbered Pods, one after the other, with volumes of their own. The last Pod goes first, and a changed template comes to the
//! last one first.

use std::collections::{BTreeMap, BTreeSet};

use pilothouse_sdk::{
    Condition, Error, Handling, Object, Options, ReadinessStatus, Request, Response,
    k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod},
};
use serde::Deserialize;
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "cat-set",
    reconciles: "ctl.enisoc.com/v1" "CatSet",
    children: ["v1" "Pod", "v1" "PersistentVolumeClaim"],
    reconcile: reconcile,
    finalize: finalize,
}

/// The annotation with the template that a Pod was made of.
const TEMPLATE: &str = "cat-set.example.com/template";

/// What the user asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    replicas: usize,
    service_name: String,
    template: Value,
    #[serde(default)]
    volume_claim_templates: Vec<Value>,
}

/// Makes the next Pod, or takes one away.
///
/// # Errors
/// A child cannot be read.
pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    scale(request, request.object.spec.replicas, Response::done())
}

/// Takes the Pods away one by one.
///
/// # Errors
/// A child cannot be read.
pub fn finalize(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    match request.children::<Pod>()?.len() {
        0 => Ok(Response::done()),
        left => scale(request, 0, Response::wait("Terminating", format!("{left} Pods are left"), 60)),
    }
}

/// One step towards so many Pods of the present template. Only the first `ready` ones have all before them ready.
fn scale(request: &Request<Object<Spec>>, replicas: usize, response: Response) -> Result<Response, Error> {
    let name = request.object.name();
    let template = request.object.spec.template.to_string();
    let number = |pod: &Pod| pod.metadata.name.as_ref()?.rsplit_once('-')?.1.parse::<usize>().ok();
    let pods: BTreeMap<_, _> =
        request.children::<Pod>()?.into_iter().filter_map(|pod| Some((number(&pod)?, pod))).collect();
    let template_of = |number: &usize| pods.get(number)?.metadata.annotations.as_ref()?.get(TEMPLATE);
    let is_old = |number: &usize| pods.contains_key(number) && template_of(number) != Some(&template);
    let readiness = |number: &usize| request.readiness::<Pod>(&format!("{name}-{number}"));
    let is_ready = |number: &usize| readiness(number).is_some_and(|found| found.status == ReadinessStatus::Current);
    let ready = (0..replicas).take_while(is_ready).count();

    let is_surplus = |number: &usize| *number >= replicas || is_old(number);
    let goes = if ready < replicas { Some(ready).filter(is_old) } else { pods.keys().copied().rfind(is_surplus) };
    let mut wanted: BTreeSet<_> = pods.keys().copied().chain((ready < replicas).then_some(ready)).collect();
    goes.map(|number| wanted.remove(&number));

    let said = format!("{ready} of {replicas} Pods are ready");
    let is_done = ready == replicas && goes.is_none();
    let response = response
        .status(json!({ "replicas": pods.len(), "readyReplicas": ready }))
        .condition(Condition::when("Ready", is_done, if is_done { "Ready" } else { "Scaling" }, said));
    let response = wanted.iter().fold(response.no_children(), |response, number| {
        let handling = if is_old(number) { Handling::Keep } else { Handling::Apply };
        response.child_with(pod(&request.object, *number), Options { handling, ..Options::default() })
    });
    claims(request, replicas, response)
}

/// The Pod of a number, with its volumes.
fn pod(object: &Object<Spec>, number: usize) -> Value {
    let (spec, name) = (&object.spec, format!("{}-{number}", object.name()));
    let mut pod = spec.template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["annotations"][TEMPLATE] = json!(spec.template.to_string());
    pod["spec"]["hostname"] = json!(name);
    pod["spec"]["subdomain"] = json!(spec.service_name);
    let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    volumes.extend(spec.volume_claim_templates.iter().map(|template| {
        let volume = template["metadata"]["name"].as_str().unwrap_or_default();
        json!({ "name": volume, "persistentVolumeClaim": { "claimName": format!("{volume}-{name}") } })
    }));
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    pod
}

/// The claims of all Pods, also of those that were there once.
fn claims(request: &Request<Object<Spec>>, replicas: usize, mut response: Response) -> Result<Response, Error> {
    let live = request.children::<PersistentVolumeClaim>()?.into_iter().filter_map(|claim| claim.metadata.name);
    let live: BTreeSet<_> = live.collect();
    for template in &request.object.spec.volume_claim_templates {
        let volume = template["metadata"]["name"].as_str().unwrap_or_default();
        let names = (0..).map(|number| (number, format!("{volume}-{}-{number}", request.object.name())));
        for (_, name) in names.take_while(|(number, name)| *number < replicas || live.contains(name)) {
            let mut claim = template.clone();
            claim["apiVersion"] = json!("v1");
            claim["kind"] = json!("PersistentVolumeClaim");
            claim["metadata"]["name"] = json!(name);
            response = response.child_with(claim, Options { handling: Handling::Create, ..Options::default() });
        }
    }
    Ok(response)
}
