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

/// Words of others as they may be printed to a terminal: without line breaks, sequences that change what is on it, and characters that
/// change the order in which others are shown. All of them could forge what this program says.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return text.into();
    }
    let shown = |letter: char| match is_active(letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect::<String>().into()
}

/// Whether a terminal does something else with a character than to show it. The second group is `Bidi_Control` of Unicode.
fn is_active(letter: char) -> bool {
    let reorders =
        matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || reorders
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
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
