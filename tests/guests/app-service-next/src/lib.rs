//! Test guest: the plugin `app-service` in version 0.2.0. It differs from the reference plugin only in an annotation and a
//! label of the Deployment, so that a swap can be seen.

use app_service::{AppService, deployment};
use pilothouse_sdk::{Error, Request, Response};

pilothouse_sdk::plugin! {
    name: "app-service",
    reconciles: "apps.example.com/v1" "AppService",
    children: ["apps/v1" "Deployment", "v1" "Service"],
    reconcile: reconcile,
}

/// Says what the reference plugin says, with the marks of this version.
///
/// # Errors
/// As the reference plugin.
pub fn reconcile(request: &Request<AppService>) -> Result<Response, Error> {
    let failed = |error: serde_json::Error| Error::Write { what: "the Deployment", reason: error.to_string() };
    let mut marked = serde_json::to_value(deployment(&request.object)).map_err(failed)?;
    marked["metadata"]["annotations"]["apps.example.com/revision"] = "2".into();
    marked["metadata"]["labels"]["apps.example.com/generation"] = "2".into();
    app_service::respond(request, marked)
}
