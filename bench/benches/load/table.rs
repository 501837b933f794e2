//! Medians of repeated measurements, and the ratio of the variants. Knows nothing of what was measured.

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
    /// Adds one run's measurements.
    pub fn add(&mut self, variant: &'static str, measured: Vec<Measured>) {
        for (row, value) in measured {
            if !self.rows.contains(&row) {
                self.rows.push(row);
            }
            self.values.entry((row, variant)).or_default().push(value);
        }
    }

    /// The table as Markdown: a median with its range per variant, and the last variant's ratio to the first.
    pub fn print(&self, variants: &[&'static str]) -> String {
        let mut text =
            format!("\n| | {} | ratio |\n|---|{}---|\n", variants.join(" | "), "---|".repeat(variants.len()));
        for row in &self.rows {
            let cells: Vec<_> = variants.iter().map(|variant| self.cell(row, variant)).collect();
            let median = |variant: Option<&&'static str>| variant.and_then(|variant| self.median(row, variant));
            let ratio = median(variants.last()).zip(median(variants.first())).filter(|(_, first)| *first > 0.0);
            let ratio = ratio.map_or_else(String::new, |(last, first)| format!("{:.2}", last / first));
            text += &format!("| {row} | {} | {ratio} |\n", cells.join(" | "));
        }
        text
    }

    fn sorted(&self, row: &'static str, variant: &'static str) -> Vec<f64> {
        let mut values = self.values.get(&(row, variant)).cloned().unwrap_or_default();
        values.sort_by(f64::total_cmp);
        values
    }

    /// Of an even number of repeats, the middle of the two in the middle.
    fn median(&self, row: &'static str, variant: &'static str) -> Option<f64> {
        let values = self.sorted(row, variant);
        let upper = values.get(values.len() / 2)?;
        let lower = values.get((values.len() - 1) / 2)?;
        Some(lower.midpoint(*upper))
    }

    fn cell(&self, row: &'static str, variant: &'static str) -> String {
        let values = self.sorted(row, variant);
        match (values.first(), self.median(row, variant), values.last()) {
            (Some(least), Some(median), Some(most)) if least != most => format!("{median:.2} ({least:.2}..{most:.2})"),
            (_, Some(median), _) => format!("{median:.2}"),
            _ => "-".to_owned(),
        }
    }
}
