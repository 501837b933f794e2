//! Which objects a plugin decorates that it does not own: it gives them children, labels and annotations, and never a status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Selector;

/// The objects of its kind that a decorator works on. Without selectors all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Decorates {
    /// A selector on their labels, as `kubectl -l` has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label_selector: String,
    /// A selector on their annotations, in the same notation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation_selector: String,
}

impl Decorates {
    /// What is wrong with its selectors, in words; none if nothing is.
    pub fn fault(&self) -> Option<String> {
        let of = |text: &str| Selector::parse(text).err().map(|fault| fault.to_string());
        of(&self.label_selector).or_else(|| of(&self.annotation_selector))
    }

    /// Whether an object with these labels, of which each is asked for by its key, and these annotations is one of them. The annotations are only read where they count.
    pub fn selects<'l>(
        &self,
        label: impl Fn(&str) -> Option<&'l str>,
        annotations: impl FnOnce() -> BTreeMap<Box<str>, Box<str>>,
    ) -> bool {
        let is_labelled = Selector::parse(&self.label_selector).is_ok_and(|selector| selector.matches(label));
        let is_annotated = || {
            let annotations = annotations();
            let value = |key: &str| annotations.get(key).map(|value| &**value);
            Selector::parse(&self.annotation_selector).is_ok_and(|selector| selector.matches(value))
        };
        is_labelled && (self.annotation_selector.is_empty() || is_annotated())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_decorated_if_both_selectors_match() {
        let map = |key: &str| BTreeMap::from([(key.into(), "x".into())]);
        for (labels, annotations, expected) in [
            ("", "", true),
            ("team", "", true),
            ("", "ports", true),
            ("team,other", "", false),
            ("team", "other", false),
        ] {
            let decorates =
                Decorates { label_selector: labels.to_owned(), annotation_selector: annotations.to_owned() };
            assert_eq!(
                decorates.selects(|key| (key == "team").then_some("x"), || map("ports")),
                expected,
                "{labels} {annotations}"
            );
        }
    }

    #[test]
    fn a_malformed_selector_selects_nothing() {
        let decorates = Decorates { annotation_selector: "a b".to_owned(), ..Decorates::default() };
        assert!(decorates.fault().is_some() && !decorates.selects(|_| None, BTreeMap::new));
    }
}
