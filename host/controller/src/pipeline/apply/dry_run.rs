//! A second opinion on a child that the API server refused: could the same body be created? The API server has no code for "this
//! field cannot change", and answers 500 where an apply has a value of a wrong type. A create that is tried without effect tells
//! one from the other.

use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{applier::Applier, target::Target};
use crate::{object::Incoming, pipeline::check::DesiredChild};

/// What a create would say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DryRun {
    /// The body is fine.
    Creatable,
    /// The body itself is refused.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// Asks the API server whether a child's body could be created, under a name that nobody has.
pub(super) async fn create(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild) -> DryRun {
    let url = format!("{}?dryRun=All&fieldValidation=Strict", target.api.resource_url());
    let request = Request::post(url).header(CONTENT_TYPE, "application/json");
    let Ok(request) = request.body(under_another_name(child).to_string().into_bytes()) else { return DryRun::Unknown };
    match applier.client.request::<Incoming>(request).await {
        Ok(_) => DryRun::Creatable,
        Err(kube::Error::Api(status)) => match status.code {
            400 | 422 => DryRun::Refused,
            // Quotas, which the live child may use up, come after the body.
            403 => DryRun::Creatable,
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
