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
    line[..line.floor_char_boundary(MAX_LINE)].to_owned()
}
