//! A plot of `make compare`: what the host needs, as a share of what the operator on controller-runtime needs.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

/// What is shown: the row of the table, and what the plot calls it.
const ROWS: [(&str, &str); 7] = [
    ("create all: total CPU, ms each", "create: CPU of operator, API server and etcd"),
    ("change all: total CPU, ms each", "change: CPU of operator, API server and etcd"),
    ("repair all: total CPU, ms each", "repair: CPU of operator, API server and etcd"),
    ("touch all: total CPU, ms each", "touch: CPU of operator, API server and etcd"),
    ("create all: operator CPU, ms each", "create: CPU of the operator"),
    ("one change: p50, ms", "one change: until it is there"),
    ("one repair: p50, ms", "one repair: until it is there"),
];

const PEER: &str = "controller-runtime";
const HOST: &str = "Pilothouse";

const WIDTH: usize = 760;
const LEFT: usize = 330;
const ROW: usize = 34;
const TOP: usize = 44;

/// How wide 100 % are.
const WHOLE: f64 = 320.0;

/// One row of the plot.
struct Row {
    title: &'static str,
    peer: f64,
    host: f64,
}

/// The plot of the table that `results` hold, as an SVG.
///
/// # Errors
/// The table, a row or a column is missing.
pub fn picture(results: &str) -> Result<String> {
    let rows = rows(results)?;
    let height = TOP + rows.len() * ROW + 30;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" font-weight=\"bold\">What Pilothouse needs, where an operator on controller-runtime that writes the same needs 100 %</text>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let (y, share) = (TOP + number * ROW, row.host / row.peer);
        let text = y + 17;
        writeln!(svg, "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>", LEFT - 10, row.title)?;
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"{:.0}\" height=\"18\" fill=\"#2f6f9f\"/>",
            y + 4,
            share * WHOLE
        )?;
        let end = LEFT as f64 + share * WHOLE + 6.0;
        writeln!(svg, "<text x=\"{end:.0}\" y=\"{text}\">{:.0} %</text>", share * 100.0)?;
    }
    let (whole, bottom) = (LEFT as f64 + WHOLE, TOP + rows.len() * ROW);
    writeln!(
        svg,
        "<line x1=\"{whole:.0}\" y1=\"{TOP}\" x2=\"{whole:.0}\" y2=\"{bottom}\" stroke=\"#888888\" stroke-dasharray=\"4 3\"/>"
    )?;
    writeln!(
        svg,
        "<text x=\"{whole:.0}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555555\">{PEER}</text>\n</svg>",
        bottom + 18
    )?;
    Ok(svg)
}

fn rows(results: &str) -> Result<Vec<Row>> {
    let mut lines = results.lines().skip_while(|line| !(line.starts_with('|') && line.contains(PEER)));
    let header = cells(lines.next().context("no table of a comparison: `make compare` prints one")?);
    let column =
        |name: &str| header.iter().position(|cell| *cell == name).with_context(|| format!("no column '{name}'"));
    let (peer, host) = (column(PEER)?, column(HOST)?);
    let table: Vec<_> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    let row = |(name, title): (&str, &'static str)| {
        let cells =
            table.iter().find(|cells| cells.first() == Some(&name)).with_context(|| format!("no row '{name}'"))?;
        let (peer, host) = (median(cells, peer)?, median(cells, host)?);
        ensure!(peer > 0.0, "'{name}' of {PEER} is nothing to compare with");
        Ok(Row { title, peer, host })
    };
    ROWS.into_iter().map(row).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The median of a cell such as `5.40 (5.10..6.00)`.
fn median(cells: &[&str], column: usize) -> Result<f64> {
    let cell = cells.get(column).context("a row with too few cells")?;
    let number = cell.split(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("'{cell}' is not a median"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str)]) -> String {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, _)| format!("| {name} | 4.00 (3.00..5.00) | 9.00 | 1.00 (0.90..1.10) | 0.25 |\n"))
            .collect();
        format!(
            "text\n\n| | controller-runtime | the same, applying | Pilothouse | ratio |\n|---|---|---|---|---|\n{}\n| x |\n",
            rows.concat()
        )
    }

    #[test]
    fn each_row_has_a_bar_of_its_share() -> Result<()> {
        let picture = picture(&table(&ROWS))?;
        assert_eq!(picture.matches(">25 %<").count(), ROWS.len(), "{picture}");
        assert!(picture.contains("width=\"80\""), "{picture}");
        Ok(())
    }

    #[test]
    fn what_is_missing_is_named() {
        let told = |results: &str| picture(results).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told("nothing").contains("`make compare` prints one"));
        assert!(told(&table(&ROWS[1..])).contains(ROWS[0].0));
    }
}
