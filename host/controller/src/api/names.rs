//! The forms of names in the API. Values only.

/// The names of objects, as the API server has them: a DNS subdomain.
pub const NAME_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// The names of files with components: no path, and not hidden.
pub const FILE_NAME_PATTERN: &str = r"^[A-Za-z0-9_][-A-Za-z0-9_.]*\.wasm$";
