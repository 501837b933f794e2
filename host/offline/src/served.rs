//! Objects from files as the API server would serve them and the caches hold them. Checks nothing but what identifies an object.

use kube::api::ApiResource;
use pilothouse_controller::object::{Incoming, Object};
use pilothouse_engine::{ConfigError, contract::KindRef};
use serde_json::{Value, json};

/// The UID of an object that has none.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Where an object is that says no namespace.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Why a plugin cannot be called with an object, a child or a configuration.
#[derive(Debug, thiserror::Error)]
pub enum InvalidObject {
    /// The object is of another kind than the plugin reconciles.
    #[error("the object is a {found}, but the plugin reconciles {reconciled}")]
    OtherKind {
        /// The kind of the object.
        found: KindRef,
        /// The kind of the plugin.
        reconciled: KindRef,
    },
    /// The plugin cannot have this configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It has no metadata.
    #[error("an object without metadata: {0}")]
    NoMetadata(String),
    /// It has no name.
    #[error("an object of kind {0} without metadata.name")]
    NoName(KindRef),
    /// A field that every object has is not of its type.
    #[error("an object that no API server serves: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// The API version and kind of an object; empty texts where they are missing.
pub fn kind_of(object: &Value) -> KindRef {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    KindRef::new(field("apiVersion"), field("kind"))
}

/// Adds the fields that the API server sets on every object, and converts the object as the caches do.
pub(crate) fn as_served(mut object: Value) -> Result<Object, InvalidObject> {
    let kind = kind_of(&object);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(InvalidObject::NoMetadata(object.to_string()));
    };
    if !metadata.get("name").is_some_and(Value::is_string) {
        return Err(InvalidObject::NoName(kind));
    }
    if !kind.is_known_cluster_scoped() {
        metadata.entry("namespace").or_insert_with(|| json!(DEFAULT_NAMESPACE));
    }
    metadata.entry("uid").or_insert_with(|| json!(NO_UID));
    metadata.entry("generation").or_insert_with(|| json!(1));
    Ok(cached(&object)?)
}

/// An object of the API server as the caches hold it.
///
/// # Errors
/// If a field that every object has is not of its type.
pub fn cached(object: &Value) -> Result<Object, serde_json::Error> {
    let kind = kind_of(object);
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        plural: String::new(),
        api_version: kind.api_version,
        kind: kind.kind,
    };
    let incoming: Incoming = serde_json::from_str(&object.to_string())?;
    Ok(incoming.into_object(&resource))
}
