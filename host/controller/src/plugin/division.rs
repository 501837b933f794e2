//! Which of several versions of a plugin answers an object. Pure, and the only place where that is decided: the same for the same object
//! on every host and after every restart.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{Selector, digest};

use crate::object::{Object, ObjectRef};

/// The versions of a plugin, and which objects each of them answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// The digest of the version that answers whatever no other one does.
    pub stable: Arc<str>,
    /// A version that answers some objects to see how that goes.
    pub trial: Option<Trial>,
    /// The digests of the versions that answer objects of their own.
    pub pins: BTreeMap<ObjectRef, Arc<str>>,
}

/// A version that answers some objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its digest.
    pub digest: Arc<str>,
    /// The objects that it answers.
    pub share: Share,
}

/// Some of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// When the newest object that can be one of them was created, as the API server writes it.
    pub created_until: String,
    /// Those with a place up to this one.
    pub up_to: Option<u64>,
    /// Those with such labels.
    pub selectors: Vec<Selector>,
}

impl Division {
    /// The digest of the version that answers an object. A pin is stronger than a trial.
    pub fn digest_for(&self, object: &Object) -> &str {
        if let Some(pinned) = self.pins.get(&object.name) {
            return pinned;
        }
        match &self.trial {
            Some(trial) if trial.answers(object) => &trial.digest,
            _ => &self.stable,
        }
    }
}

impl Trial {
    fn answers(&self, object: &Object) -> bool {
        self.share.has(&self.digest, object)
    }
}

impl Share {
    /// Whether an object is one of those of the version with this digest.
    pub fn has(&self, digest: &str, object: &Object) -> bool {
        let is_chosen = self.up_to.is_some_and(|up_to| place(digest, object) <= up_to)
            || self.selectors.iter().any(|selector| selector.matches(|key| object.labels.get(key)));
        is_chosen && is_created_until(object, &self.created_until)
    }
}

/// The place of an object in the order in which objects come to a version. Each version has an order of its own, so that the same objects
/// are not the first each time.
pub fn place(version: &str, object: &Object) -> u64 {
    let of_both = digest(format!("{version}/{}", object.uid).as_bytes());
    of_both.bytes().take(16).fold(0, |place, digit| place << 4 | u64::from(char::from(digit).to_digit(16).unwrap_or(0)))
}

/// When an object was created, as the API server writes it: these texts are in the order of time.
pub fn created(object: &Object) -> String {
    object.text_at("/metadata/creationTimestamp").unwrap_or_default()
}

/// Whether an object was created at this time or before.
pub fn is_created_until(object: &Object, until: &str) -> bool {
    created(object).as_str() <= until
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use kube::core::ApiResource;
    use serde_json::json;

    use super::*;
    use crate::object::Incoming;

    const CREATED: &str = "2026-01-01T00:00:05Z";

    fn object(name: &str, created: &str, labels: &[(&str, &str)]) -> Result<Object, Box<dyn Error>> {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let text = json!({
            "apiVersion": "example.com/v1", "kind": "Web",
            "metadata": {
                "name": name, "namespace": "shop", "uid": format!("uid-of-{name}"), "creationTimestamp": created,
                "labels": labels,
            },
        });
        let resource = ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Web".to_owned(),
            plural: "webs".to_owned(),
        };
        Ok(serde_json::from_str::<Incoming>(&text.to_string())?.into_object(&resource))
    }

    fn division(share: Share) -> Division {
        let trial = Some(Trial { digest: "new".into(), share });
        Division { stable: "old".into(), trial, pins: BTreeMap::new() }
    }

    fn share() -> Share {
        Share { created_until: CREATED.to_owned(), up_to: None, selectors: Vec::new() }
    }

    #[test]
    fn objects_come_by_their_place_and_younger_ones_do_not() -> Result<(), Box<dyn Error>> {
        let objects =
            (0..20).map(|number| object(&format!("web-{number}"), CREATED, &[])).collect::<Result<Vec<_>, _>>()?;
        let mut places: Vec<_> = objects.iter().map(|object| place("new", object)).collect();
        places.sort_unstable();
        let division = division(Share { up_to: places.get(4).copied(), ..share() });
        let chosen = objects.iter().filter(|object| division.digest_for(object) == "new");
        assert_eq!(chosen.count(), 5);
        let first = objects.iter().find(|object| division.digest_for(object) == "new").ok_or("none is chosen")?;
        let younger = object(&first.name.name, "2026-01-01T00:00:06Z", &[])?;
        assert_eq!((&younger.uid, division.digest_for(&younger)), (&first.uid, "old"));
        Ok(())
    }

    #[test]
    fn each_version_has_an_order_of_its_own_that_no_build_changes() -> Result<(), Box<dyn Error>> {
        let web = object("web", CREATED, &[])?;
        assert_eq!(place("new", &web), 0xa859_6cca_7a7b_e6be);
        assert_ne!(place("new", &web), place("other", &web));
        Ok(())
    }

    #[test]
    fn a_pin_is_stronger_than_a_label_and_a_label_than_none() -> Result<(), Box<dyn Error>> {
        let selectors = vec![Selector::parse("wave=one")?];
        let mut division = division(Share { selectors, ..share() });
        let (wave, other) = (object("a", CREATED, &[("wave", "one")])?, object("b", CREATED, &[("wave", "two")])?);
        assert_eq!((division.digest_for(&wave), division.digest_for(&other)), ("new", "old"));
        division.pins = BTreeMap::from([(wave.name.clone(), "old".into()), (other.name.clone(), "third".into())]);
        assert_eq!((division.digest_for(&wave), division.digest_for(&other)), ("old", "third"));
        Ok(())
    }
}
