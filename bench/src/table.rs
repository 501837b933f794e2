//! Medians and ranges of repeated measurements, and of the variants' ratios. Knows nothing of what was measured.

use std::collections::BTreeMap;

/// One measurement: what, in which unit, how much.
pub type Measured = (&'static str, f64);

/// Measurements by row and variant.
#[derive(Default)]
pub struct Table {
    rows: Vec<&'static str>,
    values: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Table {
    /// Adds one run's measurements of several variants.
    pub fn add_all(&mut self, variants: &[&'static str], measured: Vec<Vec<Measured>>) {
        variants.iter().zip(measured).for_each(|(variant, measured)| self.add(variant, measured));
    }

    /// Adds one run's measurements of a variant.
    pub fn add(&mut self, variant: &'static str, measured: Vec<Measured>) {
        for (row, value) in measured {
            if !self.rows.contains(&row) {
                self.rows.push(row);
            }
            self.values.entry((row, variant)).or_default().push(value);
        }
    }

    /// Takes only some of the rows.
    pub fn only(mut self, accepts: impl Fn(&str) -> bool) -> Self {
        self.rows.retain(|row| accepts(row));
        self
    }

    /// The table as Markdown: a median with its range per variant, and of the last variant's ratio to the first. Variants
    /// have as many runs as each other, in the same order. Nothing at all if nothing was measured.
    pub fn print(&self, title: &str, variants: &[&'static str]) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let (names, rule) = (variants.join(" | "), "---|".repeat(variants.len()));
        let mut text = format!("\n{title}\n\n| | {names} | ratio |\n|---|{rule}---|\n");
        for row in &self.rows {
            let cells: Vec<_> = variants.iter().map(|variant| cell(self.measured(row, variant).to_vec())).collect();
            let ratios = variants.first().zip(variants.last()).map(|(first, last)| self.ratios(row, first, last));
            text += &format!("| {row} | {} | {} |\n", cells.join(" | "), cell(ratios.unwrap_or_default()));
        }
        text
    }

    /// The median of a variant's measurements; none if there are none.
    pub fn median(&self, row: &'static str, variant: &'static str) -> Option<f64> {
        median_of(self.measured(row, variant).to_vec())
    }

    /// The median of the repeats' ratios of one variant to another; none if there are none.
    pub fn ratio(&self, row: &'static str, first: &'static str, last: &'static str) -> Option<f64> {
        median_of(self.ratios(row, first, last))
    }

    fn measured(&self, row: &'static str, variant: &'static str) -> &[f64] {
        self.values.get(&(row, variant)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The repeats' own ratios: within a repeat the machine is more or less the same, over an hour it is not.
    fn ratios(&self, row: &'static str, first: &'static str, last: &'static str) -> Vec<f64> {
        let pairs = self.measured(row, last).iter().zip(self.measured(row, first));
        pairs.filter(|(_, first)| **first > 0.0).map(|(last, first)| last / first).collect()
    }
}

/// The median, and from where to where the values go if they differ; nothing if there are none.
fn cell(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), median(&values), values.last()) {
        (Some(least), Some(median), Some(most)) if least != most => format!("{median:.2} ({least:.2}..{most:.2})"),
        (_, Some(median), _) => format!("{median:.2}"),
        _ => String::new(),
    }
}

fn median_of(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    median(&values)
}

/// Of an even number of values, the middle of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len().checked_sub(1)?) / 2)?;
    Some(lower.midpoint(*upper))
}
