//! Whether the measurements of an answer are of metrics that the manifest declares. Pure.

use pilothouse_engine::{Manifest, MeasurementKind, contract::Measurement};

use super::refusal::Refusal;

/// The most measurements of one answer.
const MOST: usize = 1_000;

/// Bytes that the value of a label may have.
const LONGEST_LABEL: usize = 256;

/// Refuses the first measurement that is not allowed.
///
/// # Errors
/// [`Refusal::Measurement`].
pub(super) fn check_measurements(manifest: &Manifest, measurements: &[Measurement]) -> Result<(), Refusal> {
    if measurements.len() > MOST {
        let count = measurements.len();
        return Err(Refusal::Measurement(format!("{count} measurements; an answer has at most {MOST}")));
    }
    measurements.iter().try_for_each(|measurement| check_measurement(manifest, measurement))
}

fn check_measurement(manifest: &Manifest, measurement: &Measurement) -> Result<(), Refusal> {
    let refuse = |what| Err(Refusal::Measurement(what));
    let Measurement { name, value, labels } = measurement;
    let Some(declared) = manifest.measurements.iter().find(|declared| declared.name == *name) else {
        return refuse(format!("a measurement `{name}`, which its manifest does not declare"));
    };
    let mut keys: Vec<_> = labels.iter().map(|label| &label.key).collect();
    let mut expected: Vec<_> = declared.labels.iter().collect();
    keys.sort();
    expected.sort();
    if keys != expected {
        return refuse(format!("a measurement `{name}` with the labels {keys:?}; its manifest declares {expected:?}"));
    }
    if let Some(label) = labels.iter().find(|label| label.value.len() > LONGEST_LABEL) {
        let key = &label.key;
        return refuse(format!("a measurement `{name}` whose label `{key}` has more than {LONGEST_LABEL} bytes"));
    }
    if !value.is_finite() || (declared.kind == MeasurementKind::Counter && *value < 0.0) {
        return refuse(format!("a measurement `{name}` of {value}, which cannot be"));
    }
    Ok(())
}

/// Whether counting one of them twice is wrong: what a gauge is set to, it may be set to again.
pub fn counts(manifest: &Manifest, measurements: &[Measurement]) -> bool {
    let is_gauge = |measurement: &Measurement| {
        let mut declared = manifest.measurements.iter().filter(|declared| declared.name == measurement.name);
        declared.any(|declared| declared.kind == MeasurementKind::Gauge)
    };
    measurements.iter().any(|measurement| !is_gauge(measurement))
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

    fn measurement(name: &str, value: f64, labels: &[(&str, &str)]) -> Measurement {
        let labels = labels.iter().map(|(key, value)| Label { key: (*key).into(), value: (*value).into() });
        Measurement { name: name.into(), value, labels: labels.collect() }
    }

    #[test]
    fn measurements_are_of_declared_metrics_with_all_their_labels() {
        let long = "x".repeat(LONGEST_LABEL + 1);
        for (measurement, expected) in [
            (measurement("jobs_total", 1.0, &[("b", ""), ("a", "any \"text\"")]), ""),
            (measurement("jobs", -1.0, &[]), ""),
            (measurement("other_total", 1.0, &[]), "does not declare"),
            (measurement("jobs_total", 1.0, &[("a", "")]), "with the labels [\"a\"]"),
            (measurement("jobs_total", 1.0, &[("a", ""), ("a", "")]), "with the labels"),
            (measurement("jobs", 1.0, &[("a", "")]), "with the labels"),
            (measurement("jobs_total", 1.0, &[("a", &long), ("b", "")]), "more than 256 bytes"),
            (measurement("jobs_total", -1.0, &[("a", ""), ("b", "")]), "cannot be"),
            (measurement("job_seconds", f64::NAN, &[]), "cannot be"),
            (measurement("jobs", f64::INFINITY, &[]), "cannot be"),
        ] {
            let fault = check_measurements(&manifest(), std::slice::from_ref(&measurement))
                .err()
                .map(|refusal| refusal.to_string())
                .unwrap_or_default();
            assert!(fault.contains(expected) && fault.is_empty() == expected.is_empty(), "{measurement:?}: {fault}");
        }
        assert!(check_measurements(&manifest(), &vec![measurement("jobs", 1.0, &[]); MOST + 1]).is_err());
    }

    #[test]
    fn what_is_set_counts_nothing() {
        let gauge = measurement("jobs", 1.0, &[]);
        assert!(!counts(&manifest(), &[]) && !counts(&manifest(), std::slice::from_ref(&gauge)));
        assert!(counts(&manifest(), &[gauge, measurement("job_seconds", 1.0, &[])]));
    }
}
