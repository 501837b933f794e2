//! Fingerprints: 64-bit hashes that stand for values, to detect equal values without keeping them. Two values with the same
//! fingerprint count as equal. Valid within one process only.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A 64-bit hash of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The least of all, as the begin of a range.
    pub const LEAST: Self = Self(0);

    /// The fingerprint of a value.
    pub fn of(value: &(impl Hash + ?Sized)) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The fingerprint of everything that was written to a hasher.
    pub fn of_hashed(hasher: &DefaultHasher) -> Self {
        Self(hasher.finish())
    }

    /// The fingerprint of a set of values, independent of their order.
    pub fn of_all(values: impl IntoIterator<Item = Self>) -> Self {
        // XOR is independent of the order, and adding a value twice removes it again, which `toggled` relies on.
        Self(values.into_iter().fold(0, |all, value| all ^ value.0))
    }

    /// The fingerprint of the set after adding the values that it lacks and removing those that it has.
    pub fn toggled(self, values: impl IntoIterator<Item = Self>) -> Self {
        Self::of_all(values.into_iter().chain([self]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_one_fingerprint_in_any_order() {
        let [a, b, c] = ["a", "b", "c"].map(Fingerprint::of);
        assert_eq!(Fingerprint::of_all([a, b, c]), Fingerprint::of_all([c, a, b]));
        assert_ne!(Fingerprint::of_all([a, b]), Fingerprint::of_all([a, c]));
        assert_eq!(Fingerprint::of_all([a, b]).toggled([b, c]), Fingerprint::of_all([c, a]));
    }
}
