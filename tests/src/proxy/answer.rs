//! Answers in the API server's place, in its own words.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// A failure, as the API server would tell it.
pub fn failure(code: StatusCode, message: &str) -> Response {
    let mut answer = Response::new(Body::from(status(code, message).to_string()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

/// The object that tells of a failure.
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

/// An event of a watch, as a line.
pub fn event(event_type: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": event_type, "object": object}))
}
