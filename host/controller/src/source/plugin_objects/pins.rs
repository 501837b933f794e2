//! Which version a pin names, by its digest or by its number, and which pins name nothing. Pure: what a number stands for is in the
//! status, so that it is the same on every host and after every restart.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{candidate::Candidate, digest_text};
use crate::{
    api::{Pin, Plugin, PluginStatus},
    object::ObjectRef,
};

/// What stands in the place of a digest where the pins of an object name versions that differ.
pub const SEVERAL_VERSIONS: &str = "several versions";

/// The digests of the versions to which objects are pinned, as far as they are known.
pub fn digests(plugin: &Plugin) -> impl Iterator<Item = &str> {
    pins(plugin).filter_map(|pin| digest_of(plugin, pin))
}

/// The objects that are pinned, each with the digest of its version. Where nobody knows it, or its pins contradict each other, with a text that
/// is no digest, so that no version answers the object.
pub fn targets(plugin: &Plugin) -> BTreeMap<ObjectRef, Arc<str>> {
    targets_by(plugin, |_| None)
}

/// The same if this version were there, too.
pub fn targets_with(plugin: &Plugin, there: &Candidate<'_>) -> BTreeMap<ObjectRef, Arc<str>> {
    targets_by(plugin, |pin| (pin.version.as_deref() == Some(there.version)).then_some(there.digest))
}

fn targets_by<'a>(plugin: &Plugin, otherwise: impl Fn(&Pin) -> Option<&'a str>) -> BTreeMap<ObjectRef, Arc<str>> {
    let target = |pin: &Pin| match digest_of(plugin, pin).or_else(|| otherwise(pin)) {
        Some(digest) => digest.into(),
        None => name_of(pin).into(),
    };
    let mut targets: BTreeMap<ObjectRef, Arc<str>> = BTreeMap::new();
    for pin in pins(plugin) {
        let named: Arc<str> = target(pin);
        let known = targets.entry(object_of(pin)).or_insert_with(|| named.clone());
        if *known != named {
            *known = SEVERAL_VERSIONS.into();
        }
    }
    targets
}

/// The versions that pins name and that are not among these, as the pins name them.
pub fn missing(plugin: &Plugin, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let missing = pins(plugin).filter(|pin| !digest_of(plugin, pin).is_some_and(&is_there)).map(name_of);
    missing.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The objects whose pins contradict each other: each would choose another version.
pub fn contradicting(plugin: &Plugin) -> Vec<ObjectRef> {
    let targets = targets(plugin).into_iter();
    targets.filter(|(_, target)| **target == *SEVERAL_VERSIONS).map(|(object, _)| object).collect()
}

/// The objects that are pinned and not among these.
pub fn without_object(plugin: &Plugin, is_there: impl Fn(&ObjectRef) -> bool) -> Vec<ObjectRef> {
    let objects: BTreeSet<_> = pins(plugin).map(object_of).collect();
    objects.into_iter().filter(|object| !is_there(object)).collect()
}

fn object_of(pin: &Pin) -> ObjectRef {
    ObjectRef::new(&pin.namespace, &pin.name)
}

fn pins(plugin: &Plugin) -> impl Iterator<Item = &Pin> {
    plugin.spec.rollout.iter().flat_map(|rollout| &rollout.pins)
}

/// The digest of the version that a pin names; none if nobody knows a version of that number.
fn digest_of<'p>(plugin: &'p Plugin, pin: &'p Pin) -> Option<&'p str> {
    if let Some(digest) = &pin.digest {
        return digest_text::digits(digest);
    }
    let mut known = plugin.status.iter().flat_map(numbered);
    known.find(|(version, _)| Some(*version) == pin.version.as_deref()).map(|(_, digest)| digest)
}

/// The versions that a status knows, each with its digest: those that were at work, the latest one first, then one that is tried, and one that
/// waits for approval.
pub fn numbered(status: &PluginStatus) -> impl Iterator<Item = (&str, &str)> {
    let former = status.versions.iter().map(|it| (&*it.version, &*it.digest));
    let tried = status.rollout.iter().map(|it| (&*it.version, &*it.digest));
    let held = status.plan.iter().map(|it| (&*it.version, &*it.digest));
    former.chain(tried).chain(held).filter_map(|(version, digest)| Some((version, digest_text::digits(digest)?)))
}

/// How a pin names its version.
fn name_of(pin: &Pin) -> String {
    match (&pin.digest, &pin.version) {
        (Some(digest), _) => digest.clone(),
        (None, version) => format!("version {}", version.as_deref().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use serde_json::{Value, json};

    use super::*;

    fn plugin(pins: &Value, status: &Value) -> Result<Plugin, Box<dyn Error>> {
        Ok(serde_json::from_value(json!({
            "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "web"},
            "spec": {"source": {"configMap": {"name": "web"}}, "rollout": {"pins": pins}},
            "status": status,
        }))?)
    }

    fn digest(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn text(digit: char) -> String {
        digest_text::text(&digest(digit))
    }

    #[test]
    fn a_number_means_the_component_with_it_that_was_at_work_last() -> Result<(), Box<dyn Error>> {
        let version = |version: &str, digit| json!({"version": version, "digest": text(digit)});
        let mut plan = version("4", 'd');
        plan["state"] = "AwaitingApproval".into();
        plan["observedGeneration"] = 1.into();
        let status = json!({
            "versions": [version("2", 'c'), version("1", 'b'), version("1", 'a')],
            "plan": plan,
        });
        for (pin, expected) in [
            (json!({"name": "web", "version": "1"}), Some('b')),
            (json!({"name": "web", "version": "2"}), Some('c')),
            (json!({"name": "web", "version": "4"}), Some('d')),
            (json!({"name": "web", "version": "3"}), None),
            (json!({"name": "web", "digest": text('a')}), Some('a')),
        ] {
            let plugin = plugin(&json!([pin]), &status)?;
            let found: Vec<_> = digests(&plugin).collect();
            let expected = expected.map(digest);
            assert_eq!(found, expected.iter().map(String::as_str).collect::<Vec<_>>(), "{pin}");
            assert_eq!(missing(&plugin, |_| true).is_empty(), expected.is_some(), "{pin}");
        }
        Ok(())
    }

    #[test]
    fn pins_that_name_different_versions_choose_none() -> Result<(), Box<dyn Error>> {
        let status = json!({"versions": [{"version": "1", "digest": text('a')}]});
        let pin = |by: &str, version: &str| json!({"name": "web", "namespace": "shop", by: version});
        let (number, same, other) = (pin("version", "1"), pin("digest", &text('a')), pin("digest", &text('b')));
        for (pins, expected) in [
            ([&number, &same], Some(digest('a'))),
            ([&number, &other], None),
            ([&other, &number], None),
            ([&number, &pin("version", "2")], None),
        ] {
            let plugin = plugin(&json!(pins), &status)?;
            let object = ObjectRef::new("shop", "web");
            let target = expected.as_deref().unwrap_or(SEVERAL_VERSIONS);
            assert_eq!(targets(&plugin).get(&object).map(|it| &**it), Some(target), "{pins:?}");
            assert_eq!(contradicting(&plugin).is_empty(), expected.is_some(), "{pins:?}");
            assert_eq!(without_object(&plugin, |_| false), [object], "{pins:?}");
        }
        Ok(())
    }

    #[test]
    fn an_object_with_a_pin_that_nobody_knows_is_answered_by_nobody() -> Result<(), Box<dyn Error>> {
        let plugin = plugin(&json!([{"name": "web", "namespace": "shop", "version": "3"}]), &json!({}))?;
        let targets = targets(&plugin);
        assert_eq!(targets.get(&ObjectRef::new("shop", "web")).map(|it| &**it), Some("version 3"));
        assert_eq!(missing(&plugin, |_| true), ["version 3"]);
        Ok(())
    }
}
