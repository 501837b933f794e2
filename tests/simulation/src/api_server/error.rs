//! The errors of the API server, as Status objects with the real one's codes, reasons, details and messages, or as plain text where that
//! has no Status. Decides nothing.

use bytes::Bytes;
use http::{Response, StatusCode, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};

/// A request that the server refuses.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: u16,
    /// The word for it.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// The form of the answer.
    pub form: Form,
}

/// The form of an answer that refuses a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A Status object.
    #[default]
    Status,
    /// The message as it is: nobody who knows of Status objects has seen the request.
    Text,
}

/// What an error is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The group of the kind.
    pub group: String,
    /// The kind, or the plural of the resource.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The mistakes, each with its field.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after_seconds: u32,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Its type, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// The field.
    pub field: String,
}

/// The resource of an error: its group and plural, and the name of an object.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The group; empty for the core kinds.
    pub group: &'a str,
    /// The plural, or the kind where the real server uses that.
    pub resource: &'a str,
    /// The name of the object; may be empty.
    pub name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.resource.to_owned() } else { format!("{}.{}", self.resource, self.group) }
    }

    fn details(&self) -> Details {
        let (group, kind, name) = (self.group.to_owned(), self.resource.to_owned(), self.name.to_owned());
        Details { group, kind, name, ..Details::default() }
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, details: None, form: Form::Status }
    }

    fn with(self, details: Details) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// 403 by missing rights or by admission.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let name = if about.name.is_empty() { String::new() } else { format!(" {:?}", about.name) };
        Self::new(403, "Forbidden", format!("{}{name} is forbidden: {why}", about.qualified())).with(about.details())
    }

    /// 404 for an object.
    pub fn not_found(about: About<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} {:?} not found", about.qualified(), about.name)).with(about.details())
    }

    /// 404 for a path that the server does not serve.
    pub fn no_such_path() -> Self {
        Self { form: Form::Text, ..Self::new(404, "NotFound", "404 page not found\n".to_owned()) }
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message).with(Details::default())
    }

    /// 409 because the name is taken.
    pub fn already_exists(about: About<'_>) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {:?} already exists", about.qualified(), about.name))
            .with(about.details())
    }

    /// 409 because somebody else wrote.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::new(409, "Conflict", message).with(about.details())
    }

    /// 409 because the object has changed since it was read.
    pub fn outdated(about: About<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// 409 because other managers own fields.
    pub fn apply_conflict(causes: Vec<Cause>) -> Self {
        let list = causes.iter().map(|cause| format!("{}: {}", cause.message, cause.field)).collect::<Vec<_>>();
        let (count, plural) = (causes.len(), if causes.len() == 1 { "" } else { "s" });
        Self::new(409, "Conflict", format!("Apply failed with {count} conflict{plural}: {}", list.join("\n- ")))
            .with(Details { causes, ..Details::default() })
    }

    /// 410 because the resource version is compacted.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// 415.
    pub fn unsupported_media_type() -> Self {
        let message = "the body of the request was in an unknown format".to_owned();
        Self::new(415, "UnsupportedMediaType", message).with(Details::default())
    }

    /// 422.
    pub fn invalid(about: About<'_>, causes: Vec<Cause>) -> Self {
        let list = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect::<Vec<_>>();
        let list = if let [only] = list.as_slice() { only.clone() } else { format!("[{}]", list.join(", ")) };
        let message = format!("{} {:?} is invalid: {list}", about.qualified(), about.name);
        Self::new(422, "Invalid", message).with(Details { causes, ..about.details() })
    }

    /// 422 without a kind: a patch that cannot be carried out.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message.into()).with(Details::default())
    }

    /// 500.
    pub fn internal(message: &str) -> Self {
        let cause = Cause { reason: "", message: message.to_owned(), field: String::new() };
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .with(Details { causes: vec![cause], ..Details::default() })
    }

    /// 500 for a plain error: no reason, no details.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into())
    }

    /// 504 because the server has not seen that resource version yet.
    pub fn too_large_version(wanted: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        Self::new(504, "Timeout", message).with(Details {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..Details::default()
        })
    }

    /// The same error with one more cause.
    #[must_use]
    pub fn caused_by(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The Status object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }

    /// The response.
    pub fn to_response(&self) -> Response<Bytes> {
        match self.form {
            Form::Status => json_response(self.code, serde_json::to_vec(&self.to_value()).unwrap_or_default().into()),
            Form::Text => response(self.code, "text/plain; charset=utf-8", self.message.clone().into()),
        }
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let texts = [("group", &self.group), ("kind", &self.kind), ("name", &self.name)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let mut details: Map<String, Value> =
            texts.map(|(name, text)| (name.to_owned(), text.as_str().into())).collect();
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_value).collect::<Vec<_>>();
            details.insert("causes".to_owned(), causes.into());
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        details.into()
    }
}

impl Cause {
    /// A mistake in a field.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), field: field.into() }
    }

    fn to_value(&self) -> Value {
        let texts = [("reason", self.reason), ("message", &*self.message), ("field", &*self.field)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        texts.map(|(name, text)| (name.to_owned(), text.into())).collect::<Map<_, Value>>().into()
    }
}

/// A response with JSON in it.
pub fn json_response(code: u16, body: Bytes) -> Response<Bytes> {
    response(code, "application/json", body)
}

fn response(code: u16, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
