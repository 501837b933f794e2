//! Making samples of the metrics that the manifest declares. The host adds them up; nothing is kept between calls.

use crate::raw::{Label, Measurement};

impl Measurement {
    /// A sample: added to a counter, set on a gauge, observed by a histogram. What is counted is counted once only if the
    /// status that is returned with it says so: count what the object's status does not say yet.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value, labels: Vec::new() }
    }

    /// With a label, which the manifest must declare; its values should be few.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push(Label { key: key.into(), value: value.into() });
        self
    }
}
