//! Writes the status, through the status subresource, only if it differs.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use kube::api::Patch;
use pilothouse_engine::Fingerprint;
use serde_json::{Map, Value, json};

use super::status::{Report, desired_status, has_all_of, is_news, same_status};
use crate::{
    errors::chain,
    events::Event,
    object::Object,
    pipeline::{
        apply::{Failure, FailureReason, applying, delete::Precondition},
        call::inputs::ObjectState,
        work_item::WorkItem,
    },
    raw_json::raw_fields,
    schema::{Schema, prune_status},
};

/// What is known of an object's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownStatus {
    /// A status that the API server would not take as it is (a CRD's schema drops fields it does not declare), or to which
    /// others add. Writing it again would change nothing.
    unattainable: Option<Fingerprint>,
    /// A report, and the status that says all of it.
    told: Option<Fingerprint>,
}

impl KnownStatus {
    /// Whether the API server made this of that status before.
    fn is_unattainable(self, desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
        self.unattainable.is_some_and(|known| known == Fingerprint::of(&(desired, live)))
    }

    /// Whether the object's status is known to say this report. Nothing needs to be read for it.
    fn says(self, report: &Report, object: &Object) -> bool {
        self.told.is_some_and(|told| told == Self::told(report, object))
    }

    fn told(report: &Report, object: &Object) -> Fingerprint {
        Fingerprint::of(&(report, object.generation, object.status_text()))
    }
}

/// How a status may be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteRules {
    /// What is known of the status.
    pub known: KnownStatus,
    /// What must still be true of the object.
    pub precondition: Precondition,
    /// How long a status without news has to wait, if it has to.
    pub hold_details: Option<Duration>,
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
        state: Option<ObjectState>,
        /// Whether the answer shows that somebody changed the object meanwhile. The event of that is old news when it comes, and
        /// wakes nobody.
        changed_meanwhile: bool,
    },
}

/// Writes an object's status if it is not as it shall be.
///
/// # Errors
/// [`Failure`] where the API server does not take it.
pub async fn write_status(
    item: &WorkItem<'_>,
    object: &Object,
    report: &Report,
    rules: WriteRules,
    undeclared: &mut Option<Undeclared>,
) -> Result<StatusWrite, Failure> {
    let known = rules.known;
    if known.says(report, object) {
        return Ok(StatusWrite::None(known));
    }
    let live = object.status();
    let desired = desired_status(object, &live, report, item.context.clock.now());
    let desired = without_undeclared(item, object, desired, undeclared);
    if same_status(&desired, &live) || known.is_unattainable(&desired, &live) {
        return Ok(StatusWrite::None(KnownStatus { told: Some(KnownStatus::told(report, object)), ..known }));
    }
    if let Some(left) = rules.hold_details.filter(|_| !is_news(&desired, &live)) {
        return Ok(StatusWrite::Held(left));
    }
    let after = patch_status(item, object, &desired, rules.precondition).await?;
    let taken = after.status();
    if !has_all_of(&desired, &taken) {
        tracing::warn!(
            kind = %item.plugin.objects.kind(),
            "the status schema of the CustomResourceDefinition does not take every field; see that it has \
             observedGeneration, conditions and the plugin's own fields"
        );
    }
    let unattainable = (!same_status(&desired, &taken)).then(|| Fingerprint::of(&(&desired, &taken)));
    let changed_meanwhile = but_for_status(object) != but_for_status(&after);
    let as_expected = unattainable.is_none() && !changed_meanwhile;
    let state = as_expected.then(|| ObjectState::shown_by(&item.plugin.projections, &after));
    item.plugin.objects.store().record_write(after);
    Ok(StatusWrite::Written { known: KnownStatus { unattainable, told: None }, state, changed_meanwhile })
}

/// Fields of a status that its kind does not declare. They are not written, for the API server would refuse all of it.
#[derive(Clone, Debug)]
pub struct Undeclared {
    fields: Vec<String>,
    schema: Schema,
}

impl Undeclared {
    /// Whether the kind has another schema by now.
    pub fn is_outdated(&self, schema: Option<&Schema>) -> bool {
        schema.is_none_or(|schema| !schema.is_clone_of(&self.schema))
    }
}

/// The part of a status that the kind declares. What is left out is told once.
fn without_undeclared(
    item: &WorkItem<'_>,
    object: &Object,
    mut status: Map<String, Value>,
    undeclared: &mut Option<Undeclared>,
) -> Map<String, Value> {
    let Some(schema) = item.plugin.objects.schema() else { return status };
    let fields = prune_status(&mut status, Some(&schema));
    if fields.is_empty() {
        *undeclared = None;
        return status;
    }
    item.plugin.objects.recheck_schema();
    if undeclared.as_ref().is_none_or(|before| before.fields != fields) {
        let message = format!(
            "the CustomResourceDefinition declares no {}; the rest of the status is written. Add it to the schema of the status",
            fields.join(", ")
        );
        tracing::warn!(reason = FIELDS_DROPPED, "{message}");
        item.tell(object, &Event::warning(FIELDS_DROPPED, &message));
    }
    *undeclared = Some(Undeclared { fields, schema });
    status
}

/// The reason under which it is told that the status lacks fields.
const FIELDS_DROPPED: &str = "StatusFieldsDropped";

async fn patch_status(
    item: &WorkItem<'_>,
    object: &Object,
    status: &Map<String, Value>,
    precondition: Precondition,
) -> Result<Object, Failure> {
    let (plugin, kind) = (item.plugin, item.plugin.objects.kind());
    let missing = || {
        let message = format!("{kind} has no status subresource; add it to its CustomResourceDefinition");
        Failure::new(FailureReason::StatusSubresourceMissing, message)
    };
    let installed = plugin.objects.installed().ok_or_else(missing)?;
    let api = installed.api(&item.context.client, &object.name.namespace);
    let mut body = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        // The UID keeps the status off another object of the same name.
        "metadata": {"name": &*object.name.name, "uid": &*object.uid},
        "status": status,
    });
    if precondition == Precondition::SameState {
        body["metadata"]["resourceVersion"] = json!(*object.resource_version);
    }
    let parameters = applying(&plugin.field_manager);
    match api.patch_status(&object.name.name, &parameters, &Patch::Apply(&body)).await {
        Ok(incoming) => Ok(incoming.into_object(&installed.resource)),
        // It may have come since the kind was found, so it is tried.
        Err(kube::Error::Api(status)) if status.code == 404 && !installed.has_status => Err(missing()),
        Err(error) => {
            // The API server answers 500 to a field that the schema does not declare: a schema that is not known yet, or is old.
            if matches!(&error, kube::Error::Api(status) if status.code == 500) {
                plugin.objects.recheck_schema();
            }
            Err(explain(&error))
        }
    }
}

/// Says what an error of a status write means.
fn explain(error: &kube::Error) -> Failure {
    let reason = match error {
        kube::Error::Api(status) => match status.code {
            401 | 403 => FailureReason::StatusForbidden,
            400 | 422 => FailureReason::StatusInvalid,
            404 | 409 => FailureReason::Conflict,
            429 => FailureReason::TooManyRequests,
            _ => FailureReason::ApiServerError,
        },
        _ => FailureReason::ApiServerUnavailable,
    };
    Failure::new(reason, format!("failed to write the status: {}", chain(error)))
}

/// All that an object says apart from its status, as text, by whether it is of its metadata, and field; nothing of one that
/// cannot be read.
fn but_for_status(object: &Object) -> BTreeMap<(bool, Cow<'_, str>), &str> {
    let fields = |text| raw_fields(text).unwrap_or_default().into_iter().map(|(field, value)| (field, value.get()));
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

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{Condition, ConditionStatus};

    use super::*;
    use crate::pipeline::{conditions::StatusReason, report::status::Health};

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
        let slowed = Report { slowed: Some(StatusReason::new("Busy", "m")), ..report("m") };
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
