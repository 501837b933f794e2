//! Reads objects: one, or pages of many.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{create::shown_as, draft::in_version};
use crate::api_server::{
    ApiServer, Call,
    error::{ApiError, json_response},
    kinds::Kind,
    request::Query,
    selector::Selector,
    store::{Object, Revision},
};

/// Where a list goes on: the resource version of its first page, and the key of the last object of the page before.
struct Continue {
    revision: Revision,
    after: String,
}

impl ApiServer {
    /// An object in a version of its kind, if that is served; else as it is kept.
    pub fn in_version(&self, object: &Arc<Object>, api_version: &str) -> Arc<Object> {
        if *object.kind.api_version == *api_version {
            return object.clone();
        }
        let Some(kind) = self.served.by_kind(api_version, &object.kind.names.kind) else { return object.clone() };
        let value = in_version(object, kind).into_owned();
        let converted = Object::new(kind.clone(), object.key.clone(), value, object.managed.clone());
        Arc::new(converted.at(object.revision))
    }

    pub(super) fn get(&mut self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Bytes>, ApiError> {
        self.check_version(&call.request.query)?;
        let key = kind.key(call.request.namespace, call.request.name);
        let object = self.store.get(&kind.resource, &key);
        let object = object.ok_or_else(|| ApiError::not_found(kind.about(call.request.name)))?;
        Ok(self.respond(200, object, kind))
    }

    pub(super) fn list(&mut self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Bytes>, ApiError> {
        let query = &call.request.query;
        let selector = Selector::parse(query, kind, call.request.namespace)?;
        let go_on = Continue::parse(query)?;
        let wanted = self.check_version(query)?;
        let exact = wanted.filter(|_| query.get("resourceVersionMatch") == "Exact");
        let at = go_on.as_ref().map(|go_on| go_on.revision).or(exact);
        if at.is_some_and(|at| at < self.store.compacted()) {
            return Err(ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result.",
            ));
        }
        let objects: Vec<Arc<Object>> = match at {
            Some(at) if at < self.store.revision() => self.store.list_at(&kind.resource, at),
            _ => self.store.list(&kind.resource).cloned().collect(),
        };
        let revision = at.unwrap_or_else(|| self.store.revision());
        let after = go_on.map(|go_on| go_on.after).unwrap_or_default();
        let is_here =
            |object: &&Arc<Object>| call.request.namespace.is_empty() || object.namespace() == call.request.namespace;
        let rest: Vec<_> = objects.iter().filter(|object| *object.key > *after).filter(is_here).collect();
        // A list from the cache is never paged.
        let is_paged = query.get("resourceVersion") != "0";
        let limit = query.number("limit")?.filter(|limit| *limit > 0 && is_paged);
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let page: Vec<_> = rest.iter().copied().filter(|object| selector.selects(object)).take(limit).collect();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if kind.is_custom() {
            metadata["continue"] = "".into();
        }
        // Whether there is more is asked before anything is selected.
        let is_full = page.len() >= limit && !selector.names_one();
        let remaining = |last: &Arc<Object>| rest.iter().filter(|object| object.key > last.key).count();
        if let Some((remaining @ 1.., last)) = page.last().filter(|_| is_full).map(|last| (remaining(last), last)) {
            metadata["continue"] = Continue { revision, after: last.key.to_string() }.to_text().into();
            if selector.is_empty() {
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        Ok(json_response(200, list_text(kind, &metadata, &page)))
    }

    /// The resource version that a read asks for, which must not be one that is yet to come.
    pub(super) fn check_version(&self, query: &Query) -> Result<Option<Revision>, ApiError> {
        let wanted = match query.get("resourceVersion") {
            "" | "0" => return Ok(None),
            text => text
                .parse::<Revision>()
                .map_err(|_| ApiError::bad_request(format!("invalid resource version: Invalid value: {text:?}")))?,
        };
        if wanted > self.store.revision() {
            return Err(ApiError::too_large_version(wanted, self.store.revision()));
        }
        Ok(Some(wanted))
    }
}

/// The text of a list. The objects of built-in kinds do not say their kind in it.
pub(super) fn list_text(kind: &Kind, metadata: &Value, page: &[&Arc<Object>]) -> Bytes {
    let texts: Vec<_> =
        page.iter().map(|object| if kind.is_custom() { shown_as(object, kind) } else { object.item_text() }).collect();
    let size: usize = texts.iter().map(Bytes::len).sum();
    let mut text = Vec::with_capacity(size + texts.len() + 256);
    let head = format!(
        "{{\"kind\":{:?},\"apiVersion\":{:?},\"metadata\":{metadata},\"items\":[",
        &*kind.names.list_kind, &*kind.api_version
    );
    text.extend_from_slice(head.as_bytes());
    for (index, item) in texts.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]}");
    text.into()
}

impl Continue {
    fn parse(query: &Query) -> Result<Option<Self>, ApiError> {
        let text = query.get("continue");
        if text.is_empty() {
            return Ok(None);
        }
        let parts = text.split_once('.').and_then(|(revision, after)| Some((revision.parse().ok()?, unhex(after)?)));
        let (revision, after) = parts.ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
        Ok(Some(Self { revision, after }))
    }

    fn to_text(&self) -> String {
        let hex: String = self.after.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{hex}", self.revision)
    }
}

fn unhex(text: &str) -> Option<String> {
    let byte = |index: usize| u8::from_str_radix(text.get(index..index + 2)?, 16).ok();
    let bytes: Option<Vec<_>> = (0..text.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}
