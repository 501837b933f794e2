//! A write under way: the object as it is to be, and what its metadata says of the write.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::dispatch::Part;
use crate::api_server::{
    Call,
    codec::{Decoded, as_read, decode},
    error::ApiError,
    fields::Set,
    kinds::Kind,
    managed::{Managed, Writer},
    store::{Object, Revision},
};

/// An object as it is to be.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// The object, without the fields below.
    pub(super) value: Value,
    /// The resource version that the request knows; none if it names none.
    pub(super) version: Option<Revision>,
    /// The owners of its fields.
    pub(super) managed: Managed,
}

/// What the metadata of a body says apart from the object.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// `resourceVersion`; none for zero.
    pub(super) version: Option<Revision>,
    /// Whether it has a `resourceVersion` at all.
    pub(super) names_version: bool,
    /// `managedFields`; none if it is not there.
    pub(super) managed: Option<Value>,
}

/// Takes the resource version and the owners out of an object.
pub(super) fn take_apart(value: &mut Value) -> Said {
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return Said::default() };
    let version = metadata.remove("resourceVersion");
    let names_version = version.is_some();
    let version = version.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty() && *text != "0");
    let version = version.map(|text| text.parse().unwrap_or(Revision::MAX));
    Said { version, names_version, managed: metadata.remove("managedFields") }
}

impl Said {
    /// The owners to begin with: those that the request names, else those of the live object.
    pub(super) fn managed(&self, live: Managed, part: Part) -> Managed {
        let Some(given) = self.managed.as_ref().filter(|_| part == Part::Main) else { return live };
        let is_reset = match given.as_array().map(Vec::as_slice) {
            Some([]) => true,
            Some([only]) => only.as_object().is_some_and(Map::is_empty),
            _ => false,
        };
        if is_reset {
            return Managed::default();
        }
        Managed::parse(given).filter(|given| !given.entries().is_empty()).unwrap_or(live)
    }
}

/// The body of a request as an object.
///
/// # Errors
/// 400 if it is none.
pub(super) fn body(call: &Call<'_>, kind: &Kind) -> Result<Value, ApiError> {
    let value: Value = serde_json::from_slice(call.http.body()).map_err(|error| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error}",
            kind.names.kind
        ))
    })?;
    if value.is_object() { Ok(value) } else { Err(ApiError::bad_request("the object provided is unrecognized")) }
}

/// Reads an object of a kind from a body that says what it is, or leaves it to the path.
///
/// # Errors
/// 400 for another kind, for a wrong type, and for unknown fields where the request wants to know.
pub(super) fn read(call: &Call<'_>, kind: &Kind, mut value: Value) -> Result<Value, ApiError> {
    identify(kind, &mut value)?;
    let Decoded { value, unknown } = decode(value, kind).map_err(|error| error.into_api_error(kind))?;
    if call.request.query.get("fieldValidation") == "Strict" && !unknown.is_empty() {
        let list = unknown.iter().map(|field| format!("unknown field {field:?}")).collect::<Vec<_>>().join(", ");
        let name = &kind.names.kind;
        let message = format!(
            "{name} in version {:?} cannot be handled as a {name}: strict decoding error: {list}",
            kind.names.version
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(value)
}

fn identify(kind: &Kind, value: &mut Value) -> Result<(), ApiError> {
    for (field, expected) in [("apiVersion", &kind.api_version), ("kind", &kind.names.kind)] {
        match value[field].as_str() {
            Some(found) if *found == **expected => {}
            None | Some("") => value[field] = (**expected).into(),
            Some(found) if field == "apiVersion" => {
                return Err(ApiError::bad_request(format!(
                    "the API version in the data ({found}) does not match the expected API version ({expected})"
                )));
            }
            Some(found) => {
                return Err(ApiError::bad_request(format!("{found} in version cannot be handled as a {expected}")));
            }
        }
    }
    Ok(())
}

/// Makes the namespace of an object that of the request.
///
/// # Errors
/// 400 if it names another one.
pub(super) fn match_namespace(value: &mut Value, namespace: &str) -> Result<(), ApiError> {
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    let metadata = &mut value["metadata"];
    let found = metadata["namespace"].as_str().unwrap_or_default();
    if found == namespace {
        return Ok(());
    }
    if namespace.is_empty() {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
        return Ok(());
    }
    if !found.is_empty() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    metadata["namespace"] = namespace.into();
    Ok(())
}

/// Refuses an object with another name than that of the path.
///
/// # Errors
/// 400.
pub(super) fn match_name(value: &Value, name: &str) -> Result<(), ApiError> {
    match value["metadata"]["name"].as_str().unwrap_or_default() {
        found if found == name => Ok(()),
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        found => Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({name})"
        ))),
    }
}

/// Who writes.
pub(super) fn writer<'a>((manager, now): (&'a str, Timestamp), kind: &'a Kind, part: Part) -> Writer<'a> {
    let reset: &Set = match part {
        Part::Main => &kind.reset.main,
        Part::Status => &kind.reset.status,
    };
    Writer {
        manager,
        api_version: &kind.api_version,
        subresource: part.subresource(),
        reset,
        now,
        schema: &kind.schema,
    }
}

/// An object in the version of a request.
pub(super) fn in_version<'o>(object: &'o Object, kind: &Kind) -> Cow<'o, Value> {
    if object.kind.names.version == kind.names.version {
        Cow::Borrowed(&object.value)
    } else {
        let mut value = object.value.clone();
        value["apiVersion"] = (*kind.api_version).into();
        Cow::Owned(as_read(value, kind))
    }
}

/// An object of one version of a kind in another version, in which it is going to be kept.
pub(super) fn convert(mut value: Value, from: &Kind, to: &Kind) -> Value {
    if from.names.version == to.names.version {
        return value;
    }
    value["apiVersion"] = (*to.api_version).into();
    let before = value.clone();
    decode(value, to).map_or(before, |decoded| decoded.value)
}
