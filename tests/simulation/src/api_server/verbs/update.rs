//! Changes objects: a replacement as a whole, and what it has in common with a patch.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{
    dispatch::Part,
    draft::{Draft, body, convert, in_version, match_name, match_namespace, read, take_apart, writer},
};
use crate::api_server::{
    ApiServer, Call, allocator::Allocator, causes::Causes, codec::as_kept, error::ApiError, kinds::Kind,
    managed::update, metadata, store::Object,
};

/// What became of an update.
pub(super) enum Updated {
    /// The object is there, changed or not.
    Kept(Arc<Object>),
    /// Its last finalizer is gone, and so is the object. This is what the answer shows.
    Gone(Box<Object>),
}

impl ApiServer {
    pub(super) fn replace(
        &mut self,
        call: &Call<'_>,
        kind: &Arc<Kind>,
        part: Part,
    ) -> Result<Response<Bytes>, ApiError> {
        let body = body(call, kind)?;
        let mut value = read(call, kind, body)?;
        let said = take_apart(&mut value);
        match_namespace(&mut value, call.request.namespace)?;
        match_name(&value, call.request.name)?;
        metadata::remove_duplicate_owners(&mut value);
        let key = kind.key(call.request.namespace, call.request.name);
        let live = self.store.get(&kind.resource, &key).cloned();
        check_uid(&value, live.as_deref(), (call, kind))?;
        let Some(live) = live else {
            if !kind.strategy.create_on_update || part == Part::Status {
                return Err(ApiError::not_found(kind.about(call.request.name)));
            }
            let managed = said.managed(Default::default(), part);
            let manager = call.manager();
            let managed = update(&kind.empty, &value, managed, &writer((&manager, call.now), kind, part));
            let created = self.create_from(
                call,
                kind,
                Draft { value, version: said.version.filter(|_| call.request.query.is_dry_run()), managed },
            )?;
            return Ok(self.respond(201, &created, kind));
        };
        let managed = said.managed(live.managed.clone(), part);
        let manager = call.manager();
        let managed = update_from(&live, &value, managed, &writer((&manager, call.now), kind, part), kind);
        let updated = self.update(call, &live, Draft { value, version: said.version, managed }, (kind, part))?;
        Ok(self.respond_updated(&updated, kind))
    }

    pub(super) fn respond_updated(&self, updated: &Updated, kind: &Kind) -> Response<Bytes> {
        match updated {
            Updated::Kept(object) => self.respond(200, object, kind),
            Updated::Gone(object) => self.respond(200, object, kind),
        }
    }

    /// Changes an object, once it is known what it is to be and who owns its fields.
    pub(super) fn update(
        &mut self,
        call: &Call<'_>,
        live: &Arc<Object>,
        mut draft: Draft,
        (kind, part): (&Arc<Kind>, Part),
    ) -> Result<Updated, ApiError> {
        let name = call.request.name;
        let before = in_version(live, kind);
        // A refusal is said after the checks: policies look at what is about to be kept.
        let admitted = self.admit("update", (call, kind), Some(&before), &mut draft.value);
        metadata::remove_duplicate_owners(&mut draft.value);
        match draft.version {
            None if kind.strategy.unconditional_update => {}
            None => {
                let mut causes = Causes::default();
                causes.invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
                return Err(ApiError::invalid(kind.about(name), causes.into_vec()));
            }
            Some(version) if version == live.revision => {}
            Some(_) => return Err(ApiError::outdated(kind.about(name))),
        }
        match_namespace(&mut draft.value, call.request.namespace)?;
        prepare(&mut draft.value, &before, (kind, part), &mut self.allocator);
        let mut causes = Causes::default();
        metadata::check(&draft.value, kind, &mut causes);
        metadata::check_change(&draft.value, &before, &mut causes);
        match part {
            Part::Main => {
                (kind.strategy.validate)(&draft.value, kind, &mut causes);
                (kind.strategy.validate_update)(&draft.value, &before, kind, &mut causes);
            }
            Part::Status => (kind.strategy.validate_status)(&draft.value, &before, kind, &mut causes),
        }
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind.about_kind(name), causes.into_vec()));
        }
        admitted?;
        let is_same = draft.value == *before;
        let managed = if is_same && draft.managed.is_same_but_for_times(&live.managed) {
            live.managed.clone()
        } else {
            draft.managed
        };
        self.store_update(call, live, (draft.value, managed), (kind, is_same))
    }

    fn store_update(
        &mut self,
        call: &Call<'_>,
        live: &Arc<Object>,
        (value, managed): (Value, crate::api_server::managed::Managed),
        (kind, is_same): (&Arc<Kind>, bool),
    ) -> Result<Updated, ApiError> {
        let is_dry_run = call.request.query.is_dry_run();
        let has_finalizers = value["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let is_over =
            live.is_deleting() && live.metadata("deletionGracePeriodSeconds").as_i64().unwrap_or_default() == 0;
        // What is kept in a version that objects are no longer kept in moves with its next write, whatever that changes.
        let stored = self.served.stored(&live.kind.resource).unwrap_or(&live.kind).clone();
        // What a write in another version says is converted, and what that version does not know is lost, whether or not it changes anything.
        let is_kept = is_same && [kind, &live.kind].iter().all(|known| known.names.version == stored.names.version);
        let value = if is_kept { live.value.clone() } else { as_kept(convert(value, kind, &stored), &stored) };
        let object = Object::new(stored, live.key.clone(), value, managed);
        if is_over && !has_finalizers && !self.waits_for_content(&object) {
            let last = object.at(live.revision);
            if !is_dry_run {
                self.remove(live, call);
            }
            return Ok(Updated::Gone(Box::new(last)));
        }
        if object.value == live.value && object.managed == live.managed && !live.is_completed_by_reads {
            return Ok(Updated::Kept(live.clone()));
        }
        if is_dry_run {
            return Ok(Updated::Kept(Arc::new(object.at(live.revision))));
        }
        let after = self.store.put(object, &call.cause());
        self.after_write(Some(live), Some(&after), call.now);
        Ok(Updated::Kept(after))
    }
}

/// The owners after a write, seen in the version of the request.
pub(super) fn update_from(
    live: &Object,
    value: &Value,
    managed: crate::api_server::managed::Managed,
    writer: &crate::api_server::managed::Writer<'_>,
    kind: &Kind,
) -> crate::api_server::managed::Managed {
    // An object whose owners are not known stays so until somebody applies it.
    if managed.entries().is_empty() {
        return managed;
    }
    if live.kind.names.version == kind.names.version {
        update(&live.value, value, managed, writer)
    } else {
        update(&in_version(live, kind), value, managed, writer)
    }
}

/// Gives a changed object what a change cannot take from it.
fn prepare(new: &mut Value, old: &Value, (kind, part): (&Kind, Part), allocator: &mut Allocator) {
    let copy = |new: &mut Value, field: &str| match old["metadata"].get(field) {
        Some(value) => new["metadata"][field] = value.clone(),
        None => {
            if let Some(metadata) = new["metadata"].as_object_mut() {
                metadata.remove(field);
            }
        }
    };
    copy(new, "generation");
    match part {
        Part::Main => (kind.strategy.prepare_update)(new, old, kind, allocator),
        Part::Status => prepare_status(new, old, kind),
    }
    if new["metadata"]["uid"].as_str().is_none_or(str::is_empty) {
        copy(new, "uid");
    }
    copy(new, "creationTimestamp");
    if old["metadata"].get("deletionTimestamp").is_some() {
        copy(new, "deletionTimestamp");
    }
    if new["metadata"].get("deletionGracePeriodSeconds").is_none() {
        copy(new, "deletionGracePeriodSeconds");
    }
}

/// A write of the status changes the status alone; of built-in kinds also some of the metadata.
fn prepare_status(new: &mut Value, old: &Value, kind: &Kind) {
    if kind.is_custom() {
        let status = new.as_object_mut().and_then(|new| new.remove("status"));
        *new = old.clone();
        if let Some(new) = new.as_object_mut() {
            match status {
                Some(status) => drop(new.insert("status".to_owned(), status)),
                None => drop(new.remove("status")),
            }
        }
        return;
    }
    let status = new["status"].take();
    let mut metadata = new["metadata"].take();
    *new = old.clone();
    let kept = kind.reset.status.below(&crate::api_server::fields::Element::Field("metadata".into()));
    for field in ["labels", "ownerReferences", "deletionTimestamp"] {
        let element = crate::api_server::fields::Element::Field(field.into());
        if kept.is_some_and(|kept| kept.has(&element)) {
            match old["metadata"].get(field) {
                Some(value) => metadata[field] = value.clone(),
                None => drop(metadata.as_object_mut().and_then(|metadata| metadata.remove(field))),
            }
        }
    }
    new["metadata"] = metadata;
    new["status"] = status;
    (kind.strategy.prepare_status)(new, old);
}

/// A UID in the body is a precondition.
fn check_uid(value: &Value, live: Option<&Object>, (call, kind): (&Call<'_>, &Kind)) -> Result<(), ApiError> {
    let wanted = value["metadata"]["uid"].as_str().unwrap_or_default();
    let found = live.map(Object::uid).unwrap_or_default();
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let about = kind.about(call.request.name);
    if live.is_none() && !kind.strategy.create_on_update {
        return Err(ApiError::not_found(about));
    }
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    Err(ApiError::conflict(about, &why))
}
