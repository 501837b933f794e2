//! The digest of a component as a `Plugin` writes it, `sha256:` and hexadecimal digits, and as the host does, the digits alone.

/// The name of the hash, as in the digests of OCI.
const ALGORITHM: &str = "sha256:";

/// The text in a `Plugin` for these digits.
pub fn text(digits: &str) -> String {
    format!("{ALGORITHM}{digits}")
}

/// The digits in the text of a `Plugin`; none if it is of another hash.
pub fn digits(text: &str) -> Option<&str> {
    text.strip_prefix(ALGORITHM)
}
