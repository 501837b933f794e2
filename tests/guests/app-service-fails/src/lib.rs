//! Test guest: the plugin `app-service` in a version 0.3.0 that is bad in a way that shows late. It marks the Deployment, and once it sees
//! what it has written, it fails, or waits for ever for an object that asks for that by an annotation.

use app_service::{AppService, deployment};
use pilothouse_sdk::{Error, Kind, Request, Response};
use serde::Deserialize;
use serde_json::Value;

/// The mark of this version.
const MARK: &str = "3";

pilothouse_sdk::plugin! {
    name: "app-service",
    reconciles: "apps.example.com/v1" "AppService",
    children: ["apps/v1" "Deployment", "v1" "Service"],
    reconcile: reconcile,
}

/// How long it waits each time for what never comes.
const SECONDS: u32 = 3600;

/// The Deployment in the cluster.
#[derive(Deserialize)]
#[serde(transparent)]
struct Deployment(Value);

impl Kind for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

/// Says what the reference plugin says, with the mark of this version, until the mark is in the cluster.
///
/// # Errors
/// As the reference plugin.
pub fn reconcile(request: &Request<AppService>) -> Result<Response, Error> {
    let written = request.child::<Deployment>(request.object.name())?;
    if written.is_some_and(|it| it.0["metadata"]["annotations"]["apps.example.com/revision"] == MARK) {
        let waits = request.object.metadata.annotations.get("tests.pilothouse.dev/then").is_some_and(|it| it == "wait");
        return Ok(match waits {
            true => Response::wait("Stuck", "version 0.3.0 waits for what never comes", SECONDS),
            false => Response::invalid("version 0.3.0 does not know what to do with its own Deployment"),
        });
    }
    let failed = |error: serde_json::Error| Error::Write { what: "the Deployment", reason: error.to_string() };
    let mut marked = serde_json::to_value(deployment(&request.object)).map_err(failed)?;
    marked["metadata"]["annotations"]["apps.example.com/revision"] = MARK.into();
    app_service::respond(request, marked)
}
