//! The labels of a cached object, packed into one text. A map of them takes a kilobyte for an ordinary child, of which the host reads one
//! or two labels.

use std::{collections::BTreeMap, fmt};

/// Ends each key and each value. The API server takes no label with it.
const END: char = '\0';

/// Labels.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSet(Box<str>);

impl LabelSet {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All labels, ordered by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split_terminator(END);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// The same as a map, to compare with annotations.
    pub fn to_map(&self) -> BTreeMap<Box<str>, Box<str>> {
        self.iter().map(|(key, value)| (key.into(), value.into())).collect()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for LabelSet {
    /// Of two labels with one key, and of one that could not be told apart from others, nothing is kept that was not there.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        let labels: Vec<_> = labels.into_iter().collect();
        let labels = labels.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let sorted: BTreeMap<_, _> = labels.filter(|(key, value)| !key.contains(END) && !value.contains(END)).collect();
        let mut packed = String::with_capacity(sorted.iter().map(|(key, value)| key.len() + value.len() + 2).sum());
        for part in sorted.into_iter().flat_map(|(key, value)| [key, value]) {
            packed.push_str(part);
            packed.push(END);
        }
        Self(packed.into())
    }
}

impl fmt::Debug for LabelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn labels_are_found_by_their_keys_and_listed_in_order() {
        for labels in [vec![], vec![("b", "1"), ("a", "2")], vec![("a", ""), ("ab", "x"), ("b", "a")]] {
            let set: LabelSet = labels.iter().copied().collect();
            for (key, value) in &labels {
                assert_eq!(set.get(key), Some(*value), "{labels:?}");
            }
            assert_eq!(set.get("c"), None, "{labels:?}");
            assert_eq!(set.get("1"), None, "a value is no key");
            let sorted: BTreeSet<_> = labels.iter().copied().collect();
            assert!(set.iter().eq(sorted), "{set:?}");
        }
    }

    #[test]
    fn a_label_that_would_look_like_two_is_left_out() {
        let set: LabelSet = [("a", "1\0b\0value"), ("c\0d", "3"), ("e", "4")].into_iter().collect();
        assert!(set.iter().eq([("e", "4")]), "{set:?}");
    }
}
