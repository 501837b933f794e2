//! Stage 7: says what happened where the user looks. Writes the status, through the status subresource, only if it
//! differs; hands events to the recorder.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use jiff::Timestamp;
use kube::{Client, api::Patch};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    apply::{Failure, applying, is_undeclared_field},
    inputs::State,
    status::{Report, desired_status, is_news, same_status},
};
use crate::{cache::Object, client::chain, members::members, plugin::ActivePlugin};

/// What is known of an object's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownStatus {
    /// A status that the API server would not take as it is: a CRD's schema drops fields it does not declare. Writing it
    /// again would change nothing.
    reduced: Option<u64>,
    /// A report, and the status that says all of it.
    told: Option<u64>,
}

impl KnownStatus {
    /// Whether the API server made this of that status before.
    fn is_reduced(self, desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
        self.reduced.is_some_and(|reduced| reduced == name(&(desired, live)))
    }

    /// Whether the object's status is known to say this report. Nothing needs to be read for it.
    fn says(self, report: &Report, object: &Object) -> bool {
        self.told.is_some_and(|told| told == Self::told(report, object))
    }

    fn told(report: &Report, object: &Object) -> u64 {
        name(&(report, object.generation, status_text(object)))
    }
}

fn name(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether a status was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// It is as it shall be. What to remember of it.
    None(KnownStatus),
    /// It is not, but only in details, which are not to be written yet for so long.
    Held(Duration),
    /// It was.
    Written {
        /// What to remember of it.
        known: KnownStatus,
        /// The object as it is now, if nothing but its status changed, and that as it shall be.
        state: Option<State>,
        /// Whether the answer shows that somebody changed the object meanwhile. The event of that is old news when it comes, and
        /// wakes nobody.
        changed_meanwhile: bool,
    },
}

/// Writes an object's status if it is not as it shall be. Where it is `exact`, only over the very state that was observed.
/// Where details are held, only if it has news.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn write_status(
    client: &Client,
    plugin: &ActivePlugin,
    object: &Object,
    report: &Report,
    known: KnownStatus,
    exact: bool,
    hold_details: Option<Duration>,
) -> Result<StatusWrite, Failure> {
    if known.says(report, object) {
        return Ok(StatusWrite::None(known));
    }
    let live = status_of(object);
    let desired = desired_status(object, &live, report, Timestamp::now());
    if same_status(&desired, &live) || known.is_reduced(&desired, &live) {
        return Ok(StatusWrite::None(KnownStatus { told: Some(KnownStatus::told(report, object)), ..known }));
    }
    if let Some(left) = hold_details.filter(|_| !is_news(&desired, &live)) {
        return Ok(StatusWrite::Held(left));
    }
    let after = patch_status(client, plugin, object, &desired, exact).await?;
    let taken = status_of(&after);
    let reduced = (!same_status(&desired, &taken)).then(|| name(&(&desired, &taken)));
    if reduced.is_some() {
        tracing::warn!(
            kind = %plugin.objects.kind(),
            "the status schema of the CustomResourceDefinition does not take every field; see that it has \
             observedGeneration, conditions and the plugin's own fields"
        );
    }
    let changed_meanwhile = but_for_status(object) != but_for_status(&after);
    let as_expected = reduced.is_none() && !changed_meanwhile;
    let state = as_expected.then(|| State::shown_by(&plugin.excerpts, &after));
    plugin.objects.store().wrote(after);
    Ok(StatusWrite::Written { known: KnownStatus { reduced, told: None }, state, changed_meanwhile })
}

async fn patch_status(
    client: &Client,
    plugin: &ActivePlugin,
    object: &Object,
    status: &Map<String, Value>,
    exact: bool,
) -> Result<Object, Failure> {
    let kind = plugin.objects.kind();
    let failure = |reason, message, passing| Failure { reason, message, passing };
    let missing = || {
        let message = format!("{kind} has no status subresource; add it to its CustomResourceDefinition");
        failure("StatusSubresourceMissing", message, false)
    };
    let installed = plugin.objects.installed().ok_or_else(missing)?;
    let api = installed.api(client, &object.name.namespace);
    let mut body = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        // The UID keeps the status off another object of the same name.
        "metadata": {"name": &*object.name.name, "uid": &*object.uid},
        "status": status,
    });
    if exact {
        body["metadata"]["resourceVersion"] = json!(*object.resource_version);
    }
    let parameters = applying(&plugin.field_manager);
    match api.patch_status(&object.name.name, &parameters, &Patch::Apply(&body)).await {
        Ok(incoming) => Ok(incoming.into_object(&installed.resource)),
        // It may have come since the kind was found, so it is tried.
        Err(kube::Error::Api(status)) if status.code == 404 && !installed.has_status => Err(missing()),
        Err(error) => Err(explain(&error)),
    }
}

/// Says what an error of a status write means.
fn explain(error: &kube::Error) -> Failure {
    let message = format!("failed to write the status: {}", chain(error));
    let (reason, passing) = match error {
        kube::Error::Api(status) if is_undeclared_field(status) => ("StatusInvalid", false),
        kube::Error::Api(status) => match status.code {
            401 | 403 => ("StatusForbidden", false),
            400 | 422 => ("StatusInvalid", false),
            404 | 409 => ("Conflict", true),
            _ => ("ApiServerError", true),
        },
        _ => ("ApiServerUnavailable", true),
    };
    Failure { reason, message, passing }
}

/// All that an object says apart from its status, as text, by whether it is of its metadata, and field; nothing of one that
/// cannot be read.
fn but_for_status(object: &Object) -> BTreeMap<(bool, Cow<'_, str>), &str> {
    let fields = |text| members(text).unwrap_or_default().into_iter().map(|(field, value)| (field, value.get()));
    let (mut all, mut metadata) = (BTreeMap::new(), "");
    for (field, value) in fields(&object.text) {
        match &*field {
            "status" => {}
            "metadata" => metadata = value,
            _ => drop(all.insert((false, field), value)),
        }
    }
    all.extend(
        fields(metadata).filter(|(field, _)| field != "resourceVersion").map(|(field, value)| ((true, field), value)),
    );
    all
}

/// The status that an object has; an object without a readable one has none.
pub(super) fn status_of(object: &Object) -> Map<String, Value> {
    status_text(object).and_then(|status| serde_json::from_str(status).ok()).unwrap_or_default()
}

/// The text of an object's status.
pub(super) fn status_text(object: &Object) -> Option<&str> {
    #[derive(Deserialize)]
    struct Read<'t> {
        #[serde(borrow)]
        status: Option<&'t RawValue>,
    }
    serde_json::from_str::<Read<'_>>(&object.text).ok()?.status.map(RawValue::get)
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{Condition, ConditionStatus};

    use super::{
        super::status::{Health, Why},
        *,
    };

    #[test]
    fn a_status_says_a_report_until_either_of_them_is_another() {
        let report = |message: &str| {
            let ready = Condition {
                condition_type: "Ready".to_owned(),
                status: ConditionStatus::IsTrue,
                reason: "Up".to_owned(),
                message: message.to_owned(),
            };
            Report { status: Some(Map::new()), conditions: Some(vec![ready]), health: Health::Applied, slowed: None }
        };
        let object = |generation: i64, status: Value| {
            let text = json!({"metadata": {"resourceVersion": "1"}, "status": status}).to_string();
            Object { generation, text: text.into(), ..Object::sample("ns", "a") }
        };
        let there = object(1, json!({"a": 1}));
        let known = KnownStatus { told: Some(KnownStatus::told(&report("m"), &there)), ..KnownStatus::default() };
        let slowed = Report { slowed: Some(Why::new("Busy", "m")), ..report("m") };
        let unsaid = Report { conditions: None, ..report("m") };
        for (name, report, object, expected) in [
            ("the same", report("m"), there.clone(), true),
            (
                "another version of the object",
                report("m"),
                Object { resource_version: "2".into(), ..there.clone() },
                true,
            ),
            ("another generation", report("m"), object(2, json!({"a": 1})), false),
            ("another status", report("m"), object(1, json!({"a": 2})), false),
            ("another message", report("n"), there.clone(), false),
            ("slowed down", slowed, there.clone(), false),
            ("no conditions", unsaid, there.clone(), false),
        ] {
            assert_eq!(known.says(&report, &object), expected, "{name}");
        }
        assert!(!KnownStatus::default().says(&report("m"), &there));
    }

    #[test]
    fn a_change_of_anything_but_the_status_is_seen() {
        let object = |text: Value| Object { text: text.to_string().into(), ..Object::sample("ns", "a") };
        let before = object(json!({"metadata": {"resourceVersion": "1", "generation": 1}, "spec": {"a": 1}}));
        for (after, changed) in [
            (
                json!({"metadata": {"resourceVersion": "2", "generation": 1}, "spec": {"a": 1}, "status": {"b": 1}}),
                false,
            ),
            (json!({"metadata": {"resourceVersion": "2", "generation": 2}, "spec": {"a": 2}}), true),
            (json!({"metadata": {"resourceVersion": "2", "generation": 1, "labels": {}}, "spec": {"a": 1}}), true),
            (json!({"metadata": {"resourceVersion": "2", "generation": 1}, "spec": {"a": 1}, "more": 1}), true),
        ] {
            let after = object(after);
            assert_eq!(but_for_status(&before) != but_for_status(&after), changed, "{}", after.text);
        }
    }
}
