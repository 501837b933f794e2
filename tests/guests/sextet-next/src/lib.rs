//! Test guest: the plugin `sextet` in version 0.2.0. It no longer declares the kind Secret, so that its two children of that
//! kind are to go, and marks the ConfigMaps, so that a swap can be seen.

use pilothouse_sdk::{Error, Request, Response};
use serde_json::json;
use sextet::{Sextet, config_maps, finalize, respond, service, service_account};

pilothouse_sdk::plugin! {
    name: "sextet",
    reconciles: "test.pilothouse.dev/v1" "Sextet",
    children: ["v1" "ConfigMap", "v1" "Service", "v1" "ServiceAccount"],
    reconcile: reconcile,
    finalize: finalize,
}

/// Asks for all but the Secrets.
///
/// # Errors
/// A live child cannot be read.
pub fn reconcile(request: &Request<Sextet>) -> Result<Response, Error> {
    let sextet = &request.object;
    let mut config_maps = config_maps(sextet);
    for config_map in &mut config_maps {
        config_map["metadata"]["labels"] = json!({ "test.pilothouse.dev/generation": "2" });
    }
    respond(request, config_maps.into_iter().chain([service(sextet), service_account(sextet)]))
}
