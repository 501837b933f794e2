//! Test guest: returns whatever the spec of its object says, also what no plugin should ever return. It decides nothing and
//! checks nothing, so that a test alone determines what the host is given.
//!
//! `spec.lookups` are made first, in order; then the guest logs `lookups done` and computes for `spec.compute` units of about a
//! millisecond; then it returns `spec.response`, in which values can be copied from what the lookups found (see `template.rs`).

mod answer;
mod lookups;
mod spec;
mod template;
mod work;

pub use answer::{Answer, Child};
use lookups::{ConfigMap, Found};
use pilothouse_sdk::{Request, Response, log};
pub use spec::{Lookup, Scripted, Spec};
use template::Template;

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "scripted",
    reconciles: "test.pilothouse.dev/v1" "Scripted",
    children: [
        "v1" "ConfigMap", "v1" "Secret", "v1" "Service", "v1" "Pod", "v1" "Namespace",
        "apps/v1" "Deployment", "apps/v1" "StatefulSet", "autoscaling/v2" "HorizontalPodAutoscaler",
        "networking.k8s.io/v1" "NetworkPolicy",
        "rbac.authorization.k8s.io/v1" "Role", "rbac.authorization.k8s.io/v1" "RoleBinding",
        "test.pilothouse.dev/v1" "ScriptedChild",
    ],
    lookups: ["v1" "ConfigMap", "v1" "Secret"],
    orders_children: true,
    reconcile: reconcile,
}

/// Returns `spec.response`.
pub fn reconcile(request: &Request<Scripted>) -> Response {
    respond(request, &request.object.spec.response)
}

/// Returns `spec.finalize`; without one, there shall be no children, and the object may go.
pub fn finalize(request: &Request<Scripted>) -> Response {
    match &request.object.spec.finalize {
        Some(answer) => respond(request, answer),
        None => Response::done().no_children(),
    }
}

fn respond(request: &Request<Scripted>, answer: &Answer) -> Response {
    let spec = &request.object.spec;
    let mut found = Found::default();
    for lookup in &spec.lookups {
        match found.look_up(lookup) {
            Ok(true) => {}
            Ok(false) => {
                if let Some(missing) = &lookup.missing {
                    rest_of_call(spec);
                    return missing.clone().into();
                }
            }
            Err(error) => return Response::invalid(format!("lookup: {error}")),
        }
    }
    rest_of_call(spec);
    let exists = |name: &str| request.readiness::<ConfigMap>(name).is_some();
    Template { found: &found, request }.fill(answer.clone()).in_waves(exists).into()
}

/// What a call does between its lookups and its answer.
fn rest_of_call(spec: &Spec) {
    log::info("lookups done");
    work::compute(spec.compute);
}
