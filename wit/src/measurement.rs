//! The metrics that a plugin declares in its manifest, and what makes a declaration one that Prometheus can show.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The most buckets of a histogram.
const MOST_BUCKETS: usize = 64;

/// The most metrics of a plugin.
pub(crate) const MOST_METRICS: usize = 100;

/// The most labels of a metric.
const MOST_LABELS: usize = 16;

/// The bytes of a help text.
const LONGEST_HELP: usize = 1_000;

/// The bytes of the name of a metric, and of a label.
const LONGEST_NAME: usize = 200;

/// Buckets of a histogram that declares none: for durations in seconds, from 5 ms to a day.
const BUCKETS: [f64; 21] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0,
    14_400.0, 43_200.0, 86_400.0,
];

/// Ends of names that Prometheus gives to parts of a metric.
const RESERVED_ENDS: [&str; 5] = ["_bucket", "_count", "_created", "_info", "_sum"];

/// The end of a counter of things made, such as `jobs_created_total`: many operators have one, and it is the name of no part.
const CREATED: &str = "_created_total";

/// A metric that a plugin declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the metric, exactly as Prometheus shows it; a counter's ends in `_total`.
    pub name: String,
    /// What kind of metric.
    pub kind: MeasurementKind,
    /// A sentence for people.
    #[serde(default)]
    pub help: String,
    /// Names of its labels. Every sample has all of them.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Upper bounds of a histogram's buckets, ascending. Default: for durations in seconds, from 5 ms to a day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<f64>,
}

/// What a sample does to its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasurementKind {
    /// The sample is added.
    Counter,
    /// The sample is the new value.
    Gauge,
    /// The sample is observed.
    Histogram,
}

impl Measurement {
    /// The upper bounds of the buckets, declared or not.
    pub fn bounds(&self) -> &[f64] {
        if self.buckets.is_empty() { &BUCKETS } else { &self.buckets }
    }

    /// Says what is wrong with the declaration, if anything is.
    pub(crate) fn fault(&self) -> Option<String> {
        let Self { name, kind, help, labels, buckets } = self;
        let counts = *kind == MeasurementKind::Counter;
        let named = |what: &str| Some(format!("`{name}` {what}"));
        if !is_name(name) {
            named("is not a name of a metric: letters, digits and _, not beginning with a digit")
        } else if name.ends_with("_total") != counts {
            named(if counts { "is a counter, so it must end in _total" } else { "ends in _total but is no counter" })
        } else if let Some(end) = reserved_end(name) {
            named(&format!("must not end in {end}, which Prometheus uses for parts of metrics"))
        } else if help.len() > LONGEST_HELP {
            named(&format!("has a help text of {} bytes, which is more than {LONGEST_HELP}", help.len()))
        } else if labels.len() > MOST_LABELS {
            named(&format!("has {} labels, which is more than {MOST_LABELS}", labels.len()))
        } else if help.trim().is_empty() || help.contains(|c: char| c.is_control() || c == '\\') {
            named("needs a help text, of one line and without backslashes")
        } else if let Some(label) = labels.iter().find(|label| !is_name(label) || label.starts_with("__")) {
            named(&format!("has a label `{label}`: only letters, digits and _, not beginning with a digit or __"))
        } else if labels.iter().any(|label| label == "le" || label == "quantile") {
            named("has a label `le` or `quantile`, which Prometheus uses itself")
        } else if labels.iter().collect::<BTreeSet<_>>().len() != labels.len() {
            named("has a label twice")
        } else if !buckets.is_empty() && *kind != MeasurementKind::Histogram {
            named("has buckets but is no histogram")
        } else if buckets.len() > MOST_BUCKETS
            || !buckets.is_sorted_by(|a, b| a < b)
            || !buckets.iter().all(|b| b.is_finite())
        {
            named(&format!("must have at most {MOST_BUCKETS} buckets, each higher than the one before"))
        } else {
            None
        }
    }
}

fn reserved_end(name: &str) -> Option<&'static str> {
    let ends = |end: &&&str| name.trim_end_matches("_total").ends_with(**end) && !name.ends_with(CREATED);
    RESERVED_ENDS.iter().find(ends).copied()
}

fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(name: &str, kind: MeasurementKind) -> Measurement {
        Measurement { name: name.into(), kind, help: "Help.".into(), labels: vec!["a".into()], buckets: Vec::new() }
    }

    #[test]
    fn what_prometheus_cannot_show_is_refused() {
        use MeasurementKind::{Counter, Gauge, Histogram};
        type Change = fn(&mut Measurement);
        let cases: [(&str, MeasurementKind, Change, &str); 20] = [
            ("jobs_total", Counter, |_| {}, ""),
            ("jobs_created_total", Counter, |_| {}, ""),
            ("jobs_created", Gauge, |_| {}, "must not end in _created"),
            ("job_seconds", Histogram, |m| m.buckets = vec![1.0, 60.0], ""),
            ("jobs", Counter, |_| {}, "must end in _total"),
            ("jobs_total", Gauge, |_| {}, "no counter"),
            ("jobs_count", Gauge, |_| {}, "must not end in _count"),
            ("jobs_sum_total", Counter, |_| {}, "must not end in _sum"),
            ("", Gauge, |_| {}, "not a name"),
            ("1_jobs", Gauge, |_| {}, "not a name"),
            ("jobs:running", Gauge, |_| {}, "not a name"),
            ("jobs", Gauge, |m| m.help = " ".into(), "help text"),
            ("jobs", Gauge, |m| m.help = "one\ntwo".into(), "help text"),
            ("jobs", Gauge, |m| m.help = "a".repeat(1_001), "more than 1000"),
            ("jobs", Gauge, |m| m.labels = (0..17).map(|number| format!("l{number}")).collect(), "more than 16"),
            ("jobs", Gauge, |m| m.labels = vec!["__name__".into()], "label `__name__`"),
            ("jobs", Gauge, |m| m.labels = vec!["le".into()], "Prometheus uses itself"),
            ("jobs", Gauge, |m| m.labels = vec!["a".into(), "a".into()], "twice"),
            ("jobs", Gauge, |m| m.buckets = vec![1.0], "no histogram"),
            ("job_seconds", Histogram, |m| m.buckets = vec![1.0, 1.0], "each higher"),
        ];
        for (name, kind, change, expected) in cases {
            let mut changed = measurement(name, kind);
            change(&mut changed);
            let fault = changed.fault().unwrap_or_default();
            assert!(fault.contains(expected) && fault.is_empty() == expected.is_empty(), "{changed:?}: {fault}");
        }
    }
}
