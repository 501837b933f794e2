//! A `Greeting` becomes a ConfigMap with its text. The smallest plugin that does something, made to be copied.

use pilothouse_sdk::{Condition, Error, Object, Request, Response, json, k8s_openapi::api::core::v1::ConfigMap};
use serde::{Deserialize, Serialize};

pilothouse_sdk::plugin! {
    name: "greeting",
    reconciles: "example.com/v1" "Greeting",
    children: ["v1" "ConfigMap"],
    reconcile: reconcile,
}

/// What the user asks for.
#[derive(Deserialize, Serialize)]
pub struct GreetingSpec {
    /// Who is greeted.
    name: String,
}

/// Says what shall exist for a `Greeting`, and how it is.
///
/// # Errors
/// The live ConfigMap cannot be read.
pub fn reconcile(request: &Request<Object<GreetingSpec>>) -> Result<Response, Error> {
    let greeting = &request.object;
    if greeting.spec.name.is_empty() {
        return Ok(Response::invalid("spec.name is empty: say who is greeted"));
    }
    let text = format!("Hello, {}!", greeting.spec.name);
    let live = request.child::<ConfigMap>(greeting.name())?;
    let is_said = live.and_then(|live| live.data?.get("greeting").cloned()).is_some_and(|said| said == text);
    Ok(Response::done()
        .child(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": greeting.name() },
            "data": { "greeting": text },
        }))
        .status(json!({ "text": text }))
        .condition(Condition::when("Ready", is_said, "Greeted", "")))
}
