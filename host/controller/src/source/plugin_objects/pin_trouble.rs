//! What is wrong with the pins of a `Plugin`, and how its status tells it. Pure.

use crate::object::ObjectRef;

/// The reason of a plugin with objects that are pinned to versions that differ.
pub const PINS_CONTRADICT: &str = "PinsContradict";

/// The reason of a plugin with objects that no version answers.
pub const PINNED_VERSION_MISSING: &str = "PinnedVersionMissing";

/// The reason of a plugin with pins of objects that are not there.
const PINNED_OBJECT_MISSING: &str = "PinnedObjectMissing";

/// How many of a list are told.
const TOLD: usize = 3;

/// What is wrong with the pins of a `Plugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinTrouble {
    /// The objects that are pinned to versions that differ.
    pub contradicting: Vec<ObjectRef>,
    /// The versions that are not to be had, as the pins name them.
    pub missing_versions: Vec<String>,
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
                "objects are pinned to {which}, which this host does not have: they stay as they are; load that version once, or take \
                 the pins away"
            )
        });
        let missing_objects = some_of(&self.missing_objects).map(|which| {
            format!(
                "pins name objects that are not there: {which}; correct the namespace and the name, or take the pins away"
            )
        });
        let found = [
            (PINS_CONTRADICT, contradicting),
            (PINNED_VERSION_MISSING, missing_versions),
            (PINNED_OBJECT_MISSING, missing_objects),
        ];
        let told: Vec<_> = found.into_iter().filter_map(|(reason, message)| Some((reason, message?))).collect();
        let (first, _) = told.first()?;
        let messages: Vec<_> = told.iter().map(|(_, message)| message.as_str()).collect();
        Some((first, messages.join("; ")))
    }
}

/// Whether a reason is about pins.
pub fn is_about_pins(reason: &str) -> bool {
    [PINS_CONTRADICT, PINNED_VERSION_MISSING, PINNED_OBJECT_MISSING].contains(&reason)
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
    fn all_that_is_wrong_is_told_under_the_first_reason() {
        let object = |name: &str| ObjectRef::new("shop", name);
        assert_eq!(PinTrouble::default().told(), None);
        let ghost = PinTrouble { missing_objects: vec![object("ghost")], ..PinTrouble::default() };
        assert_eq!(ghost.told().map(|(reason, _)| reason), Some(PINNED_OBJECT_MISSING));
        let all = PinTrouble {
            contradicting: ["a", "b", "c", "d", "e"].map(object).into(),
            missing_versions: vec!["version 3".to_owned()],
            ..ghost
        };
        let (reason, message) = all.told().unwrap_or_default();
        assert_eq!(reason, PINS_CONTRADICT);
        for words in ["shop/a, shop/b, shop/c and 2 more", "pinned to version 3", "not there: shop/ghost"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }
}
