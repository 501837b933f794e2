//! The forms of names in the API. Values only.

/// The names of objects, as the API server has them: a DNS subdomain.
pub const NAME_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
