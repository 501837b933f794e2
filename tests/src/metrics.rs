//! A strict parser for expositions of metrics: an error is whatever Prometheus would refuse or misinterpret.
//! Knows no metric by name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// All metrics of one exposition.
#[derive(Debug, Default)]
pub struct Samples {
    /// The metrics by name; a counter's ends in `_total`.
    pub families: BTreeMap<String, Family>,
    samples: Vec<Sample>,
}

/// A metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// What it means.
    pub help: String,
    /// The labels that its samples have, without `le` of a histogram.
    pub labels: BTreeSet<String>,
    /// How many samples it has.
    pub samples: usize,
}

/// One line of an exposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric, with a suffix such as `_total` or `_bucket`.
    pub name: String,
    /// Label names and values.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// The two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenMetrics: a counter is described without `_total`, and there is an end mark.
    OpenMetrics,
    /// The Prometheus text format.
    Classic,
}

impl Samples {
    /// Reads an exposition in OpenMetrics' text format.
    ///
    /// # Errors
    /// The first line that is malformed.
    pub fn parse(exposition: &str) -> Result<Self> {
        Self::read(exposition, Dialect::OpenMetrics)
    }

    /// Reads an exposition.
    ///
    /// # Errors
    /// The first line that is malformed, or the first metric that contradicts itself.
    pub fn read(exposition: &str, dialect: Dialect) -> Result<Self> {
        let mut samples = Self::default();
        let (mut ended, mut current) = (false, None);
        for line in exposition.lines().filter(|line| !line.is_empty()) {
            ensure!(!ended, "the line {line:?} comes after the end");
            let taken = match line.strip_prefix("# ") {
                Some("EOF") => {
                    ended = true;
                    Ok(())
                }
                Some(comment) => samples.describe(comment, dialect, &mut current),
                None => sample(line).and_then(|sample| samples.add(sample, current.as_deref())),
            };
            taken.with_context(|| format!("in the line {line:?}"))?;
        }
        ensure!(
            ended == (dialect == Dialect::OpenMetrics),
            "the exposition has no end, or one that it should not have"
        );
        samples.check_histograms()?;
        Ok(samples)
    }

    /// The samples of a metric that have all these labels, added up; zero where there are none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).fold(0.0, |all, value| all + value)
    }

    /// Whether a metric has a sample with all these labels.
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.matching(name, labels).next().is_some()
    }

    /// The samples of a metric that have all these labels.
    pub fn matching<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Sample> {
        let has = |sample: &Sample, (key, value): &(&str, &str)| sample.label(key) == Some(*value);
        self.samples.iter().filter(move |sample| sample.name == name && labels.iter().all(|label| has(sample, label)))
    }

    /// `HELP` begins a metric, `TYPE` follows.
    fn describe(&mut self, comment: &str, dialect: Dialect, current: &mut Option<String>) -> Result<()> {
        let mut words = comment.splitn(3, ' ');
        let (Some(keyword), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else {
            bail!("a comment has three parts");
        };
        ensure!(is_name(name), "{name:?} is not a name");
        match keyword {
            "HELP" => {
                let help = text.to_owned();
                let before = self.families.insert(name.to_owned(), Family { help, ..Family::default() });
                ensure!(before.is_none(), "{name} is described twice");
                *current = Some(name.to_owned());
            }
            "TYPE" => {
                ensure!(["counter", "gauge", "histogram"].contains(&text), "{text:?} is not a type");
                ensure!(current.as_deref() == Some(name), "the type of {name} does not follow its help");
                let mut family = self.families.remove(name).context("no help")?;
                text.clone_into(&mut family.kind);
                let ends = if text == "counter" && dialect == Dialect::OpenMetrics { "_total" } else { "" };
                let full = format!("{name}{ends}");
                ensure!(self.families.insert(full.clone(), family).is_none(), "{full} is there twice");
                *current = Some(full);
            }
            _ => bail!("{keyword:?} is not a keyword"),
        }
        Ok(())
    }

    /// A sample belongs to the metric that was described before it.
    fn add(&mut self, sample: Sample, current: Option<&str>) -> Result<()> {
        let name = current.context("a sample of nothing")?;
        let family = self.families.get_mut(name).context("a sample of nothing")?;
        let part = sample.name.strip_prefix(name).context("a sample of another metric")?;
        let parts: &[&str] = match family.kind.as_str() {
            "histogram" => &["_bucket", "_count", "_sum"],
            "counter" | "gauge" => &[""],
            _ => bail!("{name} has no type"),
        };
        ensure!(parts.contains(&part), "{:?} is no part of a {}", sample.name, family.kind);
        ensure!(family.kind != "counter" || sample.value >= 0.0, "a counter below zero");
        let labels: BTreeSet<_> = sample.labels.iter().map(|(key, _)| key.clone()).filter(|key| key != "le").collect();
        ensure!(sample.labels.len() == labels.len() + usize::from(part == "_bucket"), "a label twice, or `le`");
        ensure!(family.samples == 0 || family.labels == labels, "other labels than the samples before");
        family.labels = labels;
        family.samples += 1;
        let same = |other: &Sample| other.name == sample.name && other.labels == sample.labels;
        ensure!(!self.samples.iter().any(same), "a sample twice");
        self.samples.push(sample);
        Ok(())
    }

    /// Buckets ascend, hold all that the ones before hold, and the last one holds everything.
    fn check_histograms(&self) -> Result<()> {
        for (name, _) in self.families.iter().filter(|(_, family)| family.kind == "histogram") {
            let (bucket, count) = (format!("{name}_bucket"), format!("{name}_count"));
            for whole in self.samples.iter().filter(|sample| sample.name == count) {
                let of_series = |sample: &&Sample| {
                    sample.name == bucket && whole.labels.iter().all(|label| sample.labels.contains(label))
                };
                let (mut bound, mut held) = (f64::NEG_INFINITY, 0.0);
                for sample in self.samples.iter().filter(of_series) {
                    let next: f64 = sample.label("le").context("a bucket without a bound")?.parse()?;
                    ensure!(bound < next && held <= sample.value, "the buckets of {name} do not ascend: {sample:?}");
                    (bound, held) = (next, sample.value);
                }
                ensure!(bound == f64::INFINITY && held == whole.value, "the buckets of {name} do not hold everything");
            }
        }
        Ok(())
    }
}

impl Sample {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
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
    Ok(Sample { name: name.to_owned(), labels: labels_of(labels)?, value: value.parse()? })
}

/// `label="value",…`, where a value may hold anything, with `\`, `"` and line ends escaped.
fn labels_of(text: &str) -> Result<Vec<(String, String)>> {
    let (mut labels, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").context("a label without a value")?;
        ensure!(is_name(name), "{name:?} is not a name");
        let (mut value, mut characters) = (String::new(), after.char_indices());
        let end = loop {
            match characters.next().context("a value that does not end")? {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next().context("a value that does not end")?.1 {
                    'n' => '\n',
                    escaped @ ('"' | '\\') => escaped,
                    other => bail!("\\{other} is no escape"),
                }),
                (_, character) => value.push(character),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        ensure!(rest.is_empty() || rest.len() > 1 && rest.starts_with(','), "no comma between labels");
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Ok(labels)
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTOGRAM: &str = "# HELP h Help.\n# TYPE h histogram\nh_sum 3\nh_count 2\n";

    #[test]
    fn reads_what_prometheus_reads() -> Result<()> {
        let text = format!(
            "# HELP c Help.\n# TYPE c counter\nc_total{{a=\"x,\\\"y\\\"\",b=\"\"}} 1\n{HISTOGRAM}\
             h_bucket{{le=\"1\"}} 1\nh_bucket{{le=\"+Inf\"}} 2\n# EOF\n"
        );
        let samples = Samples::parse(&text)?;
        assert_eq!(samples.sum("c_total", &[("a", "x,\"y\""), ("b", "")]), 1.0);
        assert_eq!(samples.families["h"].kind, "histogram");
        assert!(Samples::read(&text.replace("# EOF\n", ""), Dialect::Classic).is_err(), "c has no sample of its name");
        Ok(())
    }

    #[test]
    fn refuses_what_prometheus_would_misread() {
        let gauge = |samples: &str| format!("# HELP g Help.\n# TYPE g gauge\n{samples}# EOF\n");
        for (wrong, why) in [
            ("# HELP g Help.\n# TYPE g gauge\ng 1\n".to_owned(), "no end"),
            ("g 1\n# EOF\n".to_owned(), "no description"),
            ("# TYPE g gauge\ng 1\n# EOF\n".to_owned(), "no help"),
            (gauge("other 1\n"), "another metric"),
            (gauge("g{a=\"1\"} 1\ng{b=\"1\"} 1\n"), "other labels"),
            (gauge("g 1\ng 1\n"), "twice"),
            (gauge("g{a=\"1} 1\n"), "an open quote"),
            (gauge("g{le=\"1\"} 1\n"), "a bucket of a gauge"),
            ("# HELP c Help.\n# TYPE c counter\nc 1\n# EOF\n".to_owned(), "a counter without _total"),
            ("# HELP c Help.\n# TYPE c counter\nc_total -1\n# EOF\n".to_owned(), "a counter below zero"),
            (format!("{HISTOGRAM}h_bucket{{le=\"1\"}} 2\n# EOF\n"), "no last bucket"),
            (format!("{HISTOGRAM}h_bucket{{le=\"+Inf\"}} 1\n# EOF\n"), "a last bucket that misses one"),
            (
                format!(
                    "{HISTOGRAM}h_bucket{{le=\"2\"}} 0\nh_bucket{{le=\"1\"}} 1\nh_bucket{{le=\"+Inf\"}} 2\n# EOF\n"
                ),
                "le",
            ),
        ] {
            assert!(Samples::parse(&wrong).is_err(), "{why}: {wrong}");
        }
    }
}
