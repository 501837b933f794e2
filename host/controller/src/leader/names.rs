//! The names and labels of Leases. Within the limits of the API server, and always the same for the same. Decides nothing.

use pilothouse_engine::digest;

/// The API server's limit of an object's name, and that of the value of a label.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// How many digits of a digest tell names apart that are too long.
const DIGITS: usize = 16;

/// The name of the Lease of a host, where that of the host that leads has the name `lease`.
pub(super) fn host_lease(lease: &str, identity: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = identity.chars().map(plain).collect();
    object_name(format!("{lease}.host.{}", name.trim_matches('-')))
}

/// The value of the labels that the Leases of one installation have.
pub(super) fn label(lease: &str) -> String {
    short(lease.to_owned(), MAX_LABEL)
}

/// A name as an object may have it.
pub(super) fn object_name(name: String) -> String {
    short(name, MAX_NAME)
}

/// A name that is too long is cut, with a digest of the whole.
fn short(name: String, limit: usize) -> String {
    if name.len() <= limit {
        return name;
    }
    let begin = &name[..name.floor_char_boundary(limit - DIGITS - 1)];
    format!("{}-{}", begin.trim_end_matches(['.', '-']), &digest(name.as_bytes())[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_stay_apart_and_within_the_limits() {
        let long = |end: &str| object_name(format!("pilothouse.kind.{}.example.com{end}", "g".repeat(240)));
        let names = ["a", "b"].map(long);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(names[0], long("a"), "always the same");
        let cut = label(&"l".repeat(100));
        assert!(cut.len() <= MAX_LABEL && cut != label(&"l".repeat(101)), "{cut}");
        assert_eq!(label("pilothouse"), "pilothouse");
    }

    #[test]
    fn the_lease_of_a_host_is_called_like_its_machine() {
        assert_eq!(host_lease("pilothouse", "Node_1.example_0af3"), "pilothouse.host.node-1-example-0af3");
    }
}
