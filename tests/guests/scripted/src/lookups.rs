//! Makes the lookups and keeps what they found.

use crate::Lookup;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// What was found, under the words of the lookups: one object for a name, a list of objects for a selector.
#[derive(Debug, Default)]
pub struct Found {
    by_word: BTreeMap<String, Value>,
}

impl Found {
    /// Makes one lookup and keeps what it finds. Whether that is anything.
    ///
    /// # Errors
    /// The lookup is denied, or its kind is not installed.
    pub fn look_up(&mut self, lookup: &Lookup) -> Result<bool, Error> {
        let found = match lookup.kind.as_str() {
            "Secret" => look_up::<Secret>(lookup)?,
            _ => look_up::<ConfigMap>(lookup)?,
        };
        let selector = lookup.selector.as_deref().unwrap_or_default();
        let word = lookup.r#as.as_deref().or(lookup.name.as_deref()).unwrap_or(selector);
        let any = !found.is_null() && found.as_array().is_none_or(|objects| !objects.is_empty());
        self.by_word.insert(word.to_owned(), found);
        Ok(any)
    }

    /// What a lookup found; null if there was none under that word.
    pub fn get(&self, word: &str) -> &Value {
        self.by_word.get(word).unwrap_or(&Value::Null)
    }
}

fn look_up<K: Kind + DeserializeOwned + Into<Value>>(lookup: &Lookup) -> Result<Value, Error> {
    let namespace = lookup.namespace.as_deref();
    Ok(match &lookup.name {
        Some(name) => lookup::get::<K>(namespace, name)?.map_or(Value::Null, Into::into),
        None => {
            let selector = lookup.selector.as_deref().unwrap_or_default();
            let found = if lookup.all_namespaces {
                lookup::select_in_all_namespaces::<K>(selector)?
            } else {
                lookup::select::<K>(namespace, selector)?
            };
            found.into_iter().map(Into::into).collect()
        }
    })
}

/// A `ConfigMap`, with all its fields.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct ConfigMap(Value);

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

impl From<ConfigMap> for Value {
    fn from(object: ConfigMap) -> Self {
        object.0
    }
}

/// A `Deployment`, of which nothing is read.
#[derive(Debug)]
pub struct Deployment;

impl Kind for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

/// A `Secret`, with all its fields.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Secret(Value);

impl Kind for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
}

impl From<Secret> for Value {
    fn from(object: Secret) -> Self {
        object.0
    }
}
