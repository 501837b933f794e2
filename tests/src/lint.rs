//! Checks the names of metrics by the rules of `promtool check metrics`. Knows no metric by name.

use crate::metrics::{Family, Samples};

/// Units that are multiples or parts of a base unit, and other names of base units.
const NO_BASE_UNITS: [&str; 22] = [
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "bits",
    "kibibytes",
    "mebibytes",
    "percent",
    "ns",
    "us",
    "ms",
    "sec",
    "secs",
    "kb",
    "mb",
    "gb",
];

/// All violations in an exposition, one sentence each.
pub fn lint(samples: &Samples) -> Vec<String> {
    samples.families.iter().flat_map(|(name, family)| of_family(name, family)).collect()
}

fn of_family(name: &str, family: &Family) -> Vec<String> {
    let Family { kind, help, labels, .. } = family;
    let words: Vec<_> = name.split('_').collect();
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("{name} ({kind}): {what}"));
        }
    };
    check(!help.trim().is_empty(), "no help");
    check(is_snake(name), "not in snake case");
    check(name.ends_with("_total") == (kind == "counter"), "counters end in _total, and nothing else does");
    let reserved = ["_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end));
    check(!reserved, "an end that belongs to histograms");
    check(
        !["counter", "gauge", "histogram", "summary"].iter().any(|kind| words.contains(kind)),
        "its type in its name",
    );
    check(!NO_BASE_UNITS.iter().any(|unit| words.contains(unit)), "no base unit");
    for label in labels {
        check(is_snake(label), "a label that is not in snake case");
        check(label != "quantile", "a label of summaries");
    }
    wrong
}

fn is_snake(text: &str) -> bool {
    !text.contains("__") && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;

    #[test]
    fn finds_what_promtool_finds() -> Result<()> {
        for (name, kind, findings) in [
            ("job_duration_seconds", "gauge", 0),
            ("jobDuration", "gauge", 1),
            ("job_duration_milliseconds", "gauge", 1),
            ("job_gauge", "gauge", 1),
            ("jobs_total", "gauge", 1),
        ] {
            let text = format!("# HELP {name} Help.\n# TYPE {name} {kind}\n{name} 1\n# EOF\n");
            let found = lint(&Samples::parse(&text)?);
            assert_eq!(found.len(), findings, "{name}: {found:?}");
        }
        Ok(())
    }
}
