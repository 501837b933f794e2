//! Writes the status through the status subresource, only if it differs. Never touches spec or metadata.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use kube::{Api, api::Patch};
use pilothouse_engine::Fingerprint;
use serde_json::{Map, Value, json};

use super::status::{
    Report, contains_status, desired_status, drops_condition, is_news, keeps_host_condition, same_status,
    with_other_conditions,
};
use crate::{
    client::apply_patch,
    errors::chain,
    events::{Event, STATUS_FIELDS_DROPPED},
    object::{Incoming, Object},
    pipeline::{
        apply::{Failure, FailureReason, applying, delete::Precondition, is_about_field, merging},
        call::inputs::ObjectState,
        work_item::WorkItem,
    },
    raw_json::raw_fields,
    schema::{Schema, prune_status},
};

/// What is known about an object's status from previous reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownStatus {
    /// A desired status with the live status that a write of it led to. They differ if the CRD's schema drops fields or if others
    /// add fields. To write it again would change nothing.
    unattainable: Option<Fingerprint>,
    /// A report with the live status that shows all of it.
    reported: Option<Fingerprint>,
}

impl KnownStatus {
    /// Whether a write of `desired` led to `live` before.
    fn is_unattainable(self, desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
        self.unattainable.is_some_and(|known| known == Fingerprint::of(&(desired, live)))
    }

    /// Whether the object's status is known to show this report. Needs no parsing.
    fn says(self, report: &Report, object: &Object) -> bool {
        self.reported.is_some_and(|reported| reported == Self::fingerprint(report, object))
    }

    fn fingerprint(report: &Report, object: &Object) -> Fingerprint {
        Fingerprint::of(&(report, object.generation, object.status_text()))
    }
}

/// The conditions for a status write.
#[derive(Clone, Copy, Debug)]
pub struct WriteRules {
    /// What is known about the status.
    pub known: KnownStatus,
    /// What must still be true of the object.
    pub precondition: Precondition,
    /// The time for which a status without news is held, if it is.
    pub hold_details: Option<Duration>,
}

/// The result of a status write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// The status was as desired. Carries what to remember.
    Unchanged(KnownStatus),
    /// The status differs in details only, which are held for this time.
    Held(Duration),
    /// The status was written.
    Written {
        /// What to remember.
        known: KnownStatus,
        /// The object after the write; none if the status is not as desired, or if something else changed as well.
        state: Option<ObjectState>,
        /// Whether the answer shows that somebody changed the object in the meantime. The answer goes into the cache, so the watch
        /// event of that change would be outdated and trigger no reconcile.
        changed_meanwhile: bool,
    },
}

/// Writes an object's status if it differs from the desired one.
///
/// # Errors
/// [`Failure`] if the API server refuses the write.
pub async fn write_status(
    item: &WorkItem<'_>,
    object: &Object,
    report: &Report,
    rules: WriteRules,
    undeclared: &mut Option<UndeclaredFields>,
) -> Result<StatusWrite, Failure> {
    let known = rules.known;
    if known.says(report, object) {
        return Ok(StatusWrite::Unchanged(known));
    }
    let live = object.status();
    let desired = desired_status(object, &live, report, item.context.clock.now());
    let desired = drop_undeclared_fields(item, object, report, desired, undeclared);
    if same_status(&desired, &live) || known.is_unattainable(&desired, &live) {
        return Ok(StatusWrite::Unchanged(KnownStatus {
            reported: Some(KnownStatus::fingerprint(report, object)),
            ..known
        }));
    }
    if let Some(left) = rules.hold_details.filter(|_| !is_news(&desired, &live)) {
        return Ok(StatusWrite::Held(left));
    }
    let (after, taken) = write_conditions(item, object, &desired, &live, rules.precondition).await?;
    // Additional fields are no fault of the schema: somebody else may own them.
    if !contains_status(&desired, &taken) {
        tracing::warn!(
            kind = %item.plugin.objects.kind(),
            "the status schema of the CustomResourceDefinition does not take every field; see that it has \
             observedGeneration, conditions and the plugin's own fields"
        );
    }
    let unattainable = (!same_status(&desired, &taken)).then(|| Fingerprint::of(&(&desired, &taken)));
    let changed_meanwhile = without_status(object) != without_status(&after);
    let as_expected = unattainable.is_none() && !changed_meanwhile;
    let state = as_expected.then(|| ObjectState::shown_by(&item.plugin.projections, &after));
    item.plugin.objects.store().record_write(after);
    Ok(StatusWrite::Written { known: KnownStatus { unattainable, reported: None }, state, changed_meanwhile })
}

/// Writes a status, and once more where a condition of somebody else stands in its way. Gives the object as it is then, and its status.
async fn write_conditions(
    item: &WorkItem<'_>,
    object: &Object,
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    precondition: Precondition,
) -> Result<(Object, Map<String, Value>), Failure> {
    let after = match patch_status(item, object, desired, precondition).await {
        Err(failure) if failure.reason == FailureReason::StatusInvalid && drops_condition(desired, live) => {
            replace_conditions(item, object, with_other_conditions(desired.clone(), live)).await?
        }
        written => {
            let after = written?;
            let taken = after.status();
            if !keeps_host_condition(desired, &taken) {
                return Ok((after, taken));
            }
            replace_conditions(item, &after, with_other_conditions(desired.clone(), &taken)).await?
        }
    };
    let taken = after.status();
    Ok((after, taken))
}

/// Status fields that the kind's schema does not declare. They are left out, because the API server would refuse the whole status.
#[derive(Clone, Debug)]
pub struct UndeclaredFields {
    fields: Vec<String>,
    schema: Schema,
}

impl UndeclaredFields {
    /// Whether the kind has another schema now.
    pub fn is_outdated(&self, schema: Option<&Schema>) -> bool {
        schema.is_none_or(|schema| !schema.is_clone_of(&self.schema))
    }
}

/// Removes the fields that the kind does not declare, and tells each set of those that the plugin asked for once.
fn drop_undeclared_fields(
    item: &WorkItem<'_>,
    object: &Object,
    report: &Report,
    mut status: Map<String, Value>,
    undeclared: &mut Option<UndeclaredFields>,
) -> Map<String, Value> {
    let Some(schema) = item.plugin.objects.schema() else { return status };
    let fields = prune_status(&mut status, Some(&schema));
    if fields.is_empty() {
        *undeclared = None;
        return status;
    }
    item.plugin.objects.recheck_schema();
    let missed: Vec<_> = fields.iter().filter(|field| !is_hosts_own(field, report)).map(String::as_str).collect();
    if !missed.is_empty() && undeclared.as_ref().is_none_or(|before| before.fields != fields) {
        let message = format!(
            "the CustomResourceDefinition declares no {}; the rest of the status is written. Add it to the schema of the status",
            missed.join(", ")
        );
        tracing::warn!(reason = STATUS_FIELDS_DROPPED, "{message}");
        item.record_fault(object, &Event::warning(STATUS_FIELDS_DROPPED, &message));
    }
    *undeclared = Some(UndeclaredFields { fields, schema });
    status
}

/// Whether only the host has put a field into the status: an observed generation, which the conventions of Kubernetes ask for. A kind of
/// somebody else may well do without it, and nobody can be asked to mend that.
fn is_hosts_own(pointer: &str, report: &Report) -> bool {
    let keys: Vec<_> = pointer.split('/').skip(1).collect();
    match keys[..] {
        ["status", "observedGeneration"] => {
            report.status.as_ref().is_none_or(|status| !status.contains_key("observedGeneration"))
        }
        ["status", "conditions", _, "observedGeneration"] => true,
        _ => false,
    }
}

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
    let api = installed.api(&item.host_client(), &object.name.namespace);
    let mut body = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        // With the UID the write fails if the object was replaced by another one of the same name.
        "metadata": {"name": &*object.name.name, "uid": &*object.uid},
        "status": status,
    });
    if precondition == Precondition::SameState {
        body["metadata"]["resourceVersion"] = json!(*object.resource_version);
    }
    let parameters = applying(&plugin.field_manager);
    let written = async { api.patch_status(&object.name.name, &parameters, &apply_patch(&body)?).await };
    match written.await {
        Ok(incoming) => Ok(incoming.into_object(&installed.resource)),
        // The write is tried even without a known status subresource: the CRD may have got one since discovery.
        Err(kube::Error::Api(status)) if status.code == 404 && !installed.has_status => Err(missing()),
        // The CRD may have lost it since. The answer is the same as for an object that is gone, so the object is looked for.
        Err(kube::Error::Api(status)) if status.code == 404 && exists(&api, object).await => Err(missing()),
        Err(error) => {
            // The API server answers 500 to an undeclared field in an apply. Our copy of the schema may be missing or outdated.
            if matches!(&error, kube::Error::Api(status) if status.code == 500) {
                plugin.objects.recheck_schema();
            }
            Err(explain(&error))
        }
    }
}

/// Writes a status without server-side apply, for conditions that somebody else owns as well, such as the controller before this host.
/// An apply removes only what this manager alone owns: a `Stalled` of another one would stay for ever. And where both own the type of a
/// condition but this one its status, it would stay without a status, which no schema of conditions takes: every further apply would be
/// refused.
async fn replace_conditions(
    item: &WorkItem<'_>,
    object: &Object,
    status: Map<String, Value>,
) -> Result<Object, Failure> {
    let plugin = item.plugin;
    let conflict = || Failure::new(FailureReason::Conflict, "the kind is not installed any more".to_owned());
    let installed = plugin.objects.installed().ok_or_else(conflict)?;
    let api = installed.api(&item.host_client(), &object.name.namespace);
    // A list is replaced as a whole, so it must be the one that was seen.
    let body = json!({
        "metadata": {"uid": &*object.uid, "resourceVersion": &*object.resource_version}, "status": status,
    });
    let patched = api.patch_status(&object.name.name, &merging(&plugin.field_manager), &Patch::Merge(&body)).await;
    patched.map(|incoming| incoming.into_object(&installed.resource)).map_err(|error| explain(&error))
}

/// Whether exactly this object exists. Unknown counts as no: then the failure passes for a conflict, and the write is tried again.
async fn exists(api: &Api<Incoming>, object: &Object) -> bool {
    let found = api.get_metadata_opt(&object.name.name).await;
    matches!(found, Ok(Some(found)) if found.metadata.uid.as_deref() == Some(&*object.uid))
}

/// The failure that an error of a status write means.
fn explain(error: &kube::Error) -> Failure {
    let reason = match error {
        kube::Error::Api(status) => match status.code {
            401 | 403 => FailureReason::StatusForbidden,
            // The body names the UID: another object has the name now.
            422 if is_about_field(status, "metadata.uid") => FailureReason::Conflict,
            400 | 422 => FailureReason::StatusInvalid,
            // 404: the object is gone. 409: it has changed since it was observed. The next reconcile observes it again.
            404 | 409 => FailureReason::Conflict,
            429 => FailureReason::TooManyRequests,
            _ => FailureReason::ApiServerError,
        },
        _ => FailureReason::ApiServerUnavailable,
    };
    Failure::new(reason, format!("failed to write the status: {}", chain(error)))
}

/// The fields of an object without its status and resource version, as JSON text by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct FieldsWithoutStatus<'o> {
    top_level: BTreeMap<Cow<'o, str>, Cow<'o, str>>,
    metadata: BTreeMap<String, String>,
}

/// Reads an object's fields; none of an object that is not JSON.
fn without_status(object: &Object) -> FieldsWithoutStatus<'_> {
    let mut found = FieldsWithoutStatus::default();
    for (field, value) in object.text.fields().unwrap_or_default() {
        match &*field {
            "status" => {}
            "metadata" => {
                let fields = raw_fields(&value).unwrap_or_default().into_iter();
                let fields = fields.filter(|(field, _)| field != "resourceVersion");
                found.metadata = fields.map(|(field, value)| (field.into_owned(), value.get().to_owned())).collect();
            }
            _ => {
                found.top_level.insert(field, value);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{Condition, ConditionStatus};

    use super::*;
    use crate::pipeline::{conditions::StatusReason, report::status::Health};

    #[test]
    fn a_status_is_known_to_show_a_report_until_one_of_them_changes() {
        let report = |message: &str| {
            let ready = Condition {
                condition_type: "Ready".to_owned(),
                status: ConditionStatus::IsTrue,
                reason: "Up".to_owned(),
                message: message.to_owned(),
            };
            Report { status: Some(Map::new()), conditions: Some(vec![ready]), health: Health::Applied, throttled: None }
        };
        let object = |generation: i64, status: Value| {
            let text = json!({"metadata": {"resourceVersion": "1"}, "status": status}).to_string();
            Object { generation, text: text.into(), ..Object::sample("ns", "a") }
        };
        let there = object(1, json!({"a": 1}));
        let known =
            KnownStatus { reported: Some(KnownStatus::fingerprint(&report("m"), &there)), ..KnownStatus::default() };
        let throttled = Report { throttled: Some(StatusReason::new("Busy", "m")), ..report("m") };
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
            ("slowed down", throttled, there.clone(), false),
            ("no conditions", unsaid, there.clone(), false),
        ] {
            assert_eq!(known.says(&report, &object), expected, "{name}");
        }
        assert!(!KnownStatus::default().says(&report("m"), &there));
    }

    #[test]
    fn the_observed_generation_is_the_hosts_own_unless_the_plugin_gives_it() {
        let report = |status: Option<Value>| Report {
            status: status.and_then(|status| status.as_object().cloned()),
            conditions: None,
            health: Health::Applied,
            throttled: None,
        };
        for (pointer, status, expected) in [
            ("/status/observedGeneration", None, true),
            ("/status/observedGeneration", Some(json!({"phase": "Up"})), true),
            ("/status/observedGeneration", Some(json!({"observedGeneration": 1})), false),
            ("/status/conditions/3/observedGeneration", Some(json!({"observedGeneration": 1})), true),
            ("/status/conditions/3/message", None, false),
            ("/status/conditions", None, false),
            ("/status/usage/observedGeneration", None, false),
            ("/status", None, false),
        ] {
            assert_eq!(is_hosts_own(pointer, &report(status.clone())), expected, "{pointer} {status:?}");
        }
    }

    #[test]
    fn a_status_for_an_object_that_was_replaced_is_a_conflict() -> Result<(), serde_json::Error> {
        for (field, reason) in
            [("metadata.uid", FailureReason::Conflict), ("status.count", FailureReason::StatusInvalid)]
        {
            let causes = json!([{"reason": "FieldValueInvalid", "message": "", "field": field}]);
            let status = json!({"code": 422, "message": "in its words", "details": {"causes": causes}});
            assert_eq!(explain(&kube::Error::Api(Box::new(serde_json::from_value(status)?))).reason, reason, "{field}");
        }
        Ok(())
    }

    #[test]
    fn a_change_outside_of_the_status_is_noticed() {
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
            assert_eq!(without_status(&before) != without_status(&after), changed, "{:?}", after.text);
        }
    }
}
