//! Fingerprints: short names of values, for remembering that two are the same without keeping either. Good within one process
//! only; two values with one fingerprint are taken for the same (64 bits, so that never happens by chance).

use std::hash::{DefaultHasher, Hash, Hasher};

/// Names a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a value.
    pub fn of(value: &(impl Hash + ?Sized)) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The fingerprint of what was fed to a hasher, for values that are not at hand as one.
    pub fn of_hashed(hasher: &DefaultHasher) -> Self {
        Self(hasher.finish())
    }

    /// The fingerprint of a set of values, whatever their order.
    pub fn of_all(values: impl IntoIterator<Item = Self>) -> Self {
        // Exclusive or: it does not matter in which order, and taking one out again is putting it in once more.
        Self(values.into_iter().fold(0, |all, value| all ^ value.0))
    }

    /// The fingerprint of the same set with these values taken out or put in.
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
