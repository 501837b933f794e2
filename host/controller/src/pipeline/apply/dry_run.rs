//! Finds out by a dry run whether a child that the API server refused could be created. The API server has no status code for "this
//! field is immutable", and answers 500 to an apply with a value of a wrong type. If the same body can be created, the body is
//! valid, and only the change is refused. Never creates anything.

use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{applier::Applier, target::Target};
use crate::{object::Incoming, pipeline::check::DesiredChild};

/// The result of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DryRun {
    /// The body could be created.
    Creatable,
    /// The body itself is invalid.
    Refused,
    /// The request failed for another reason.
    Unknown,
}

/// Asks the API server whether a child's body could be created. The name is generated, because the child's own name is taken.
pub(super) async fn create(applier: &Applier<'_>, target: &Target<'_>, child: &DesiredChild) -> DryRun {
    let url = format!("{}?dryRun=All&fieldValidation=Strict", target.api.resource_url());
    let request = Request::post(url).header(CONTENT_TYPE, "application/json");
    let Ok(request) = request.body(under_another_name(child).to_string().into_bytes()) else { return DryRun::Unknown };
    match applier.client.request::<Incoming>(request).await {
        Ok(_) => DryRun::Creatable,
        Err(kube::Error::Api(status)) => match status.code {
            400 | 422 => DryRun::Refused,
            // Admission checks quotas after the validation of the body, and the live child itself may use the quota up.
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
