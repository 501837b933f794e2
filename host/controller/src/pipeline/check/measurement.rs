//! Checks the measurements of an answer against the metrics that the manifest declares. Pure.

use pilothouse_engine::{Manifest, MeasurementKind, contract::Measurement};

use super::refusal::Refusal;

/// The most measurements of one answer.
const MAX_MEASUREMENTS: usize = 1_000;

/// The most bytes of a label's value.
const MAX_LABEL_BYTES: usize = 256;

/// Checks all measurements.
///
/// # Errors
/// [`Refusal::Measurement`] for the first violation.
pub(super) fn check_measurements(manifest: &Manifest, measurements: &[Measurement]) -> Result<(), Refusal> {
    if measurements.len() > MAX_MEASUREMENTS {
        let count = measurements.len();
        return Err(Refusal::Measurement(format!("{count} measurements; an answer has at most {MAX_MEASUREMENTS}")));
    }
    measurements.iter().try_for_each(|measurement| check_measurement(manifest, measurement))
}

fn check_measurement(manifest: &Manifest, measurement: &Measurement) -> Result<(), Refusal> {
    let refuse = |what| Err(Refusal::Measurement(what));
    let Measurement { name, value, labels } = measurement;
    let Some(declared) = manifest.measurements.iter().find(|declared| declared.name == *name) else {
        return refuse(format!(
            "a measurement `{name}`, which its manifest does not declare; add it to the manifest's `measurements`"
        ));
    };
    let mut keys: Vec<_> = labels.iter().map(|label| &label.key).collect();
    let mut expected: Vec<_> = declared.labels.iter().collect();
    keys.sort();
    expected.sort();
    if keys != expected {
        return refuse(format!("a measurement `{name}` with the labels {keys:?}; its manifest declares {expected:?}"));
    }
    // Every value of a label is a series of its own in memory, here and in Prometheus.
    if let Some(label) = labels.iter().find(|label| label.value.len() > MAX_LABEL_BYTES) {
        let key = &label.key;
        return refuse(format!("a measurement `{name}` whose label `{key}` has more than {MAX_LABEL_BYTES} bytes"));
    }
    if !value.is_finite() || (declared.kind == MeasurementKind::Counter && *value < 0.0) {
        return refuse(format!("a measurement `{name}` of {value}, which cannot be"));
    }
    Ok(())
}

/// Whether any measurement adds to a total, so that to record it twice would be wrong. A gauge can be set to the same value again.
pub fn accumulates(manifest: &Manifest, measurements: &[Measurement]) -> bool {
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
    fn measurements_need_a_declared_metric_and_exactly_its_labels() {
        let long = "x".repeat(MAX_LABEL_BYTES + 1);
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
        assert!(check_measurements(&manifest(), &vec![measurement("jobs", 1.0, &[]); MAX_MEASUREMENTS + 1]).is_err());
    }

    #[test]
    fn gauges_do_not_accumulate() {
        let gauge = measurement("jobs", 1.0, &[]);
        assert!(!accumulates(&manifest(), &[]) && !accumulates(&manifest(), std::slice::from_ref(&gauge)));
        assert!(accumulates(&manifest(), &[gauge, measurement("job_seconds", 1.0, &[])]));
    }
}
