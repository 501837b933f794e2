//! What decorators have made of one object, and what they told of it last: from their `Plugin`s, the object's own marks, and its Events. Makes
//! no request.

use std::{collections::BTreeSet, fmt};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use pilothouse_controller::{api::Plugin, labels};
use serde::Serialize;

use super::{cluster_state::ClusterState, words};
use crate::{age::age, table};

/// What one decorator has made of an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecoratorReport {
    /// The name of the plugin.
    name: String,
    /// The plugin in words.
    plugin: String,
    /// The labels that it has put on the object, as `KEY=VALUE`.
    labels: Vec<String>,
    /// The annotations.
    annotations: Vec<String>,
    /// How many children it has there.
    children: usize,
    /// The last warning that it gave about the object; none if it gave none of late.
    warning: Option<Warning>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Warning {
    age: String,
    reason: String,
    message: String,
}

/// What decorators have made of an object: those of its kind that there are, and those that have left something on it and are gone.
pub fn decorators(state: &ClusterState, now: Timestamp) -> Vec<DecoratorReport> {
    let metadata = &state.object["metadata"];
    let there = state.decorators.iter().map(Plugin::name_any);
    let marks = metadata["annotations"].as_object().into_iter().flatten();
    let marked = marks.filter_map(|(key, _)| key.strip_suffix(labels::DECORATION)).map(str::to_owned);
    let of_children = state.children.iter().filter_map(|child| child.decorator().map(str::to_owned));
    let names: BTreeSet<_> = there.chain(marked).chain(of_children).collect();
    names.into_iter().map(|name| decorator(state, name, now)).collect()
}

fn decorator(state: &ClusterState, name: String, now: Timestamp) -> DecoratorReport {
    let plugin = match state.decorators.iter().find(|plugin| plugin.name_any() == name) {
        Some(plugin) => words::of_plugin(plugin),
        None => format!("{name}, which none of the Plugins is: it comes from a directory, or is gone"),
    };
    let metadata = &state.object["metadata"];
    let keys = metadata["annotations"][labels::decoration(&name)].as_str().unwrap_or_default();
    let entries = |prefix: &str, field: &str| {
        let of_field = keys.split(' ').filter_map(|key| key.strip_prefix(prefix));
        let value = |key: &str| metadata[field][key].as_str().unwrap_or_default().to_owned();
        of_field.map(|key| format!("{key}={}", value(key))).collect()
    };
    DecoratorReport {
        plugin,
        labels: entries("label:", "labels"),
        annotations: entries("annotation:", "annotations"),
        children: state.children.iter().filter(|child| child.decorator() == Some(&*name)).count(),
        warning: state.events.iter().rev().find(|event| is_warning_of(event, &name)).map(|event| warning(event, now)),
        name,
    }
}

fn is_warning_of(event: &Event, plugin: &str) -> bool {
    event.type_.as_deref() == Some("Warning")
        && event.reporting_component.as_deref() == Some(labels::HOST)
        && event.reporting_instance.as_deref() == Some(plugin)
}

fn warning(event: &Event, now: Timestamp) -> Warning {
    Warning {
        age: event.last_timestamp.as_ref().map(|at| age(at.0, now)).unwrap_or_default(),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
    }
}

/// For people.
impl fmt::Display for DecoratorReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name: _, plugin, labels, annotations, children, warning } = self;
        writeln!(out, "decorated by: {}", table::printable(plugin))?;
        for (what, entries) in [("labels", labels), ("annotations", annotations)] {
            if !entries.is_empty() {
                writeln!(out, "  {what}: {}", table::printable(&entries.join(", ")))?;
            }
        }
        match children {
            0 if labels.is_empty() && annotations.is_empty() => {
                writeln!(out, "  nothing on this object: it does not select it, or wants nothing there")?;
            }
            0 => {}
            children => writeln!(out, "  children: {children}")?,
        }
        if let Some(Warning { age, reason, message }) = warning {
            writeln!(out, "  last warning, {age} ago: {}", table::printable(&format!("{reason}: {message}")))?;
        }
        Ok(())
    }
}
