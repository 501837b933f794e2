//! Making measurements of what the manifest declares. The host adds them up; nothing is kept between calls.

use crate::raw::{Label, Measurement};

impl Measurement {
    /// A measurement: the host adds it to a counter, sets a gauge to it, or a histogram observes it.
    ///
    /// An event is counted exactly once only if the status of the same response records it. So count what the status in the
    /// request does not say yet: a job that ends is counted in the response that sets its `completionTime`.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value, labels: Vec::new() }
    }

    /// With a label, which the manifest must declare. A label should have few different values.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push(Label { key: key.into(), value: value.into() });
        self
    }
}
