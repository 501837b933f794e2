//! Deletes objects: preconditions, finalizers, grace, and what becomes of dependents.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::read::list_text;
use crate::api_server::{
    ApiServer, Call,
    causes::Causes,
    error::{About, ApiError, json_response},
    kinds::{CLEANUP, Gone, Kind, NAMESPACE_FINALIZER},
    selector::Selector,
    store::{Cause, Object},
    time,
};

/// The finalizer that lets an object wait until its dependents are orphans.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer that lets an object wait until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// The UID that the object must have.
    pub(crate) uid: Option<String>,
    /// The resource version that the object must have.
    pub(crate) resource_version: Option<String>,
    /// What becomes of dependents.
    pub(crate) propagation: Option<Propagation>,
    /// How long the object may take to end.
    pub(crate) grace_seconds: Option<i64>,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// What became of a deleted object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone. This was its last state.
    Gone(Arc<Object>),
    /// It waits for something.
    Waits(Arc<Object>),
}

impl ApiServer {
    pub(super) fn delete(&mut self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Bytes>, ApiError> {
        let (options, is_dry_run) = options(call)?;
        let key = kind.key(call.request.namespace, call.request.name);
        let live = self.store.get(&kind.resource, &key).cloned();
        let live = live.ok_or_else(|| ApiError::not_found(kind.about(call.request.name)))?;
        let mut value = live.value.clone();
        self.admit("delete", (call, kind), None, &mut value)?;
        let deleted = self.delete_object(&live, &options, (call.now, &call.cause()), is_dry_run)?;
        Ok(match deleted {
            Deleted::Gone(object) if kind.strategy.gone == Gone::Object => self.respond(200, &object, kind),
            Deleted::Gone(object) => json_response(200, success(&object, kind).to_string().into()),
            Deleted::Waits(object) => self.respond(200, &object, kind),
        })
    }

    pub(super) fn delete_collection(&mut self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Bytes>, ApiError> {
        let (options, is_dry_run) = options(call)?;
        let selector = Selector::parse(&call.request.query, kind, call.request.namespace)?;
        let found: Vec<_> =
            self.store.list(&kind.resource).filter(|object| selector.selects(object)).cloned().collect();
        for object in &found {
            self.delete_object(object, &options, (call.now, &call.cause()), is_dry_run)?;
        }
        let mut metadata = json!({"resourceVersion": self.store.revision().to_string()});
        if kind.is_custom() {
            metadata["continue"] = "".into();
        }
        Ok(json_response(200, list_text(kind, &metadata, &found.iter().collect::<Vec<_>>())))
    }

    /// Deletes an object, or begins to.
    pub(crate) fn delete_object(
        &mut self,
        live: &Arc<Object>,
        options: &DeleteOptions,
        (now, cause): (Timestamp, &Cause),
        is_dry_run: bool,
    ) -> Result<Deleted, ApiError> {
        check_preconditions(live, options)?;
        let grace = (live.kind.strategy.grace)(&live.value, options.grace_seconds);
        if let Some(seconds) = grace.filter(|_| live.is_deleting()) {
            let known = live.metadata("deletionGracePeriodSeconds").as_i64().unwrap_or_default();
            let is_shorter = options.grace_seconds.is_some() && seconds < known;
            if known > 0 && !is_shorter {
                return Ok(Deleted::Waits(live.clone()));
            }
        }
        let mut value = live.value.clone();
        let finalizers = finalizers(live, options);
        set_finalizers(&mut value, &finalizers);
        let waits = !finalizers.is_empty();
        let is_begun = grace.is_some() || waits || self.waits_for_content(live);
        if is_begun {
            mark(&mut value, live, (now, grace.unwrap_or_default()));
            begin_end_of_namespace(&mut value, live);
        }
        let object = Object::new(live.kind.clone(), live.key.clone(), value, live.managed.clone());
        let is_delayed = waits || grace.is_some_and(|seconds| seconds > 0) || self.waits_for_content(live);
        if is_dry_run {
            let object = Arc::new(object.at(live.revision));
            return Ok(if is_delayed { Deleted::Waits(object) } else { Deleted::Gone(object) });
        }
        let mut last = live.clone();
        // What goes at once goes as it is, unless it is one of those that are given time to end.
        let is_written = is_delayed || (grace.is_some() && !live.is_deleting());
        if is_written && is_begun && object.value != live.value {
            last = self.store.put(object, cause);
            self.after_write(Some(live), Some(&last), now);
        }
        if is_delayed {
            return Ok(Deleted::Waits(last));
        }
        Ok(Deleted::Gone(self.remove_object(&last, (now, cause)).unwrap_or(last)))
    }

    /// Takes an object away.
    pub(super) fn remove(&mut self, live: &Arc<Object>, call: &Call<'_>) {
        self.remove_object(live, (call.now, &call.cause()));
    }

    /// Takes an object away.
    pub(crate) fn remove_object(
        &mut self,
        live: &Arc<Object>,
        (now, cause): (Timestamp, &Cause),
    ) -> Option<Arc<Object>> {
        let last = self.store.remove(&live.kind.resource, &live.key, cause);
        self.after_write(Some(live), None, now);
        last
    }

    /// Whether an object can go only once what belongs to it is gone: a namespace.
    pub(super) fn waits_for_content(&self, object: &Object) -> bool {
        *object.kind.resource == *"namespaces"
            && object.value["spec"]["finalizers"]
                .as_array()
                .is_some_and(|list| list.contains(&NAMESPACE_FINALIZER.into()))
    }
}

fn check_preconditions(live: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    let about = live.kind.about_kind(live.name());
    if let Some(uid) = options.uid.as_ref().filter(|uid| *uid != live.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            live.uid()
        );
        return Err(ApiError::conflict(about, &why));
    }
    let version = live.revision.to_string();
    if let Some(wanted) = options.resource_version.as_ref().filter(|wanted| **wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        );
        return Err(ApiError::conflict(about, &why));
    }
    Ok(())
}

/// The finalizers of an object from its deletion on.
fn finalizers(live: &Object, options: &DeleteOptions) -> Vec<String> {
    let mut names: Vec<_> = live.finalizers().map(str::to_owned).collect();
    // Dependents of Events are nobody's business.
    if *live.kind.resource == *"events" {
        names.retain(|name| name != ORPHAN && name != FOREGROUND);
        return names;
    }
    let known = names.iter().find_map(|name| match name.as_str() {
        ORPHAN => Some(Propagation::Orphan),
        FOREGROUND => Some(Propagation::Foreground),
        _ => None,
    });
    let usual = live.kind.strategy.orphans_dependents.then_some(Propagation::Orphan);
    let added = match options.propagation.or(known).or(usual) {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) | None => None,
    };
    if added.is_some_and(|added| names.iter().any(|name| name == added)) && known.is_some() {
        return names;
    }
    names.retain(|name| name != ORPHAN && name != FOREGROUND);
    names.extend(added.map(str::to_owned));
    // A definition stays until its objects are gone.
    if *live.kind.resource == *"customresourcedefinitions.apiextensions.k8s.io" && !live.is_deleting() {
        names.retain(|name| name != CLEANUP);
        names.push(CLEANUP.to_owned());
    }
    names
}

fn set_finalizers(value: &mut Value, names: &[String]) {
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    if names.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(names));
    }
}

/// Marks an object as being deleted.
fn mark(value: &mut Value, live: &Object, (now, grace): (Timestamp, i64)) {
    let metadata = &mut value["metadata"];
    let end = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    if !live.is_deleting() {
        if let Some(generation) = metadata["generation"].as_i64().filter(|generation| *generation > 0) {
            metadata["generation"] = (generation + 1).into();
        }
        metadata["deletionTimestamp"] = time::seconds(end).into();
    } else if live.metadata("deletionGracePeriodSeconds").as_i64().unwrap_or_default() > grace {
        metadata["deletionTimestamp"] = time::seconds(end).into();
    }
    metadata["deletionGracePeriodSeconds"] = grace.into();
}

fn begin_end_of_namespace(value: &mut Value, live: &Object) {
    if *live.kind.resource == *"namespaces" {
        value["status"]["phase"] = "Terminating".into();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("deletionGracePeriodSeconds");
        }
    }
}

/// What a delete answers for most kinds once the object is gone.
fn success(object: &Object, kind: &Kind) -> Value {
    let mut details = json!({"name": object.name(), "kind": &*kind.names.plural, "uid": object.uid()});
    if !kind.names.group.is_empty() {
        details["group"] = (*kind.names.group).into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// The options of a delete, and whether nothing is to be done.
fn options(call: &Call<'_>) -> Result<(DeleteOptions, bool), ApiError> {
    let query = &call.request.query;
    let mut given = if call.http.body().is_empty() {
        json!({})
    } else {
        serde_json::from_slice(call.http.body()).map_err(|error| ApiError::bad_request(error.to_string()))?
    };
    if call.http.body().is_empty() {
        for name in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds"] {
            match query.get(name) {
                "" => {}
                text => given[name] = serde_json::from_str(text).unwrap_or_else(|_| text.into()),
            }
        }
    }
    let mut causes = Causes::default();
    let policy = &given["propagationPolicy"];
    let propagation = match (policy.as_str(), given["orphanDependents"].as_bool()) {
        (Some(_), Some(_)) => {
            causes.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set");
            None
        }
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some(_), _) => {
            causes.not_supported("propagationPolicy", policy, &["Foreground", "Background", "Orphan", "nil"]);
            None
        }
        (None, None) => None,
    };
    let dry_run = given["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
    if dry_run.iter().any(|one| one != "All") {
        causes.not_supported("dryRun", &given["dryRun"], &["All"]);
    }
    if !causes.is_empty() {
        let about = About { group: "meta.k8s.io", resource: "DeleteOptions", name: "" };
        return Err(ApiError::invalid(about, causes.into_vec()));
    }
    let text = |name: &str| given["preconditions"][name].as_str().map(str::to_owned);
    let options = DeleteOptions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        propagation,
        grace_seconds: given["gracePeriodSeconds"].as_i64(),
    };
    Ok((options, !dry_run.is_empty() || query.is_dry_run()))
}
