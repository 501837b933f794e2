//! Builds answers in the format of the API server, for the proxy to send in its place.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// A failed response, as the API server sends it.
pub fn failure(code: StatusCode, message: &str) -> Response {
    let mut answer = Response::new(Body::from(status(code, message).to_string()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

/// The `Status` object of a failure.
pub fn status(code: StatusCode, message: &str) -> Value {
    let reason = match code {
        StatusCode::GONE => "Expired".to_owned(),
        code => code.canonical_reason().unwrap_or_default().replace(' ', ""),
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": message,
    })
}

/// A watch event, as one line.
pub fn event(event_type: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": event_type, "object": object}))
}
