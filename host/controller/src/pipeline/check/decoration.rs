//! The labels and annotations that a decorator wants on the object itself. It returns them as an element of its children that is the object,
//! with nothing but these. Pure.

use std::collections::{BTreeMap, BTreeSet};

use pilothouse_engine::contract::{Child, Response};
use serde_json::{Map, Value};

use super::{
    json::{parse_object, text},
    names::check_metadata,
    owner::Owner,
    refusal::{Refusal, malformed},
};
use crate::object::describe;

/// The labels and annotations that a plugin wants on an object that is not its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoration {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Decoration {
    /// What is wanted, as [`crate::labels::decoration`] remembers it: `label:KEY` and `annotation:KEY` with spaces between them.
    pub fn keys(&self) -> String {
        let labels = self.labels.keys().map(|key| format!("label:{key}"));
        let annotations = self.annotations.keys().map(|key| format!("annotation:{key}"));
        labels.chain(annotations).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    }
}

/// Refuses what a decorator may not say of an object that is not its own.
pub(super) fn check_response(owner: &Owner<'_>, response: &Response) -> Result<(), Refusal> {
    if owner.manifest.decorates.is_some() && (response.status.is_some() || !response.conditions.is_empty()) {
        let why =
            format!("it decorates objects of kind {} and does not own them; an Event may say what happens", owner.kind);
        return Err(malformed("a status or conditions".to_owned(), &why));
    }
    Ok(())
}

/// Takes the object itself out of the children that a decorator returns. None: the plugin owns the object, and cannot return it.
pub(super) fn split<'c>(
    owner: &Owner<'_>,
    children: &'c [Child],
) -> Result<(Option<Decoration>, Vec<&'c Child>), Refusal> {
    if owner.manifest.decorates.is_none() {
        return Ok((None, children.iter().collect()));
    }
    let (mut decoration, mut others) = (None, Vec::with_capacity(children.len()));
    for child in children {
        let body = parse_object("a child", &child.object)?;
        match is_object(owner, &body) {
            false => others.push(child),
            true if decoration.is_some() => return Err(Refusal::Duplicate(what(owner))),
            true => decoration = Some(read(owner, &body)?),
        }
    }
    Ok((Some(decoration.unwrap_or_default()), others))
}

fn is_object(owner: &Owner<'_>, body: &Map<String, Value>) -> bool {
    let field = |path: &[&str]| text(body, path).unwrap_or_default();
    let namespace = field(&["metadata", "namespace"]);
    field(&["apiVersion"]) == owner.kind.api_version
        && field(&["kind"]) == owner.kind.kind
        && field(&["metadata", "name"]) == *owner.object.name.name
        && (namespace.is_empty() || namespace == *owner.object.name.namespace)
}

fn read(owner: &Owner<'_>, body: &Map<String, Value>) -> Result<Decoration, Refusal> {
    check_metadata(body, &what(owner))?;
    let metadata = body.get("metadata").and_then(Value::as_object);
    let fields = body.keys().filter(|field| !matches!(field.as_str(), "apiVersion" | "kind" | "metadata"));
    // A finalizer or an owner reference would decide about the life of an object that is not its own.
    let below = metadata.into_iter().flat_map(Map::keys);
    let below = below.filter(|field| !matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
    if let Some(field) = fields.chain(below).next() {
        return Err(malformed(
            what(owner),
            &format!("it has {field}, and a decorator sets labels and annotations only"),
        ));
    }
    let map = |field: &str| {
        let map = metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
        let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        map.into_iter().flatten().filter_map(entry).collect()
    };
    Ok(Decoration { labels: map("labels"), annotations: map("annotations") })
}

fn what(owner: &Owner<'_>) -> String {
    describe(owner.kind, &owner.object.name)
}

#[cfg(test)]
mod tests {
    use super::{super::sample::*, *};

    fn own(more: &str) -> Child {
        child(&format!(r#"{{"apiVersion":"example.com/v1","kind":"Web","metadata":{{"name":"shop"{more}}}}}"#))
    }

    #[test]
    fn the_object_itself_is_taken_for_its_labels_and_annotations() -> Result<(), Refusal> {
        let own = own(r#","labels":{"a":"1","none":null},"annotations":{"b":"2"}"#);
        let (decoration, children) = decorated(vec![child(&config_map("")), own])?;
        assert_eq!(decoration.keys(), "annotation:b label:a");
        assert_eq!(decoration.labels, BTreeMap::from([("a".to_owned(), "1".to_owned())]));
        assert_eq!(children, 1);
        Ok(())
    }

    #[test]
    fn an_answer_without_the_object_wants_nothing_on_it() -> Result<(), Refusal> {
        assert_eq!(decorated(vec![child(&config_map(""))])?, (Decoration::default(), 1));
        Ok(())
    }

    #[test]
    fn more_than_labels_and_annotations_is_refused() {
        let with_spec = r#"{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"shop"},"spec":{}}"#;
        for children in [
            vec![child(with_spec)],
            vec![own(r#","finalizers":["a/b"]"#)],
            vec![own(r#","labels":{"pilothouse.dev/plugin":"x"}"#)],
            vec![own(r#","annotations":{"other.decorator.pilothouse.dev/keys":"x"}"#)],
            vec![own(""), own("")],
            vec![child(r#"{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"another"}}"#)],
        ] {
            let refused = decorated(children.clone());
            assert!(refused.is_err(), "{children:?}: {refused:?}");
        }
    }
}
