//! Watches: a cursor into the history, and the lines that it has not delivered yet.

use std::sync::Arc;

use bytes::Bytes;
use http::Request as HttpRequest;
use jiff::Timestamp;
use serde_json::json;

use super::{create::shown_as, dispatch::authorize};
use crate::api_server::{
    ApiServer, Call,
    error::ApiError,
    kinds::Kind,
    request::Request,
    selector::Selector,
    store::{Change, Object, Revision},
    user::User,
};

/// How far a watch is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// No change after this revision; none for all changes.
    pub revision: Option<Revision>,
    /// No more lines than these; none for all lines.
    pub lines: Option<usize>,
}

/// A watch under way.
#[derive(Clone, Debug)]
pub struct Watch {
    kind: Arc<Kind>,
    selector: Selector,
    /// What the watch begins with: the objects that exist, or an error.
    first: Vec<Bytes>,
    /// The last revision that it has delivered.
    revision: Revision,
    /// Whether it wants to know how far it is even if nothing happens.
    wants_bookmarks: bool,
    /// Whether an error has ended it.
    is_over: bool,
}

impl Watch {
    /// The last revision whose changes have been delivered.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The kind that it watches.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// Whether it will deliver nothing more, because it ended with an error.
    pub fn is_over(&self) -> bool {
        self.is_over && self.first.is_empty()
    }

    /// Whether the client allows bookmarks.
    pub fn wants_bookmarks(&self) -> bool {
        self.wants_bookmarks
    }
}

impl ApiServer {
    pub(crate) fn begin_watch(
        &mut self,
        now: Timestamp,
        user: &User,
        http: &HttpRequest<Bytes>,
    ) -> Result<Watch, ApiError> {
        let request = Request::parse(http).ok_or_else(ApiError::no_such_path)?;
        let call = Call { now, user, request, verb: "watch", http };
        let kind = self.kind_of(&call)?;
        authorize(&call, &kind)?;
        let query = &call.request.query;
        let mut selector_query = query.clone();
        if !call.request.name.is_empty() {
            selector_query.select_name(call.request.name);
        }
        let selector = Selector::parse(&selector_query, &kind, call.request.namespace)?;
        let wanted = match query.get("resourceVersion") {
            "" | "0" => None,
            text => {
                Some(text.parse::<Revision>().map_err(|_| ApiError::bad_request(format!("Invalid value: {text:?}")))?)
            }
        };
        let wants_bookmarks = query.flag("allowWatchBookmarks");
        let mut watch = Watch { kind, selector, first: Vec::new(), revision: 0, wants_bookmarks, is_over: false };
        match wanted {
            None => {
                watch.revision = self.store.revision();
                let objects = self.store.list(&watch.kind.resource).filter(|object| watch.selector.selects(object));
                watch.first = objects.map(|object| line("ADDED", object, &watch.kind)).collect();
            }
            Some(revision) if revision < self.store.compacted() => {
                let message = format!("too old resource version: {revision} ({})", self.store.compacted());
                let status = ApiError::expired(message).to_value();
                watch.first = vec![format!("{}\n", json!({"type": "ERROR", "object": status})).into()];
                watch.is_over = true;
            }
            Some(revision) => watch.revision = revision,
        }
        Ok(watch)
    }

    /// Whether the kind of a watch is still served as when the watch began.
    pub fn serves(&self, watch: &Watch) -> bool {
        let names = &watch.kind.names;
        let served = self.served.find(&names.group, &names.version, &names.plural);
        served.is_some_and(|served| Arc::ptr_eq(served, &watch.kind))
    }

    /// The lines (JSON, each with a newline at its end) that a watch has not delivered yet.
    pub fn events(&self, watch: &mut Watch, limit: Limit) -> Vec<Bytes> {
        let most = limit.lines.unwrap_or(usize::MAX);
        let count = watch.first.len().min(most);
        let mut lines: Vec<_> = watch.first.drain(..count).collect();
        if watch.is_over || !watch.first.is_empty() {
            return lines;
        }
        for change in self.store.since(watch.revision) {
            if lines.len() >= most || limit.revision.is_some_and(|last| change.revision > last) {
                break;
            }
            watch.revision = change.revision;
            lines.extend(event(watch, change));
        }
        lines
    }

    /// A line that says how far a watch is, if its client allows such lines.
    pub fn bookmark(&self, watch: &Watch) -> Option<Bytes> {
        if !watch.wants_bookmarks || watch.is_over || watch.revision == 0 {
            return None;
        }
        let object = json!({
            "kind": &*watch.kind.names.kind,
            "apiVersion": &*watch.kind.api_version,
            "metadata": {"resourceVersion": watch.revision.to_string()},
        });
        Some(format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into())
    }
}

/// What a change is for a watch: an object that begins to be selected is added, one that ends to be is deleted.
fn event(watch: &Watch, change: &Change) -> Option<Bytes> {
    let object = change.object()?;
    if *object.kind.resource != *watch.kind.resource {
        return None;
    }
    let was = change.before.as_ref().filter(|before| watch.selector.selects(before));
    let is = change.after.as_ref().filter(|after| watch.selector.selects(after));
    match (was, is) {
        (None, None) => None,
        (None, Some(object)) => Some(line("ADDED", object, &watch.kind)),
        (Some(_), Some(object)) => Some(line("MODIFIED", object, &watch.kind)),
        (Some(before), None) => match &change.last {
            Some(last) => Some(line("DELETED", last, &watch.kind)),
            None => Some(line("DELETED", &(**before).clone().at(change.revision), &watch.kind)),
        },
    }
}

fn line(what: &str, object: &Object, kind: &Kind) -> Bytes {
    let text = shown_as(object, kind);
    let mut line = Vec::with_capacity(text.len() + 32);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(what.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(&text);
    line.extend_from_slice(b"}\n");
    line.into()
}
