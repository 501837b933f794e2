//! Names of children and values of labels that follow from the name of an object. A name that is too long, or has characters
//! that its kind does not take, is cut or changed and gets a hash of the whole, so that two objects never share one.

use crate::hash::{FNV_OFFSET_BASIS, fnv_1a};

/// The longest name of a Service, and the longest value of a label.
pub const MAX_LABEL: usize = 63;

/// The longest name of most objects, such as a ConfigMap.
const MAX_OBJECT: usize = 253;

/// The longest name of a StatefulSet: its Pods carry labels made of its name and ten more characters.
pub const MAX_STATEFUL_SET: usize = 52;

/// A dash and the eight digits of a hash.
const HASH_LENGTH: usize = 9;

/// The name of a child that is a DNS label of at most `max` characters and begins with a letter, as a Service demands.
pub fn dns_label(name: &str, max: usize) -> String {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if name.len() <= max && starts_well && name.chars().all(is_of_label) && !name.ends_with('-') {
        return name.to_owned();
    }
    hashed_dns_label(name, max)
}

/// The same with a hash in any case, for a name that fits and that something else may have.
pub fn hashed_dns_label(name: &str, max: usize) -> String {
    let lower = name.to_lowercase();
    let replaced = lower.chars().map(|c| if is_of_label(c) { c } else { '-' });
    let prefix = if lower.starts_with(|c: char| c.is_ascii_lowercase()) { "" } else { "m-" };
    let whole: String = prefix.chars().chain(replaced).collect();
    with_hash(&whole, name, max)
}

/// Whether a DNS label may have this character.
fn is_of_label(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// A label's value that stands for a text: the text itself where a label takes it.
pub fn label_value(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends_well = |c: char| c.is_ascii_alphanumeric();
    if text.is_empty()
        || (text.len() <= MAX_LABEL
            && text.chars().all(allowed)
            && text.starts_with(ends_well)
            && text.ends_with(ends_well))
    {
        return text.to_owned();
    }
    let whole: String = text.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    with_hash(whole.trim_start_matches(|c: char| !ends_well(c)), text, MAX_LABEL)
}

/// The name of a child whose kind takes long names. It is made of names of objects, so it has no other characters than these may have.
pub fn object_name(name: &str) -> String {
    if name.len() <= MAX_OBJECT { name.to_owned() } else { with_hash(name, name, MAX_OBJECT) }
}

/// Whether a name can be that of an object, as most kinds have them. Schemas refuse others earlier where they can.
pub fn is_object_name(name: &str) -> bool {
    let ends_well = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-');
    name.len() <= MAX_OBJECT && name.split('.').all(|part| ends_well(part) && part.chars().all(is_of_label))
}

/// The beginning of a name, and the hash of the original.
fn with_hash(name: &str, original: &str, max: usize) -> String {
    let end = name.floor_char_boundary(max.saturating_sub(HASH_LENGTH));
    let beginning = name[..end].trim_end_matches(['-', '.', '_']);
    let hash = fnv_1a(FNV_OFFSET_BASIS, original.as_bytes());
    let short = (hash >> 32) ^ (hash & 0xffff_ffff);
    if beginning.is_empty() { format!("m-{short:08x}") } else { format!("{beginning}-{short:08x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_stays_as_it_is() {
        for name in ["chat-service", "a", "llmmodel-llama-3-70b-serving"] {
            assert_eq!(dns_label(name, MAX_LABEL), name);
        }
        for text in ["gpt-small", "GPT-Small", "llama-3.1_8b", ""] {
            assert_eq!(label_value(text), text);
        }
    }

    #[test]
    fn a_name_that_does_not_fit_is_shortened_and_gets_a_hash() {
        let long = "a".repeat(80);
        let cases = [
            (long.as_str(), 63),
            (&long[..64], 63),
            (&long[..53], 52),
            ("1st", 63),
            ("a.b", 63),
            ("a-", 63),
            ("...", 63),
        ];
        for (name, max) in cases {
            let made = dns_label(name, max);
            let is_label = made.len() <= max
                && made.starts_with(|c: char| c.is_ascii_lowercase())
                && made.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(is_label && made != name, "{name}: {made}");
        }
        let value = label_value("meta-llama/Llama-3-70B");
        assert!(value.starts_with("meta-llama-Llama-3-70B-") && value.len() == 31, "{value}");
    }

    #[test]
    fn a_name_of_an_object_has_parts_of_small_letters_digits_and_dashes() {
        for name in ["a", "models", "models-2.cache", "1"] {
            assert!(is_object_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in ["", ".", "a.", "a..b", "-a", "a-", "a.-b", "Models", "a_b", "a/b", "ä", long.as_str()] {
            assert!(!is_object_name(name), "{name}");
        }
    }

    #[test]
    fn two_names_never_become_one() {
        let long = "a".repeat(70);
        let names = [format!("{long}b"), format!("{long}c"), "a.b".to_owned(), "a-b".to_owned(), "a..b".to_owned()];
        let made: std::collections::BTreeSet<_> = names.iter().map(|name| dns_label(name, MAX_LABEL)).collect();
        assert_eq!(made.len(), names.len(), "{made:?}");
    }

    /// Children are found again by their names, so another version of the plugin must make the same.
    #[test]
    fn names_are_the_same_in_every_version() {
        assert_eq!(dns_label("a.b", MAX_LABEL), "a-b-e27bcb35");
    }
}
