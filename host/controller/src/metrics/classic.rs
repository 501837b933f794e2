//! Converts OpenMetrics text into Prometheus' classic text format. There, the description of a counter has the suffix `_total`,
//! bucket bounds are written as Go writes them, and no `# EOF` line ends the text. Knows no metric by name.

/// Writes an OpenMetrics exposition in the classic format.
pub(super) fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        // `# HELP` comes before `# TYPE`, and only the latter says whether the metric is a counter.
        let counts = line.starts_with("# TYPE ") && line.ends_with(" counter")
            || line.starts_with("# HELP ") && lines.peek().is_some_and(|kind| kind.ends_with(" counter"));
        if counts && let Some((keyword, name, rest)) = parts(line) {
            text.push_str(&format!("# {keyword} {name}_total {rest}\n"));
        } else if let Some((start, bound, rest)) = bucket(line) {
            text.push_str(&format!("{start}{}{rest}\n", as_go_writes(bound)));
        } else if line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn parts(comment: &str) -> Option<(&str, &str, &str)> {
    let mut words = comment.strip_prefix("# ")?.splitn(3, ' ');
    Some((words.next()?, words.next()?, words.next()?))
}

/// Splits the line of a bucket at its bound, which is the first label.
fn bucket(line: &str) -> Option<(&str, &str, &str)> {
    let start = line.find("_bucket{le=\"")? + "_bucket{le=\"".len();
    let end = start + line[start..].find('"')?;
    Some((&line[..start], &line[start..end], &line[end..]))
}

/// `1` for `1.0`, `1e-08` for `1e-8`: dashboards select buckets by these texts.
fn as_go_writes(bound: &str) -> String {
    match bound.split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => bound.strip_suffix(".0").unwrap_or(bound).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_the_names_of_their_samples() {
        let open_metrics = "# HELP a_b Some help.\n# TYPE a_b counter\na_b_total{x=\"y\"} 1\n# HELP c A counter\n\
                            # TYPE c gauge\nc 2\n# EOF\n";
        let expected = "# HELP a_b_total Some help.\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 1\n# HELP c A counter\n\
                        # TYPE c gauge\nc 2\n";
        assert_eq!(classic(open_metrics), expected);
    }

    #[test]
    fn bounds_are_as_go_writes_them() {
        for (bound, expected) in [("1.0", "1"), ("0.005", "0.005"), ("1e-8", "1e-08"), ("+Inf", "+Inf")] {
            let line = |bound: &str| format!("h_bucket{{le=\"{bound}\",a=\"1.0\"}} 1\n");
            assert_eq!(classic(&line(bound)), line(expected));
        }
    }
}
