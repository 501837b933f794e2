//! Columns of text as `kubectl` prints them: as wide as their longest cell, three spaces apart. Values only.

use std::borrow::Cow;

/// Rows under a header, a line each. The last column is not padded.
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let mut widths = header.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("   ").trim_end().to_owned() + "\n"
    };
    let lines = rows.iter().map(|row| line(row.each_ref().map(|cell| &**cell)));
    std::iter::once(line(header)).chain(lines).collect()
}

/// Words of others as they may be printed to a terminal: without line breaks and sequences that change what is on it, which could forge
/// what this program says.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_cannot_change_the_terminal() {
        for (text, expected) in [
            ("plain words, ö 漢", "plain words, ö 漢"),
            ("\u{1b}[2Ja\nb\tc", "\\u{1b}[2Ja\\nb\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
