//! What is said about one object, and how it is printed. Makes no request.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use pilothouse_controller::{
    api::{Condition, PinStatus, PlanState, Plugin},
    labels,
    object::describe,
    pipeline::LastReconcile,
    readiness::ReadinessRules,
    source::plugin_objects::{AnsweringVersion, AnswersBecause, SEVERAL_VERSIONS, is_unanswered},
};
use serde::Serialize;
use serde_json::Value;

use super::{
    cluster_state::{Child, ClusterState},
    decorators::{DecoratorReport, decorators},
    host, words,
};
use crate::{
    age::{age, age_of},
    table,
};

/// How many Events are shown, the latest ones.
const EVENTS: usize = 8;

/// What is said about an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its kind and name.
    object: String,
    age: String,
    generation: i64,
    observed_generation: Option<i64>,
    /// Its plugin in words.
    plugin: String,
    /// The version of its plugin that answers it; none if that is not known.
    answered_by: Option<AnsweredBy>,
    /// The plugins that decorate it, or have.
    decorators: Vec<DecoratorReport>,
    conditions: Vec<ConditionReport>,
    children: Vec<ChildReport>,
    events: Vec<EventReport>,
    /// What the host remembers of its last reconciles, one for each plugin; none if no host was asked.
    last_reconciles: Option<Vec<LastReconcile>>,
    #[serde(skip)]
    now: Timestamp,
    /// What to look at or to do next.
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredBy {
    /// None if the Plugin does not say which number it has.
    version: Option<String>,
    digest: String,
    /// In words: it is at work, or the object belongs to its canary or is pinned to it.
    because: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionReport {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    /// How long the status has been this one.
    age: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChildReport {
    child: String,
    age: String,
    /// The decorator whose child it is; none if it is the child of the plugin that owns the object.
    decorator: Option<String>,
    /// The version of the plugin that wrote it last; none if an older host did.
    made_by: Option<String>,
    /// Why it is not as its spec says; none if it is.
    obstacle: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventReport {
    age: String,
    r#type: String,
    reason: String,
    count: i32,
    message: String,
}

impl Report {
    /// What is said about an object at this time, with what the host remembers of its last reconciles, if it was asked.
    pub fn of(state: &ClusterState, last_reconciles: Option<Vec<LastReconcile>>, now: Timestamp) -> Self {
        let (metadata, status) = (&state.object["metadata"], &state.object["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let first = state.events.len().saturating_sub(EVENTS);
        Self {
            object: format!("{} {place}{}", state.kind.kind, text(&metadata["name"])),
            age: age_of(&text(&metadata["creationTimestamp"]), now),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            observed_generation: status["observedGeneration"].as_i64(),
            plugin: plugin(state.plugin.as_ref()),
            answered_by: state.answering.as_ref().map(|answering| answered_by(state.plugin.as_ref(), answering)),
            conditions: conditions(status).iter().map(|condition| condition_report(condition, now)).collect(),
            decorators: decorators(state, now),
            children: state.children.iter().map(|child| child_report(child, state, now)).collect(),
            events: state.events[first..].iter().map(|event| event_report(event, now)).collect(),
            last_reconciles,
            now,
            next: next(state),
        }
    }
}

/// For people.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observed = match self.observed_generation {
            Some(observed) if observed == self.generation => String::new(),
            Some(observed) => format!(", of which {observed} is reconciled"),
            None => ", not reconciled yet".to_owned(),
        };
        writeln!(out, "{}: {} old, generation {}{observed}", self.object, self.age, self.generation)?;
        writeln!(out, "plugin: {}", table::printable(&self.plugin))?;
        if let Some(AnsweredBy { version, digest, because }) = &self.answered_by {
            match version {
                Some(version) => {
                    let (version, digest) = (table::printable(version), table::printable(digest));
                    writeln!(out, "answered by: {version} ({digest:.12}), {because}")?;
                }
                None => writeln!(out, "answered by: {:.19}, {because}", table::printable(digest))?,
            }
        }
        for decorator in &self.decorators {
            write!(out, "{decorator}")?;
        }
        writeln!(out)?;
        let conditions = self.conditions.iter();
        let conditions =
            conditions.map(|it| [&it.r#type, &it.status, &it.age, &it.reason, &it.message].map(Clone::clone));
        out.write_str(&table::table(
            ["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"],
            &conditions.collect::<Vec<_>>(),
        ))?;
        writeln!(out)?;
        let state = |child: &ChildReport| child.obstacle.clone().unwrap_or_else(|| "as its spec says".to_owned());
        let children = self.children.iter().map(|child| {
            let parts = child.decorator.iter().chain(&child.made_by).map(String::as_str);
            let made_by = parts.collect::<Vec<_>>().join(" ");
            [child.child.clone(), child.age.clone(), made_by, state(child)]
        });
        out.write_str(&table::table(["CHILD", "AGE", "MADE BY", "STATE"], &children.collect::<Vec<_>>()))?;
        writeln!(out)?;
        let events = self.events.iter().map(|event| {
            let EventReport { age, r#type, reason, count, message } = event;
            [age.clone(), r#type.clone(), reason.clone(), count.to_string(), message.clone()]
        });
        out.write_str(&table::table(["EVENT", "TYPE", "REASON", "COUNT", "MESSAGE"], &events.collect::<Vec<_>>()))?;
        match &self.last_reconciles {
            None => writeln!(out, "\n{}", host::HINT)?,
            Some(none) if none.is_empty() => {
                writeln!(
                    out,
                    "\nThe host remembers no reconcile of it: it does not lead, or has reconciled many others since."
                )?;
            }
            Some(all) => {
                for last in all {
                    write!(out, "\n{}", host::in_words(last, self.now))?;
                }
            }
        }
        for next in &self.next {
            writeln!(out, "\n{}", table::printable(next))?;
        }
        Ok(())
    }
}

fn plugin(plugin: Option<&Plugin>) -> String {
    plugin.map_or_else(|| "none of the Plugins reconciles this kind".to_owned(), words::of_plugin)
}

fn answered_by(plugin: Option<&Plugin>, answering: &AnsweringVersion) -> AnsweredBy {
    let AnsweringVersion { digest, version, because } = answering;
    let because = match because {
        AnswersBecause::Pin if plugin.is_some_and(|plugin| is_missing(plugin, answering)) => {
            "to which it is pinned, and which the host does not have"
        }
        AnswersBecause::AtWork => "which is at work",
        AnswersBecause::Canary => "to whose canary it belongs",
        AnswersBecause::Pin => "to which it is pinned",
    };
    AnsweredBy { version: version.clone(), digest: digest.clone(), because }
}

/// Whether the version to which an object is pinned does not answer it, as far as the `Plugin` tells it.
fn is_missing(plugin: &Plugin, AnsweringVersion { digest, version, .. }: &AnsweringVersion) -> bool {
    pins_of(plugin).is_some_and(|pins| is_unanswered(pins, digest, version.as_deref()))
}

/// What is wrong with its pins.
fn pins_of(plugin: &Plugin) -> Option<&PinStatus> {
    plugin.status.as_ref()?.pins.as_ref()
}

fn conditions(status: &Value) -> Vec<Condition> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}

fn condition_report(condition: &Condition, now: Timestamp) -> ConditionReport {
    ConditionReport {
        r#type: condition.condition_type.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        age: age_of(&condition.last_transition_time, now),
    }
}

fn child_report(child: &Child, state: &ClusterState, now: Timestamp) -> ChildReport {
    let Child { kind, object } = child;
    let decorator = child.decorator().map(str::to_owned);
    let plugin = match &decorator {
        Some(name) => state.decorators.iter().find(|plugin| plugin.name_any() == *name),
        None => state.plugin.as_ref(),
    };
    let declared = plugin.into_iter().filter_map(|plugin| plugin.status.as_ref());
    let rules: ReadinessRules =
        declared.flat_map(|status| status.child_readiness.iter().cloned().map(Into::into)).collect();
    let created = object.text_at("/metadata/creationTimestamp").unwrap_or_default();
    let obstacle = rules.obstacle(kind, object);
    let made_by = object.annotation(labels::MADE_BY);
    ChildReport { child: describe(kind, &object.name), age: age_of(&created, now), decorator, made_by, obstacle }
}

fn event_report(event: &Event, now: Timestamp) -> EventReport {
    EventReport {
        age: event.last_timestamp.as_ref().map(|at| age(at.0, now)).unwrap_or_default(),
        r#type: event.type_.clone().unwrap_or_default(),
        reason: event.reason.clone().unwrap_or_default(),
        count: event.count.unwrap_or(1),
        message: event.message.clone().unwrap_or_default(),
    }
}

/// What is said of versions of a plugin that do not work, or not on this object.
fn of_versions(plugin: &Plugin, answering: Option<&AnsweringVersion>) -> Vec<String> {
    let (name, status) = (plugin.name_any(), plugin.status.as_ref());
    let mut said = Vec::new();
    let plan = status.and_then(|status| status.plan.as_ref()).filter(|plan| plan.state != PlanState::Approved);
    if let Some(plan) = plan {
        let version = &plan.version;
        said.push(format!(
            "Version {version} of its Plugin waits for approval: `pilothouse approve {name}` shows what it would do."
        ));
    }
    let rollout = status.and_then(|status| status.rollout.as_ref()).filter(|rollout| !rollout.goes_on());
    if let Some(rollout) = rollout {
        let why = rollout.message.as_deref().unwrap_or_default();
        said.push(format!("Version {} of its Plugin was taken back: {why}.", rollout.version));
    }
    let is_unanswered = |it: &&AnsweringVersion| it.version.is_none() || is_missing(plugin, it);
    let pinned = answering.filter(|it| it.because == AnswersBecause::Pin).filter(is_unanswered);
    if let (Some(pinned), Some(told)) = (pinned, pins_of(plugin)) {
        let until_when = match &*pinned.digest {
            SEVERAL_VERSIONS => "its pins contradict each other",
            _ => "the version is not there that it is pinned to",
        };
        said.push(format!("It stays as it is while {until_when}: {}", told.message));
    }
    said
}

/// What explains a state that nobody works on, and what to do.
fn next(state: &ClusterState) -> Vec<String> {
    let mut next = Vec::new();
    let annotation = |key: &str| state.object["metadata"]["annotations"][key].as_str();
    if annotation(labels::SUSPENDED) == Some("true") {
        next.push(format!("It is suspended: remove its annotation {} to let its plugin work.", labels::SUSPENDED));
    }
    match &state.plugin {
        None if !state.decorators.is_empty() => {}
        None => next.push(format!(
            "No Plugin reconciles {}: `pilothouse list` shows those that there are. A host may have loaded one from a directory; its \
             children are not shown here.",
            state.kind
        )),
        Some(plugin) if plugin.spec.suspended => next.push(format!("Its Plugin '{}' is suspended.", plugin.name_any())),
        Some(plugin) => next.extend(of_versions(plugin, state.answering.as_ref())),
    }
    for (kind, why) in &state.unknown {
        next.push(format!("Children of kind {} are not shown: {why}", kind.kind));
    }
    if let Some(deleted) = state.object["metadata"]["deletionTimestamp"].as_str() {
        let finalizers = &state.object["metadata"]["finalizers"];
        next.push(format!("It is being deleted since {deleted}, and waits for its finalizers: {finalizers}."));
    }
    next
}
