//! Finds out by a dry run whether a child that the API server refused could be created. The API server has no status code for "this
//! field is immutable", and answers 500 to an apply with a value of a wrong type. If the same body can be created, the body is
//! valid, and only the change is refused. Never creates anything.

use http::{Request, header::CONTENT_TYPE};
use kube::core::Status;
use pilothouse_engine::contract::KindRef;
use serde_json::{Value, json};

use super::{applier::Applier, target::Target};
use crate::{
    object::{Incoming, Object},
    pipeline::check::DesiredChild,
};

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DryRun {
    /// The body could be created.
    Creatable,
    /// The body itself is invalid.
    Refused,
    /// A dry run cannot tell: the child claims addresses or ports of the cluster that the live one does not hold.
    Unverifiable,
    /// Admission refuses the body (403), or the host may not create it. A quota that the live child uses up looks the same, so the
    /// answer decides nothing.
    Forbidden(Box<Status>),
    /// The request failed for another reason.
    Unknown,
}

/// Asks the API server whether a child's body could be created once the live child, if there is one, is deleted. The name is
/// generated, because the child's own name is taken.
pub(super) async fn create(
    applier: &Applier<'_>,
    target: &Target<'_>,
    child: &DesiredChild,
    live: Option<&Object>,
) -> DryRun {
    // Strict, because an apply refuses unknown fields, while a create only warns of them by default.
    let mut body = under_another_name(child);
    if let Some(live) = live.filter(|_| child.kind == KindRef::new("v1", "Service"))
        && take_held_claims(&mut body, &serde_json::from_str(&live.text.read()).unwrap_or_default()) == Claims::Others
    {
        return DryRun::Unverifiable;
    }
    let url = format!("{}?dryRun=All&fieldValidation=Strict", target.api.resource_url());
    let request = Request::post(url).header(CONTENT_TYPE, "application/json");
    let Ok(request) = request.body(body.to_string().into_bytes()) else { return DryRun::Unknown };
    match applier.client.request::<Incoming>(request).await {
        Ok(_) => DryRun::Creatable,
        Err(kube::Error::Api(status)) => match status.code {
            // The API server also answers 400 if an admission webhook does not support dry runs. That counts as a refusal, so that
            // nothing is deleted.
            400 | 422 => DryRun::Refused,
            403 => DryRun::Forbidden(status),
            _ => DryRun::Unknown,
        },
        Err(_) => DryRun::Unknown,
    }
}

fn under_another_name(child: &DesiredChild) -> Value {
    let mut body = child.body.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), json!(format!("{}-", child.name.name)));
    }
    body
}

/// What a Service claims that only one Service of the cluster can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    /// Nothing but what the live Service holds, which is free once that is deleted.
    Held,
    /// A cluster IP or a node port that the live Service does not hold. The API server's dry run allocates nothing, so it neither
    /// notices that a port or an address is taken nor that it is out of range.
    Others,
}

/// Removes the cluster IPs and node ports from a Service that the live one holds, because the API server refuses them as long as it
/// does. Says whether others are left.
fn take_held_claims(service: &mut Value, live: &Value) -> Claims {
    let live = &live["spec"];
    let held_ports: Vec<_> = node_ports(live).collect();
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
            if spec.get(field).is_some_and(|claim| live.get(field) == Some(claim)) {
                spec.remove(field);
            }
        }
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        for port in ports.filter_map(Value::as_object_mut) {
            if port.get("nodePort").is_some_and(|port| held_ports.contains(&port)) {
                port.remove("nodePort");
            }
        }
    }
    let left = &service["spec"];
    // A headless Service says `None` in the place of an address, and claims none.
    let is_address = |ip: &Value| ip.as_str().is_some_and(|ip| !ip.is_empty() && ip != "None");
    let has_address =
        is_address(&left["clusterIP"]) || left["clusterIPs"].as_array().is_some_and(|ips| ips.iter().any(is_address));
    let has_others = has_address || left.get("healthCheckNodePort").is_some() || node_ports(left).next().is_some();
    if has_others { Claims::Others } else { Claims::Held }
}

/// The node ports that a Service's spec names. Zero stands for any.
fn node_ports(spec: &Value) -> impl Iterator<Item = &Value> {
    let ports = spec["ports"].as_array().into_iter().flatten().filter_map(|port| port.get("nodePort"));
    ports.filter(|port| port.as_u64() != Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_the_live_service_are_left_out_and_others_are_noticed() {
        let ports = json!([{"port": 80, "nodePort": 30_001}]);
        let live = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30_000, "ports": ports}});
        for (spec, left, claims) in [
            (json!({"ports": ports, "clusterIP": "10.0.0.1"}), json!({"ports": [{"port": 80}]}), Claims::Held),
            (json!({"clusterIP": "None"}), json!({"clusterIP": "None"}), Claims::Held),
            (json!({"clusterIPs": ["None"]}), json!({"clusterIPs": ["None"]}), Claims::Held),
            (json!({"clusterIP": "10.0.0.2"}), json!({"clusterIP": "10.0.0.2"}), Claims::Others),
            (json!({"clusterIPs": ["10.0.0.2"]}), json!({"clusterIPs": ["10.0.0.2"]}), Claims::Others),
            (json!({"ports": [{"nodePort": 30_002}]}), json!({"ports": [{"nodePort": 30_002}]}), Claims::Others),
            (
                json!({"ports": [{"port": 81, "nodePort": 0}]}),
                json!({"ports": [{"port": 81, "nodePort": 0}]}),
                Claims::Held,
            ),
            (json!({"healthCheckNodePort": 30_000}), json!({}), Claims::Held),
            (json!({"healthCheckNodePort": 30_009}), json!({"healthCheckNodePort": 30_009}), Claims::Others),
        ] {
            let mut service = json!({"spec": spec});
            assert_eq!(take_held_claims(&mut service, &live), claims, "{spec}");
            assert_eq!(service["spec"], left, "{spec}");
        }
    }
}
