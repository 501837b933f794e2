//! Writes the labels and annotations of a decorator on the object itself, as a field manager of its own. Takes none from anybody else, and
//! writes nothing where nothing differs.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::Patch;
use serde_json::{Value, json};

use super::{
    applier::{Applier, applying, merging},
    failure::{Failure, FailureReason, is_another_object},
    target::Target,
};
use crate::{
    client::apply_patch,
    labels,
    object::{Object, describe},
    pipeline::{check::Decoration, plan::diff::Difference},
    plugin::ActivePlugin,
    schema::pointer,
};

/// Makes the object have what its decorator wants on it, and no longer what that wanted before. Returns whether that took a write.
///
/// # Errors
/// [`Failure`]: somebody else has set one of the keys to something else, or the API server refuses the write.
pub async fn decorate(applier: &Applier<'_>, wanted: &Decoration) -> Result<bool, Failure> {
    let (kind, object) = (applier.plugin.objects.kind(), applier.object);
    let what = describe(kind, &object.name);
    let Some(patch) = patch(&applier.plugin.name, object, wanted) else { return Ok(false) };
    let mut patch = patch.map_err(|taken| Failure::new(FailureReason::MetadataConflict, taken.of(&what)))?;
    let gone = || Failure::new(FailureReason::NotFound, format!("{kind} is not installed any more"));
    let target = Target::of_decorated(applier).ok_or_else(gone)?;
    patch["apiVersion"] = json!(kind.api_version);
    patch["kind"] = json!(kind.kind);
    match write(applier, &target, &patch, wanted).await {
        Ok(written) => {
            target.store.record_write(written);
            Ok(true)
        }
        Err(kube::Error::Api(status)) if is_another_object(&status) || status.code == 404 => {
            // With the host's own rights: the account may patch the object, and need not be able to read it.
            if let Some(own) = Target::of_object(applier) {
                own.refresh_cache(object).await.map_err(|error| Failure::of(&error, "read", &what))?;
            }
            Err(Failure::new(FailureReason::Outdated, format!("{what} has changed")))
        }
        Err(error) => Err(Failure::of(&error, "write the labels and annotations of", &what)),
    }
}

/// Applies a patch. Where nothing is wanted any more, the mark goes although others own it, too, as after a copy of the object was applied:
/// it is about this plugin alone. The keys that it names stay theirs.
async fn write(
    applier: &Applier<'_>,
    target: &Target<'_>,
    patch: &Value,
    wanted: &Decoration,
) -> Result<Object, kube::Error> {
    let (name, manager) = (&applier.object.name.name, &applier.plugin.field_manager);
    let resource = &target.installed.resource;
    let applied = target.api.patch(name, &applying(manager), &apply_patch(patch)?).await?.into_object(resource);
    let mark = labels::decoration(&applier.plugin.name);
    if !wanted.keys().is_empty() || applied.annotation(&mark).is_none() {
        return Ok(applied);
    }
    let metadata = json!({
        "uid": &*applied.uid, "resourceVersion": &*applied.resource_version, "annotations": {mark: null},
    });
    let patch = Patch::Merge(json!({"metadata": metadata}));
    Ok(target.api.patch(name, &merging(manager), &patch).await?.into_object(resource))
}

/// The fields of the object's metadata that [`decorate`] would change. Makes no request.
///
/// # Errors
/// [`Failure`]: somebody else has set one of the keys to something else.
pub fn decoration_of(plugin: &ActivePlugin, object: &Object, wanted: &Decoration) -> Result<Vec<Difference>, Failure> {
    let Some(patch) = patch(&plugin.name, object, wanted) else { return Ok(Vec::new()) };
    let patch = patch.map_err(|taken| {
        let what = describe(plugin.objects.kind(), &object.name);
        Failure::new(FailureReason::MetadataConflict, taken.of(&what))
    })?;
    let (labels_there, annotations) = (object.labels.to_map(), object.annotations());
    let own = labels::decoration(&plugin.name);
    let before = annotations.get(own.as_str()).map(|keys| &**keys).unwrap_or_default();
    let mut differences = Vec::new();
    for (word, field, live) in [("label", "labels", &labels_there), ("annotation", "annotations", &annotations)] {
        let desired = patch["metadata"][field].as_object().into_iter().flatten();
        let desired: BTreeMap<&str, &Value> = desired.map(|(key, value)| (key.as_str(), value)).collect();
        let given_up = before.split(' ').filter_map(|key| key.strip_prefix(word)?.strip_prefix(':'));
        let mark = (word == "annotation").then_some(own.as_str());
        for key in desired.keys().copied().chain(given_up).chain(mark).collect::<BTreeSet<_>>() {
            let there = live.get(key).map_or(Value::Null, |value| json!(value));
            let wanted = desired.get(key).copied().cloned().unwrap_or_default();
            if there != wanted {
                let path = pointer(&["metadata", field, key]);
                differences.push(Difference { path, desired: wanted, live: there });
            }
        }
    }
    Ok(differences)
}

/// A key that somebody else has set to something else.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    /// `label 'team'`.
    key: String,
    value: String,
    /// The other decorator that has set it; none if nobody knows who it was.
    by: Option<String>,
}

impl Taken {
    fn of(&self, object: &str) -> String {
        let by = self.by.as_ref().map_or_else(|| "somebody else".to_owned(), |by| format!("plugin '{by}'"));
        format!("the {} of {object} is '{}', set by {by}; it is left alone", self.key, self.value)
    }
}

/// The apply that makes the object as it is wanted; none if it is. Without resource version, the write could take a key that somebody has set
/// meanwhile.
fn patch(plugin: &str, object: &Object, wanted: &Decoration) -> Option<Result<Value, Taken>> {
    let (labels_there, annotations) = (object.labels.to_map(), object.annotations());
    let own = labels::decoration(plugin);
    let (keys, before) = (wanted.keys(), annotations.get(own.as_str()).map(|keys| &**keys).unwrap_or_default());
    let known: BTreeSet<_> = before.split(' ').collect();
    let others = || annotations.iter().filter(|(key, _)| ***key != *own && key.ends_with(labels::DECORATION));
    let setter = |key: &str| {
        let (other, _) = others().find(|(_, keys)| keys.split(' ').any(|theirs| theirs == key))?;
        Some(other.trim_end_matches(labels::DECORATION).to_owned())
    };
    let mut differs = keys != before;
    for (word, wanted, live) in
        [("label", &wanted.labels, &labels_there), ("annotation", &wanted.annotations, &annotations)]
    {
        for (key, _) in
            wanted.iter().filter(|(key, value)| live.get(key.as_str()).map(|it| &**it) != Some(value.as_str()))
        {
            differs = true;
            let Some(value) = live.get(key.as_str()) else { continue };
            let (full, taken) = (format!("{word}:{key}"), format!("{word} '{key}'"));
            let by = setter(&full);
            if by.is_some() || !known.contains(full.as_str()) {
                return Some(Err(Taken { key: taken, value: value.to_string(), by }));
            }
        }
    }
    differs.then(|| Ok(body(object, wanted, &own, &keys)))
}

fn body(object: &Object, wanted: &Decoration, own: &str, keys: &str) -> Value {
    let mut annotations: BTreeMap<&str, &str> =
        wanted.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    if !keys.is_empty() {
        annotations.insert(own, keys);
    }
    let mut metadata = json!({
        "name": &*object.name.name, "uid": &*object.uid, "resourceVersion": &*object.resource_version,
        "labels": wanted.labels, "annotations": annotations,
    });
    if !object.name.namespace.is_empty() {
        metadata["namespace"] = json!(&*object.name.namespace);
    }
    json!({"metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(labels: &[(&str, &str)], annotations: &Value) -> Object {
        let text = json!({"metadata": {"annotations": annotations}}).to_string().into();
        let labels = labels.iter().copied().collect();
        Object { labels, text, ..Object::sample("", "shop") }
    }

    fn wanted(labels: &[(&str, &str)]) -> Decoration {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Decoration { labels, annotations: BTreeMap::new() }
    }

    #[test]
    fn what_differs_is_written_and_what_others_have_set_is_left_alone() {
        let ours = json!({"web.decorator.pilothouse.dev/keys": "label:team"});
        let both =
            json!({"web.decorator.pilothouse.dev/keys": "label:team", "b.decorator.pilothouse.dev/keys": "label:team"});
        for (name, labels, annotations, wanted, expected) in [
            ("nothing is wanted or there", vec![], json!({}), wanted(&[]), None),
            ("it is missing", vec![], json!({}), wanted(&[("team", "a")]), Some(Ok("label:team"))),
            ("it is as wanted", vec![("team", "a")], ours.clone(), wanted(&[("team", "a")]), None),
            ("somebody set the same", vec![("team", "a")], json!({}), wanted(&[("team", "a")]), Some(Ok("label:team"))),
            (
                "somebody changed ours",
                vec![("team", "b")],
                ours.clone(),
                wanted(&[("team", "a")]),
                Some(Ok("label:team")),
            ),
            ("somebody removed ours", vec![], ours.clone(), wanted(&[("team", "a")]), Some(Ok("label:team"))),
            ("it is no longer wanted", vec![("team", "a")], ours, wanted(&[]), Some(Ok(""))),
            ("somebody set another", vec![("team", "b")], json!({}), wanted(&[("team", "a")]), Some(Err(None))),
            ("another decorator did", vec![("team", "b")], both, wanted(&[("team", "a")]), Some(Err(Some("b")))),
        ] {
            let patch = patch("web", &object(&labels, &annotations), &wanted);
            let found = patch.map(|patch| match patch {
                Ok(body) => {
                    let keys = &body["metadata"]["annotations"]["web.decorator.pilothouse.dev/keys"];
                    Ok(keys.as_str().unwrap_or_default().to_owned())
                }
                Err(taken) => Err(taken.by),
            });
            let expected = expected.map(|it| it.map(str::to_owned).map_err(|by| by.map(str::to_owned)));
            assert_eq!(found, expected, "{name}");
        }
    }
}
