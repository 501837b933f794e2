//! Creates objects.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::{
    definitions::DEFINITIONS,
    dispatch::Part,
    draft::{Draft, body, convert, in_version, match_namespace, read, take_apart, writer},
};
use crate::api_server::{
    ApiServer, Call,
    admission::{Admitted, admit_write},
    causes::Causes,
    codec::as_kept,
    error::{ApiError, json_response},
    kinds::Kind,
    managed::update,
    metadata,
    store::{Cause, Object},
    time,
};

impl ApiServer {
    pub(super) fn create(&mut self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Bytes>, ApiError> {
        let body = body(call, kind)?;
        let mut value = read(call, kind, body)?;
        let said = take_apart(&mut value);
        wipe(&mut value);
        match_namespace(&mut value, call.request.namespace)?;
        metadata::remove_duplicate_owners(&mut value);
        let managed = said.managed(Default::default(), Part::Main);
        let manager = call.manager();
        let managed = update(&kind.empty, &value, managed, &writer((&manager, call.now), kind, Part::Main));
        let created = self.create_from(call, kind, Draft { value, version: said.version, managed })?;
        Ok(self.respond(201, &created, kind))
    }

    /// Refuses new objects of a kind whose definition is on its way out.
    fn check_definition(&self, kind: &Kind, name: &str) -> Result<(), ApiError> {
        let definition = self.store.get(DEFINITIONS, &kind.resource).filter(|_| kind.is_custom());
        if definition.is_none_or(|definition| !definition.is_deleting()) {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        Err(ApiError::forbidden(kind.about(name), why))
    }

    /// Creates an object, once it is known what it is to be and who owns its fields.
    pub(super) fn create_from(
        &mut self,
        call: &Call<'_>,
        kind: &Arc<Kind>,
        mut draft: Draft,
    ) -> Result<Arc<Object>, ApiError> {
        self.check_definition(kind, draft.value["metadata"]["name"].as_str().unwrap_or_default())?;
        self.admit("create", (call, kind), None, &mut draft.value)?;
        metadata::remove_duplicate_owners(&mut draft.value);
        let has_prefix = self.identify(&mut draft.value, call);
        let is_completed_by_reads = (kind.strategy.is_completed_by_reads)(&draft.value);
        (kind.strategy.prepare_create)(&mut draft.value, kind, &mut self.allocator);
        let name = draft.value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut causes = Causes::default();
        (kind.strategy.validate_new)(&draft.value, kind, &mut causes);
        (kind.strategy.validate)(&draft.value, kind, &mut causes);
        if causes.is_empty() || !kind.strategy.checks_metadata_last {
            metadata::check(&draft.value, kind, &mut causes);
        }
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind.about_kind(&name), causes.into_vec()));
        }
        let key = kind.key(call.request.namespace, &name);
        let is_dry_run = call.request.query.is_dry_run();
        if draft.version.is_some() && !is_dry_run {
            return Err(ApiError::plain("resourceVersion should not be set on objects to be created"));
        }
        if let Some(taken) = self.store.get(&kind.resource, &key) {
            let mut error = ApiError::already_exists(kind.about(&name));
            if has_prefix {
                error.details.get_or_insert_default().retry_after_seconds = 1;
            }
            if taken.is_deleting() {
                error.message = format!("object is being deleted: {}", error.message);
            }
            return Err(error);
        }
        let stored = self.served.stored(&kind.resource).unwrap_or(kind).clone();
        let value = as_kept(convert(draft.value, kind, &stored), &stored);
        let mut object = Object::new(stored, key, value, draft.managed);
        object.is_completed_by_reads = is_completed_by_reads;
        if is_dry_run {
            return Ok(Arc::new(object.at(draft.version.unwrap_or_default())));
        }
        let created = self.store.put(object, &call.cause());
        self.after_write(None, Some(&created), call.now);
        Ok(created)
    }

    /// Asks admission about a write.
    pub(super) fn admit(
        &self,
        verb: &'static str,
        (call, kind): (&Call<'_>, &Kind),
        before: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        let (namespace, user) = (call.request.namespace, &*call.user.name);
        let mut write = Admitted { kind, verb, namespace, user, before, object };
        if verb != "delete" {
            admit_write(&self.store, &mut write)?;
        }
        self.admission.as_ref().map_or(Ok(()), |admission| admission.admit(&mut write))
    }

    /// Gives a new object what makes it this object. Returns whether it has the beginning of a name to be made up.
    fn identify(&mut self, value: &mut Value, call: &Call<'_>) -> bool {
        let uid = self.allocator.uid();
        let metadata = &mut value["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = time::seconds(call.now).into();
        let prefix = metadata["generateName"].as_str().unwrap_or_default().to_owned();
        if !prefix.is_empty() && metadata["name"].as_str().is_none_or(str::is_empty) {
            metadata["name"] = self.allocator.name(&prefix).into();
        }
        !prefix.is_empty()
    }

    /// The response with an object in the version of the request.
    pub(super) fn respond(&self, code: u16, object: &Object, kind: &Kind) -> Response<Bytes> {
        json_response(code, shown_as(object, kind))
    }
}

/// The text of an object in the version of a request.
pub(super) fn shown_as(object: &Object, kind: &Kind) -> Bytes {
    if object.kind.names.version == kind.names.version {
        object.text()
    } else {
        object.shown(&in_version(object, kind))
    }
}

/// Removes what only the server says of a new object.
fn wipe(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(field);
        }
    }
}

impl Call<'_> {
    /// Who makes the change, for the history.
    pub(super) fn cause(&self) -> Cause {
        Cause { user: self.user.name.clone(), verb: self.verb }
    }
}
