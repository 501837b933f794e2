//! Who writes, and through what. A value only.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api_server::{fields::Set, schema::Node};

/// Who writes, and through what.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the manager.
    pub manager: &'a str,
    /// The version of the kind in the request.
    pub api_version: &'a Arc<str>,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The fields that cannot be written this way, and so cannot be owned.
    pub reset: &'a Set,
    /// The time of the server.
    pub now: Timestamp,
    /// The schema of the kind.
    pub schema: &'a Node,
}
