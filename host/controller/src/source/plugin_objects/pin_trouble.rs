//! What is wrong with the pins of a `Plugin`, and how its status tells it. Pure.

use super::digest_text;
use crate::{api::PinStatus, object::ObjectRef, pipeline::conditions::within_limit};

/// The reason of a plugin with objects that are pinned to versions that differ.
const PINS_CONTRADICT: &str = "PinsContradict";

/// The reason of a plugin with objects that no version answers.
const PINNED_VERSION_MISSING: &str = "PinnedVersionMissing";

/// The reason of a plugin with pins of objects that are not there.
const PINNED_OBJECT_MISSING: &str = "PinnedObjectMissing";

/// How many of a list are told.
const TOLD: usize = 3;

/// How many versions that answer nothing are told.
const UNANSWERED: usize = 32;

/// What is wrong with the pins of a `Plugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinTrouble {
    /// The objects that are pinned to versions that differ.
    pub contradicting: Vec<ObjectRef>,
    /// The versions that are not to be had, as the pins name them.
    pub missing_versions: Vec<String>,
    /// The versions that do not take what is said now, each with the reason and a sentence.
    pub refused: Vec<(&'static str, String)>,
    /// Those of them that are not loaded, as digests.
    pub left_out: Vec<String>,
    /// The objects that are pinned and not there.
    pub missing_objects: Vec<ObjectRef>,
}

impl PinTrouble {
    /// The reason and the message; none if nothing is wrong. Of several reasons, the first one that keeps objects from being reconciled.
    pub fn told(&self) -> Option<(&'static str, String)> {
        let contradicting = some_of(&self.contradicting).map(|which| {
            format!(
                "objects have pins that contradict each other, and stay as they are: {which}; leave one pin for each of them"
            )
        });
        let missing_versions = some_of(&self.missing_versions).map(|which| {
            format!(
                "objects are pinned to {which}, which this host does not have: they stay as they are; load that version once, or take the \
                 pins away"
            )
        });
        let missing_objects = some_of(&self.missing_objects).map(|which| {
            format!(
                "pins name objects that are not there: {which}; correct the namespace and the name, or take the pins away"
            )
        });
        let found = [(PINS_CONTRADICT, contradicting), (PINNED_VERSION_MISSING, missing_versions)];
        let found =
            found.into_iter().chain(self.refused.iter().map(|(reason, message)| (*reason, Some(message.clone()))));
        let found = found.chain([(PINNED_OBJECT_MISSING, missing_objects)]);
        let told: Vec<_> = found.filter_map(|(reason, message)| Some((reason, message?))).collect();
        let (first, _) = told.first()?;
        let messages: Vec<_> = told.iter().map(|(_, message)| message.as_str()).collect();
        Some((first, messages.join("; ")))
    }

    /// The same for the status.
    pub fn status(&self) -> Option<PinStatus> {
        let (reason, message) = self.told()?;
        let left_out = self.left_out.iter().map(|digest| digest_text::text(digest));
        let unanswered = self.missing_versions.iter().cloned().chain(left_out).take(UNANSWERED).collect();
        Some(PinStatus { reason: reason.to_owned(), message: within_limit(&message), unanswered })
    }
}

/// Whether the version with this digest, or with this number, does not answer the objects that are pinned to it.
pub fn is_unanswered(pins: &PinStatus, digest: &str, number: Option<&str>) -> bool {
    let names = [Some(digest_text::text(digest)), number.map(|number| format!("version {number}"))];
    names.iter().flatten().any(|name| pins.unanswered.contains(name))
}

/// The first ones of a list, and how many more there are; none of an empty one.
fn some_of<T: ToString>(all: &[T]) -> Option<String> {
    let first: Vec<_> = all.iter().take(TOLD).map(ToString::to_string).collect();
    let more = all.len().saturating_sub(first.len());
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!first.is_empty()).then(|| format!("{}{end}", first.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_answers_nothing_is_found_by_its_digest_or_number() {
        let trouble = PinTrouble {
            missing_versions: ["sha256:ab", "version 2", "version 3", "version 4"].map(str::to_owned).into(),
            left_out: vec!["ef".to_owned()],
            ..PinTrouble::default()
        };
        let pins = trouble.status();
        for (digest, number, expected) in [
            ("ab", None, true),
            ("ab", Some("1"), true),
            ("cd", Some("4"), true),
            ("cd", Some("1"), false),
            ("a", Some("33"), false),
            ("ef", Some("5"), true),
        ] {
            assert_eq!(
                pins.as_ref().map(|pins| is_unanswered(pins, digest, number)),
                Some(expected),
                "{digest} {number:?}"
            );
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_under_the_first_reason() {
        let object = |name: &str| ObjectRef::new("shop", name);
        assert_eq!(PinTrouble::default().told(), None);
        let ghost = PinTrouble { missing_objects: vec![object("ghost")], ..PinTrouble::default() };
        assert_eq!(ghost.told().map(|(reason, _)| reason), Some(PINNED_OBJECT_MISSING));
        let all = PinTrouble {
            contradicting: ["a", "b", "c", "d", "e"].map(object).into(),
            missing_versions: vec!["version 3".to_owned()],
            refused: vec![("ConfigInvalid", "version 2 goes on".to_owned())],
            ..ghost
        };
        let (reason, message) = all.told().unwrap_or_default();
        assert_eq!(reason, PINS_CONTRADICT);
        for words in
            ["shop/a, shop/b, shop/c and 2 more", "pinned to version 3", "version 2 goes on", "not there: shop/ghost"]
        {
            assert!(message.contains(words), "{words}: {message}");
        }
    }
}
