//! Some lines that are kept for people, of however many there are: both how many and how long have a bound. Pure.

use serde::{Deserialize, Serialize};

/// How many lines are kept.
pub const MAX_LINES: usize = 20;
/// The most bytes of one.
pub const MAX_LINE: usize = 200;

/// Some lines, and how many more there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lines {
    /// The first ones.
    pub lines: Vec<String>,
    /// How many more there were.
    pub more: usize,
}

impl Lines {
    /// Adds one, unless there are enough: then it is not even written.
    pub fn push(&mut self, line: impl FnOnce() -> String) {
        match self.lines.len() < MAX_LINES {
            true => self.lines.push(cut(&line())),
            false => self.more += 1,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// As much of a line as is kept.
pub fn cut(line: &str) -> String {
    shortened(line, MAX_LINE)
}

/// A text of at most so many bytes: a longer one is cut and ends in an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() <= most {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(most.saturating_sub(ELLIPSIS.len_utf8()));
    format!("{}{ELLIPSIS}", &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_within_the_limit() {
        assert_eq!(shortened("short", 5), "short");
        let cut = shortened(&"ä".repeat(9), 10);
        assert_eq!(cut, "äää…");
    }
}
