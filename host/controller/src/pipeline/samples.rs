//! Part of the check: whether the samples of an answer are of metrics that the manifest declares. Pure.

use pilothouse_engine::{Manifest, MeasurementKind, contract::Measurement};

/// The most samples of one answer.
const MOST: usize = 1_000;

/// Bytes that the value of a label may have.
const LONGEST_LABEL: usize = 256;

/// Says what is wrong with the first sample that is not allowed.
///
/// # Errors
/// A sentence that goes on from "the plugin returned".
pub fn check_samples(manifest: &Manifest, samples: &[Measurement]) -> Result<(), String> {
    if samples.len() > MOST {
        return Err(format!("{} measurements; an answer has at most {MOST}", samples.len()));
    }
    samples.iter().try_for_each(|sample| check_sample(manifest, sample))
}

fn check_sample(manifest: &Manifest, sample: &Measurement) -> Result<(), String> {
    let Measurement { name, value, labels } = sample;
    let Some(declared) = manifest.measurements.iter().find(|declared| declared.name == *name) else {
        return Err(format!("a measurement `{name}`, which its manifest does not declare"));
    };
    let mut keys: Vec<_> = labels.iter().map(|label| &label.key).collect();
    let mut expected: Vec<_> = declared.labels.iter().collect();
    keys.sort();
    expected.sort();
    if keys != expected {
        return Err(format!("a measurement `{name}` with the labels {keys:?}; its manifest declares {expected:?}"));
    }
    if let Some(label) = labels.iter().find(|label| label.value.len() > LONGEST_LABEL) {
        let key = &label.key;
        return Err(format!("a measurement `{name}` whose label `{key}` has more than {LONGEST_LABEL} bytes"));
    }
    if !value.is_finite() || (declared.kind == MeasurementKind::Counter && *value < 0.0) {
        return Err(format!("a measurement `{name}` of {value}, which cannot be"));
    }
    Ok(())
}

/// Whether counting a sample twice is wrong: what a gauge is set to, it may be set to again.
pub fn counts(manifest: &Manifest, samples: &[Measurement]) -> bool {
    let is_gauge = |sample: &Measurement| {
        let mut declared = manifest.measurements.iter().filter(|declared| declared.name == sample.name);
        declared.any(|declared| declared.kind == MeasurementKind::Gauge)
    };
    samples.iter().any(|sample| !is_gauge(sample))
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::{Measurement as Declared, contract::KindRef, contract::Label};

    use super::*;

    fn manifest() -> Manifest {
        let declared = |name: &str, kind, labels: &[&str]| Declared {
            name: name.into(),
            kind,
            help: "Help.".into(),
            labels: labels.iter().map(ToString::to_string).collect(),
            buckets: Vec::new(),
        };
        let measurements = vec![
            declared("jobs_total", MeasurementKind::Counter, &["a", "b"]),
            declared("job_seconds", MeasurementKind::Histogram, &[]),
            declared("jobs", MeasurementKind::Gauge, &[]),
        ];
        Manifest { measurements, ..Manifest::new("web", "1", KindRef::new("example.com/v1", "Web")) }
    }

    fn sample(name: &str, value: f64, labels: &[(&str, &str)]) -> Measurement {
        let labels = labels.iter().map(|(key, value)| Label { key: (*key).into(), value: (*value).into() });
        Measurement { name: name.into(), value, labels: labels.collect() }
    }

    #[test]
    fn samples_are_of_declared_metrics_with_all_their_labels() {
        let long = "x".repeat(LONGEST_LABEL + 1);
        for (sample, expected) in [
            (sample("jobs_total", 1.0, &[("b", ""), ("a", "any \"text\"")]), ""),
            (sample("jobs", -1.0, &[]), ""),
            (sample("other_total", 1.0, &[]), "does not declare"),
            (sample("jobs_total", 1.0, &[("a", "")]), "with the labels [\"a\"]"),
            (sample("jobs_total", 1.0, &[("a", ""), ("a", "")]), "with the labels"),
            (sample("jobs", 1.0, &[("a", "")]), "with the labels"),
            (sample("jobs_total", 1.0, &[("a", &long), ("b", "")]), "more than 256 bytes"),
            (sample("jobs_total", -1.0, &[("a", ""), ("b", "")]), "cannot be"),
            (sample("job_seconds", f64::NAN, &[]), "cannot be"),
            (sample("jobs", f64::INFINITY, &[]), "cannot be"),
        ] {
            let fault = check_samples(&manifest(), std::slice::from_ref(&sample)).err().unwrap_or_default();
            assert!(fault.contains(expected) && fault.is_empty() == expected.is_empty(), "{sample:?}: {fault}");
        }
        assert!(check_samples(&manifest(), &vec![sample("jobs", 1.0, &[]); MOST + 1]).is_err());
    }

    #[test]
    fn what_is_set_counts_nothing() {
        let gauge = sample("jobs", 1.0, &[]);
        assert!(!counts(&manifest(), &[]) && !counts(&manifest(), std::slice::from_ref(&gauge)));
        assert!(counts(&manifest(), &[gauge, sample("job_seconds", 1.0, &[])]));
    }
}
