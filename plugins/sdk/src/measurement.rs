//! Making samples of the metrics that the manifest declares. The host adds them up; nothing is kept between calls.

use crate::raw::{Label, Measurement};

impl Measurement {
    /// A sample: added to a counter, set on a gauge, observed by a histogram.
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
