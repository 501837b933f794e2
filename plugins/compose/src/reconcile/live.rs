//! The children as they live in the cluster. Reads them only.

use pilothouse_sdk::raw;
use serde_json::{Value, json};

/// A child as it lives.
#[derive(Debug)]
pub struct Live {
    /// Its kind.
    pub kind: raw::KindRef,
    /// As much of it as expressions read.
    pub object: Value,
    name: String,
    namespace: Option<String>,
}

/// Reads the children of a request.
pub fn read(children: &[raw::LiveChild]) -> Vec<Live> {
    children.iter().filter_map(|child| serde_json::from_str(&child.object).ok()).map(Live::of).collect()
}

impl Live {
    fn of(object: Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let kind = raw::KindRef {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
        };
        let (name, namespace) = (text("/metadata/name").unwrap_or_default(), text("/metadata/namespace"));
        Self { kind, name, namespace, object }
    }

    /// Whether it is what a desired child is. One that names no namespace is in that of its object, or in none.
    pub fn is(&self, desired: &Value) -> bool {
        let text = |pointer: &str| desired.pointer(pointer).and_then(Value::as_str);
        let is_there = text("/metadata/namespace").is_none_or(|wanted| self.namespace.as_deref() == Some(wanted));
        let is_kind = text("/apiVersion") == Some(self.kind.api_version.as_str())
            && text("/kind") == Some(self.kind.kind.as_str());
        is_kind && is_there && text("/metadata/name") == Some(self.name.as_str())
    }

    /// Whether it is being deleted.
    pub fn is_going(&self) -> bool {
        self.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// What names it, to let it be as it is.
    pub fn untouched(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        json!({"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata})
    }
}
