//! Patches objects: server-side apply, JSON merge patches and JSON patches.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::{Response, header::CONTENT_TYPE};
use serde_json::Value;

use super::{
    dispatch::Part,
    draft::{Draft, Said, in_version, match_name, match_namespace, take_apart, writer},
    patches,
    update::update_from,
};
use crate::api_server::{
    ApiServer, Call,
    causes::Causes,
    codec::{decode, decode_applied},
    error::{About, ApiError, Cause},
    fields::check_type,
    kinds::Kind,
    managed::{Conflict, How, Managed, apply, update},
    store::Object,
    user::Attributes,
};

impl ApiServer {
    pub(super) fn patch(&mut self, call: &Call<'_>, kind: &Arc<Kind>, part: Part) -> Result<Response<Bytes>, ApiError> {
        check_options(call)?;
        let key = kind.key(call.request.namespace, call.request.name);
        let live = self.store.get(&kind.resource, &key).cloned();
        let content_type = call.http.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match content_type.and_then(|value| value.split(';').next()).unwrap_or_default() {
            "application/apply-patch+yaml" => return self.apply(call, kind, part, live),
            "application/merge-patch+json" | "application/json-patch+json" => {}
            _ => return Err(ApiError::unsupported_media_type()),
        }
        let patch: Value = serde_json::from_slice(call.http.body())
            .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
        let Some(live) = live else { return Err(ApiError::not_found(kind.about(call.request.name))) };
        let (mut value, said) = patched(&patch, &live, (kind, call.request.query.get("fieldValidation") == "Strict"))?;
        match_namespace(&mut value, call.request.namespace)?;
        match_name(&value, call.request.name)?;
        let managed = said.managed(live.managed.clone(), part);
        let manager = call.manager();
        let managed = update_from(&live, &value, managed, &writer((&manager, call.now), kind, part), kind);
        let updated = self.update(call, &live, Draft { value, version: said.version, managed }, (kind, part))?;
        Ok(self.respond_updated(&updated, kind))
    }

    fn apply(
        &mut self,
        call: &Call<'_>,
        kind: &Arc<Kind>,
        part: Part,
        live: Option<Arc<Object>>,
    ) -> Result<Response<Bytes>, ApiError> {
        // The real server reads YAML, of which JSON is a part. The host sends JSON.
        let mut applied: Value = serde_json::from_slice(call.http.body())
            .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
        if live.is_none() && part == Part::Status {
            return Err(ApiError::not_found(kind.about(call.request.name)));
        }
        let text = |field: &str| applied[field].as_str().unwrap_or_default();
        if text("apiVersion") != &*kind.api_version || text("kind") != &*kind.names.kind {
            let found = format!("{}, Kind={}", text("apiVersion"), text("kind"));
            return Err(ApiError::bad_request(format!("invalid object type: {found}")));
        }
        if !applied["metadata"]["managedFields"].is_null() {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        if let Err(error) = check_type(&applied, &kind.schema) {
            let name = format!("{}/{}; {}", call.request.namespace, call.request.name, kind.names.kind);
            return Err(ApiError::plain(format!("failed to create typed patch object ({name}): {error}")));
        }
        let said = take_apart(&mut applied);
        let manager = call.manager();
        let writer = writer((&manager, call.now), kind, part);
        let before = live.as_ref().map_or(Cow::Borrowed(&kind.empty), |live| in_version(live, kind));
        let mut managed = live.as_ref().map(|live| live.managed.clone()).unwrap_or_default();
        if managed.entries().is_empty() && live.is_some() {
            let first = crate::api_server::managed::Writer { manager: "before-first-apply", ..writer };
            managed = update(&kind.empty, &before, managed, &first);
        }
        let known = live.as_ref().map(|live| live.revision);
        let how = How {
            force: call.request.query.flag("force"),
            names_another_version: said.names_version && said.version != known,
        };
        let result = apply(&before, &applied, managed, &writer, how).map_err(|conflicts| refuse(&conflicts))?;
        let mut value = match result.object {
            Some(object) => {
                decode_applied(object, kind).map_err(|error| ApiError::plain(format!("failed to convert: {error}")))?
            }
            None => before.into_owned(),
        };
        self.finish_apply(call, (kind, part), live, (&mut value, said, result.managed))
    }

    fn finish_apply(
        &mut self,
        call: &Call<'_>,
        (kind, part): (&Arc<Kind>, Part),
        live: Option<Arc<Object>>,
        (value, said, managed): (&mut Value, Said, Managed),
    ) -> Result<Response<Bytes>, ApiError> {
        let mut value = value.take();
        let Some(live) = live else {
            if let Some(uid) = value["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(ApiError::conflict(kind.about(call.request.name), &why));
            }
            match_namespace(&mut value, call.request.namespace)?;
            match_name(&value, call.request.name)?;
            authorize_create(call, kind)?;
            // What is kept never says a resource version. Only a dry run shows the one that it was given.
            let version = said.version.filter(|_| call.request.query.is_dry_run());
            let created = self.create_from(call, kind, Draft { value, version, managed })?;
            return Ok(self.respond(201, &created, kind));
        };
        match_namespace(&mut value, call.request.namespace)?;
        match_name(&value, call.request.name)?;
        let version = if said.names_version { said.version } else { Some(live.revision) };
        let updated = self.update(call, &live, Draft { value, version, managed }, (kind, part))?;
        Ok(self.respond_updated(&updated, kind))
    }
}

/// An apply that would create needs the right to create.
fn authorize_create(call: &Call<'_>, kind: &Kind) -> Result<(), ApiError> {
    if call.user.may(Attributes::of("create", kind, call.request.namespace, "")) {
        return Ok(());
    }
    let why = format!("User {:?} cannot create resource {:?}", call.user.name, kind.names.plural);
    Err(ApiError::forbidden(kind.about(call.request.name), &why))
}

fn check_options(call: &Call<'_>) -> Result<(), ApiError> {
    let content_type = call.http.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (query, mut causes) = (&call.request.query, Causes::default());
    if content_type.starts_with("application/apply-patch") {
        if query.get("fieldManager").is_empty() {
            causes.required("fieldManager", "is required for apply patch");
        }
    } else if query.has("force") {
        causes.forbidden("force", "may not be specified for non-apply patch");
    }
    if query.get("fieldManager").len() > 128 {
        causes.too_long("fieldManager", 128);
    }
    if causes.is_empty() {
        return Ok(());
    }
    let about = About { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
    Err(ApiError::invalid(about, causes.into_vec()))
}

/// The live object with a patch applied.
fn patched(patch: &Value, live: &Object, (kind, is_strict): (&Kind, bool)) -> Result<(Value, Said), ApiError> {
    let mut value = in_version(live, kind).into_owned();
    value["metadata"]["resourceVersion"] = live.revision.to_string().into();
    if let Some(managed) = touches_managed(patch).then(|| live.managed.to_value()).flatten() {
        value["metadata"]["managedFields"] = managed;
    }
    match patch.as_array() {
        Some(steps) => {
            patches::apply_steps(&mut value, steps).map_err(|error| ApiError::unprocessable(error.to_string()))?
        }
        None if patch.is_object() => json_patch::merge(&mut value, patch),
        None => return Err(ApiError::bad_request("Invalid JSON Patch")),
    }
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    if text("apiVersion") != &*kind.api_version || text("kind") != &*kind.names.kind {
        return Err(ApiError::bad_request("the patch changes the type of the object"));
    }
    let said = take_apart(&mut value);
    let decoded = decode(value, kind).map_err(|error| {
        let cause = Cause::new("FieldValueInvalid", "patch", format!("Invalid value: {error}"));
        ApiError::invalid(About { group: "", resource: "", name: "" }, vec![cause])
    })?;
    if !decoded.unknown.is_empty() && is_strict {
        let cause = Cause::new("FieldValueInvalid", "patch", format!("strict decoding error: {:?}", decoded.unknown));
        return Err(ApiError::invalid(About { group: "", resource: "", name: "" }, vec![cause]));
    }
    Ok((decoded.value, said))
}

/// Whether a patch may change the owners of fields.
fn touches_managed(patch: &Value) -> bool {
    match patch {
        Value::Array(steps) => steps.iter().any(|step| {
            let path = step["path"].as_str().unwrap_or_default();
            path.is_empty() || path == "/metadata" || path.starts_with("/metadata/managedFields")
        }),
        other => !other["metadata"]["managedFields"].is_null(),
    }
}

fn refuse(conflicts: &[Conflict]) -> ApiError {
    let cause = |conflict: &Conflict| {
        let entry = &conflict.entry;
        let subresource = if entry.subresource.is_empty() {
            String::new()
        } else {
            format!(" with subresource {:?}", entry.subresource)
        };
        let version = format!(" using {}", entry.api_version);
        let message = format!("conflict with {:?}{subresource}{version}", entry.manager);
        Cause::new("FieldManagerConflict", conflict.field.clone(), message)
    };
    ApiError::apply_conflict(conflicts.iter().map(cause).collect())
}
