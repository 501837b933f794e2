//! What is wrong with the pins of a `Plugin`, and how its status tells it. Pure.

use super::digest_text;
use crate::object::ObjectRef;

/// The reason of a plugin with objects that are pinned to versions that differ.
pub const PINS_CONTRADICT: &str = "PinsContradict";

/// The reason of a plugin with objects that no version answers.
pub const PINNED_VERSION_MISSING: &str = "PinnedVersionMissing";

/// The reason of a plugin with pins of objects that are not there.
const PINNED_OBJECT_MISSING: &str = "PinnedObjectMissing";

/// What is around the versions that are not to be had.
const PINNED_TO: &str = "objects are pinned to ";
const MISSING: &str = ", which this host does not have";

/// What follows the digest of one that is not loaded.
pub const LEFT_OUT: &str = ", which is not loaded, so that they stay as they are";

/// How many of a list are told.
const TOLD: usize = 3;

/// What is wrong with the pins of a `Plugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinTrouble {
    /// The objects that are pinned to versions that differ.
    pub contradicting: Vec<ObjectRef>,
    /// The versions that are not to be had, as the pins name them.
    pub missing_versions: Vec<String>,
    /// The versions that do not take what is said now, each with the reason and a sentence.
    pub refused: Vec<(&'static str, String)>,
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
            format!("{PINNED_TO}{which}{MISSING}: they stay as they are; load that version once, or take the pins away")
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
}

/// Whether a message of the condition `Degraded` says that the version with this digest, or with this number, does not answer the objects that are
/// pinned to it. Of many versions, it names the first ones.
pub fn tells_as_missing(message: &str, digest: &str, number: Option<&str>) -> bool {
    let by_digest = digest_text::text(digest);
    let names = [Some(by_digest.clone()), number.map(|number| format!("version {number}"))];
    let listed = message.split_once(PINNED_TO).and_then(|(_, rest)| rest.split_once(MISSING)).map(|(listed, _)| listed);
    let mut listed = listed.into_iter().flat_map(|listed| listed.split(", "));
    let is_listed = listed.any(|one| {
        let one = one.split_once(" and ").map_or(one, |(one, _)| one);
        names.iter().flatten().any(|name| name == one)
    });
    is_listed || message.contains(&format!("{by_digest}{LEFT_OUT}"))
}

/// The reasons of a version that is not loaded, or not with the present configuration, whether it is pinned or not.
const OF_VERSIONS: [&str; 6] =
    ["ConfigInvalid", "NotGranted", "NotCompiled", "LoadFailed", "ContractViolated", "StartFailed"];

/// Whether a plugin is degraded for this reason by its pins alone. `failed`: the reason for which what its source has is not loaded, if it is not.
pub fn is_about_pins(reason: &str, failed: Option<&str>) -> bool {
    let is_of_version = OF_VERSIONS.contains(&reason) && failed != Some(reason);
    [PINS_CONTRADICT, PINNED_VERSION_MISSING, PINNED_OBJECT_MISSING].contains(&reason) || is_of_version
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
    fn a_version_that_is_not_loaded_is_no_trouble_of_pins() {
        for (reason, failed, expected) in [
            (PINS_CONTRADICT, None, true),
            (PINS_CONTRADICT, Some("ConfigInvalid"), true),
            ("ConfigInvalid", None, true),
            ("ConfigInvalid", Some("ConfigInvalid"), false),
            ("DigestMismatch", None, false),
        ] {
            assert_eq!(is_about_pins(reason, failed), expected, "{reason} {failed:?}");
        }
    }

    #[test]
    fn a_version_that_is_told_as_missing_is_found_in_the_message() {
        let versions = ["sha256:ab", "version 2", "version 3", "version 4"];
        let missing = PinTrouble { missing_versions: versions.map(str::to_owned).into(), ..PinTrouble::default() };
        let (_, message) = missing.told().unwrap_or_default();
        let left_out = format!("{PINNED_TO}version 5, sha256:ef{LEFT_OUT}: no");
        for (message, digest, number, expected) in [
            (&*message, "ab", None, true),
            (&message, "ab", Some("1"), true),
            (&message, "cd", Some("3"), true),
            (&message, "cd", Some("1"), false),
            (&message, "a", Some("33"), false),
            (&left_out, "ef", Some("5"), true),
            (&left_out, "cd", Some("5"), false),
        ] {
            assert_eq!(tells_as_missing(message, digest, number), expected, "{digest} {number:?}: {message}");
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
