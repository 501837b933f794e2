//! What is remembered of a `Plugin` that another plugin keeps from work. Decides nothing.

use pilothouse_engine::Manifest;

use crate::source::loader::SourceId;

/// A `Plugin` that another plugin keeps from work.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// What it declares.
    pub manifest: Manifest,
    /// Where the plugin comes from that was in its way; none for a metric.
    pub by: Option<SourceId>,
    /// The changes so far, at that time.
    pub at: u64,
}
