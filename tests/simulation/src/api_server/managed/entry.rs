//! One entry of `metadata.managedFields`.

use std::{
    cmp::Ordering,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde_json::{Value, json, value::RawValue};

use super::writer::Writer;
use crate::api_server::{fields::Set, time};

/// How a manager came to own fields. The order is that of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// A manager and its fields.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the manager.
    pub manager: Arc<str>,
    /// How it wrote.
    pub operation: Operation,
    /// The version of the kind that it wrote.
    pub api_version: Arc<str>,
    /// The subresource that it wrote; empty for the object itself.
    pub subresource: Arc<str>,
    /// When it wrote last, to the second.
    pub time: Option<Timestamp>,
    /// What it owns.
    pub set: Arc<Set>,
    /// The entry as JSON, once somebody asked for it.
    text: OnceLock<Arc<RawValue>>,
}

impl Entry {
    pub(super) fn new(
        (manager, operation): (&str, Operation),
        api_version: &Arc<str>,
        subresource: &str,
        set: Set,
    ) -> Self {
        Self {
            manager: manager.into(),
            operation,
            api_version: api_version.clone(),
            subresource: subresource.into(),
            time: None,
            set: Arc::new(set),
            text: OnceLock::new(),
        }
    }

    /// Replaces what it owns.
    pub(super) fn set_fields(&mut self, set: Set) {
        self.set = Arc::new(set);
        self.text = OnceLock::new();
    }

    /// Notes that the manager wrote now.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.time = Some(time::to_second(now));
        self.text = OnceLock::new();
    }

    pub(super) fn is_of(&self, writer: &Writer<'_>, operation: Operation) -> bool {
        *self.manager == *writer.manager
            && self.operation == operation
            && *self.subresource == *writer.subresource
            && (operation == Operation::Apply || self.api_version == *writer.api_version)
    }

    pub(super) fn is_same_manager(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    pub(super) fn is_same_but_for_time(&self, other: &Self) -> bool {
        self.is_same_manager(other) && self.api_version == other.api_version && self.set == other.set
    }

    pub(super) fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }

    /// The order in which a server shows entries.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let key = |entry: &Self| (entry.operation, entry.seconds());
        key(self).cmp(&key(other)).then_with(|| {
            let by_version = || self.api_version.cmp(&other.api_version);
            self.manager
                .cmp(&other.manager)
                .then_with(by_version)
                .then_with(|| self.subresource.cmp(&other.subresource))
        })
    }

    /// The entry as JSON text.
    pub fn text(&self) -> &RawValue {
        self.text.get_or_init(|| RawValue::from_string(self.to_text()).unwrap_or_default().into())
    }

    fn to_text(&self) -> String {
        let mut text = String::with_capacity(512);
        text.push_str("{\"apiVersion\":");
        text.push_str(&Value::from(&*self.api_version).to_string());
        text.push_str(",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        text.push_str(&self.set.to_text());
        text.push_str(",\"manager\":");
        text.push_str(&Value::from(&*self.manager).to_string());
        text.push_str(",\"operation\":\"");
        text.push_str(self.operation.as_str());
        text.push('"');
        if !self.subresource.is_empty() {
            text.push_str(",\"subresource\":");
            text.push_str(&Value::from(&*self.subresource).to_string());
        }
        if let Some(time) = self.time {
            text.push_str(",\"time\":\"");
            text.push_str(&time::seconds(time));
            text.push('"');
        }
        text.push('}');
        text
    }

    pub(super) fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("apiVersion").is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let set = value["fieldsV1"].as_object().map(Set::parse).unwrap_or_default();
        let mut entry = Self::new((text("manager"), operation), &text("apiVersion").into(), text("subresource"), set);
        entry.time = text("time").parse().ok();
        Some(entry)
    }

    pub(super) fn to_value(&self) -> Value {
        serde_json::from_str(self.text().get()).unwrap_or_else(|_| json!({}))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_but_for_time(other) && self.time == other.time
    }
}
