//! Reads an exposition of metrics, strictly: a line that Prometheus would not take is an error here. Knows no metric by
//! name.

use anyhow::{Context, Result, bail, ensure};

/// All samples of one exposition.
#[derive(Debug)]
pub struct Samples(Vec<Sample>);

/// One line of an exposition.
#[derive(Debug)]
pub struct Sample {
    /// The metric, with a suffix such as `_total` or `_bucket`.
    pub name: String,
    /// Label names and values.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

impl Samples {
    /// Reads an exposition in OpenMetrics' text format.
    ///
    /// # Errors
    /// The first line that is malformed.
    pub fn parse(exposition: &str) -> Result<Self> {
        let (mut samples, mut ended) = (Vec::new(), false);
        for line in exposition.lines().filter(|line| !line.is_empty()) {
            ensure!(!ended, "the line {line:?} comes after the end");
            match line.strip_prefix('#') {
                Some(" EOF") => ended = true,
                Some(comment) => check_comment(comment).with_context(|| format!("in the line {line:?}"))?,
                None => samples.push(sample(line).with_context(|| format!("in the line {line:?}"))?),
            }
        }
        ensure!(ended, "the exposition has no end: {exposition}");
        Ok(Self(samples))
    }

    /// The samples of a metric that have all these labels, added up; zero where there are none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).sum()
    }

    /// Whether a metric has a sample with all these labels.
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.matching(name, labels).next().is_some()
    }

    fn matching<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Sample> {
        let has =
            |sample: &Sample, (key, value): &(&str, &str)| sample.labels.iter().any(|(k, v)| k == key && v == value);
        self.0.iter().filter(move |sample| sample.name == name && labels.iter().all(|label| has(sample, label)))
    }
}

/// `HELP`, `TYPE` or `UNIT`, a metric's name, a text.
fn check_comment(comment: &str) -> Result<()> {
    let mut words = comment.trim_start().splitn(3, ' ');
    let (Some(keyword), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else {
        bail!("a comment has three parts");
    };
    ensure!(is_name(name), "{name:?} is not a name");
    match keyword {
        "HELP" | "UNIT" => Ok(()),
        "TYPE" => {
            ensure!(["counter", "gauge", "histogram", "info", "unknown"].contains(&text), "{text:?} is not a type");
            Ok(())
        }
        _ => bail!("{keyword:?} is not a keyword"),
    }
}

/// `name{label="value",…} value`.
fn sample(line: &str) -> Result<Sample> {
    let (series, value) = line.rsplit_once(' ').context("no value")?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').context("the labels do not end")?),
        None => (series, ""),
    };
    ensure!(is_name(name), "{name:?} is not a name");
    let labels = labels.split_terminator(',').map(label).collect::<Result<_>>()?;
    Ok(Sample { name: name.to_owned(), labels, value: value.parse()? })
}

fn label(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').context("a label without a value")?;
    ensure!(is_name(name), "{name:?} is not a name");
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).context("a value without quotes")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}
