//! Another object has the name of the Service or of the InferencePool: nothing of the model leads to it, and no address is told.

use crate::case::{case, run};
use llm_serving::api::ServingStatus;
use pilothouse_sdk::testing::Case;
use pilothouse_sdk::{Error, Handling, RefusedChild, raw::KindRef};

const OUTSIDE: &str = "ingress: {}, httpRoute: {gateway: {name: public}}";

/// With a child of this kind that could not be written.
fn refused(case: Case, api_version: &str, kind: &str, reason: &str) -> Case {
    case.refused(RefusedChild {
        kind: KindRef { api_version: api_version.to_owned(), kind: kind.to_owned() },
        namespace: Some("ml".to_owned()),
        name: "llmmodel-chat".to_owned(),
        reason: reason.to_owned(),
        message: "no".to_owned(),
    })
}

/// How the children of a kind are treated.
fn handling(case: Case, kinds: [&str; 2]) -> Result<[Option<Handling>; 2], Error> {
    let answer = run(case)?;
    let children = answer.response.children.unwrap_or_default();
    Ok(kinds.map(|kind| {
        let text = format!("\"kind\":\"{kind}\"");
        children.iter().find(|child| child.object.contains(&text)).map(|child| child.handling)
    }))
}

fn with_service(case: Case) -> Case {
    case.child_yaml("{apiVersion: v1, kind: Service, metadata: {name: llmmodel-chat, uid: service}}")
}

#[test]
fn ways_from_outside_lead_only_to_the_models_own_service() -> Result<(), Error> {
    let of = |case| handling(case, ["Ingress", "HTTPRoute"]);
    let (apply, keep) = (Some(Handling::Apply), Some(Handling::Keep));
    assert_eq!(of(with_service(case(OUTSIDE)?))?, [apply, apply]);
    assert_eq!(of(case(OUTSIDE)?)?, [keep, keep], "not made before the Service is, and not removed where it is away");
    assert_eq!(of(refused(case(OUTSIDE)?, "v1", "Service", "NameConflict"))?, [None, None]);
    assert_eq!(of(refused(case(OUTSIDE)?, "v1", "Service", "Forbidden"))?, [keep, keep]);
    let ours = with_service(refused(case(OUTSIDE)?, "v1", "Service", "NameConflict"));
    assert_eq!(of(ours)?, [apply, apply], "what exists is ours");
    Ok(())
}

#[test]
fn a_route_leads_only_to_the_models_own_pool() -> Result<(), Error> {
    let spec = "httpRoute: {gateway: {name: public}}, inferencePool: {endpointPicker: {name: picker}}";
    let of = |case| handling(case, ["InferencePool", "HTTPRoute"]);
    let (apply, keep) = (Some(Handling::Apply), Some(Handling::Keep));
    assert_eq!(of(with_service(case(spec)?))?, [apply, keep]);
    let group = "inference.networking.k8s.io/v1";
    assert_eq!(of(with_service(refused(case(spec)?, group, "InferencePool", "NameConflict")))?, [apply, None]);
    let pool = format!("{{apiVersion: {group}, kind: InferencePool, metadata: {{name: llmmodel-chat, uid: pool}}}}");
    assert_eq!(of(case(spec)?.child_yaml(&pool))?, [apply, apply]);
    Ok(())
}

#[test]
fn an_address_is_told_only_of_the_models_own_service() -> Result<(), Error> {
    let url = |case: Case| -> Result<String, Error> { Ok(run(case)?.status::<ServingStatus>()?.url) };
    assert_eq!(url(with_service(case("")?))?, "http://llmmodel-chat.ml.svc:8000");
    assert_eq!(url(case("")?)?, "");
    assert_eq!(url(refused(case("")?, "v1", "Service", "NameConflict"))?, "");
    Ok(())
}
