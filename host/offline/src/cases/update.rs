//! Writes what a plugin answers into a case file: replaces the `expect` of a case or step, or adds it. Leaves everything else in the
//! file as it is, comments too. Touches text only; the caller reads and writes the file.

use serde_json::{Map, Value};

use super::{
    compare::{Match, shaped},
    file::{Expected, Place},
    sections::SECTIONS,
};

/// A new `expect`.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The case or step: the place of its first key.
    pub place: Place,
    /// What is expected so far.
    pub expected: Option<Expected>,
    /// What the plugin answers.
    pub actual: Map<String, Value>,
}

/// The text of a case file with new expectations.
///
/// # Errors
/// The place of a case or step in braces.
pub fn rewrite(text: &str, mut rewrites: Vec<Rewrite>) -> Result<String, Place> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end, so that the lines of the others stay where they are.
    rewrites.sort_by_key(|rewrite| std::cmp::Reverse(rewrite.place.line));
    for rewrite in rewrites {
        let Some(block) = Block::at(&lines, &rewrite.place) else { return Err(rewrite.place) };
        let expect: String = rewrite.sections().iter().map(text_of).collect();
        let indent = " ".repeat(block.indent);
        let mut written = vec![format!("{indent}expect:")];
        written.extend(expect.trim_end().lines().map(|line| match line.is_empty() {
            true => String::new(),
            false => format!("{indent}  {line}"),
        }));
        let (from, to) = block.expectation(&lines);
        if from < to && lines[from].trim_start().starts_with("- ") {
            // The expectation is the first key of an element of a list.
            written[0] = format!("{}- expect:", " ".repeat(block.indent.saturating_sub(2)));
        }
        lines.splice(from..to, written);
    }
    let mut text = lines.join("\n");
    text.push('\n');
    Ok(text)
}

impl Rewrite {
    /// The sections of the new expectation in the order of the answer: in the shape of the old one if that names some sections only,
    /// and all of them otherwise.
    fn sections(&self) -> Vec<(&'static str, Value)> {
        let subset = self.expected.as_ref().filter(|old| old.which == Match::Subset && !old.sections.is_empty());
        let which = match subset {
            Some(old) => old.says_which.then_some("subset"),
            None => Some("exact"),
        };
        let mut sections: Vec<_> = which.map(|which| ("match", Value::from(which))).into_iter().collect();
        let nothing = Value::Array(Vec::new());
        for name in SECTIONS {
            let (old, actual) = (subset.and_then(|old| old.sections.get(name)), self.actual.get(name));
            match (subset, old, actual) {
                (Some(_), Some(old), Some(actual)) => sections.push((name, shaped(old, actual))),
                // A list that shall be empty, and is.
                (Some(_), Some(old), None) if old.is_array() => sections.push((name, nothing.clone())),
                // An error replaces the answer, and a verdict the error.
                (Some(_), None, Some(actual)) if matches!(name, "error" | "verdict") => {
                    sections.push((name, actual.clone()));
                }
                (None, _, Some(actual)) => sections.push((name, actual.clone())),
                _ => {}
            }
        }
        sections
    }
}

/// A section in YAML.
/// A section as YAML text.
pub(super) fn text_of((name, value): &(&'static str, Value)) -> String {
    let section = Map::from_iter([((*name).to_owned(), value.clone())]);
    let text = serde_saphyr::to_string(&section).unwrap_or_default();
    format!("{}\n", text.trim_end())
}

/// The lines of a case or step.
struct Block {
    begin: usize,
    end: usize,
    /// The indentation of its keys.
    indent: usize,
}

impl Block {
    /// The block whose first key is at a place; none if it is written in braces.
    fn at(lines: &[String], place: &Place) -> Option<Self> {
        let (begin, indent) = (place.line.checked_sub(1)?, place.column.checked_sub(1)?);
        if lines.get(begin)?.get(indent..)?.starts_with('{') {
            return None;
        }
        let ends = |line: &String| is_content(line) && (line.starts_with("---") || indent_of(line) < indent);
        let end = lines.iter().skip(begin + 1).position(ends).map_or(lines.len(), |more| begin + 1 + more);
        Some(Self { begin, end, indent })
    }

    /// The lines of the expectation; where there is none, an empty range at the end.
    fn expectation(&self, lines: &[String]) -> (usize, usize) {
        let is_expectation = |line: &String| line.get(self.indent..).is_some_and(|text| text.starts_with("expect:"));
        let of_block = || lines.iter().enumerate().take(self.end).skip(self.begin);
        let last = |begin: usize, end: usize| {
            // Empty lines and comments behind it belong to what follows.
            lines[begin..end].iter().rposition(|line| is_content(line)).map_or(begin, |more| begin + more + 1)
        };
        match of_block()
            .find(|(number, line)| is_expectation(line) && (*number == self.begin || indent_of(line) == self.indent))
        {
            Some((from, _)) => {
                let ends = |(number, line): &(usize, &String)| {
                    *number > from
                        && is_content(line)
                        && indent_of(line) <= self.indent
                        && !is_element(line, self.indent)
                };
                let to = of_block().find(ends).map_or(self.end, |(number, _)| number);
                (from, last(from, to))
            }
            None => {
                let end = last(self.begin, self.end);
                (end, end)
            }
        }
    }
}

/// Whether a line is an element of a list that has no more indentation than its key.
fn is_element(line: &str, indent: usize) -> bool {
    indent_of(line) == indent && line.trim_start().starts_with('-')
}

fn is_content(line: &str) -> bool {
    let text = line.trim_start();
    !text.is_empty() && !text.starts_with('#')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn place(line: usize, column: usize) -> Place {
        Place { file: PathBuf::from("case.yaml"), line, column }
    }

    fn subset(sections: Value) -> Option<Expected> {
        let sections = sections.as_object().cloned().unwrap_or_default();
        Some(Expected { which: Match::Subset, says_which: false, sections })
    }

    fn rewritten(text: &str, place: Place, expected: Option<Expected>) -> Result<String, Place> {
        let actual = json!({"verdict": "done", "children": [], "status": {"a": 1, "b": 2}});
        let actual = actual.as_object().cloned().unwrap_or_default();
        rewrite(text, vec![Rewrite { place, expected, actual }])
    }

    #[test]
    fn an_expectation_is_replaced_where_it_is() {
        let all = "  match: exact\n  verdict: done\n  children: []\n  status:\n    a: 1\n    b: 2\n";
        for (text, expected, result) in [
            ("object: {}\n# about this\n", None, format!("object: {{}}\nexpect:\n{all}# about this\n")),
            (
                "expect:\n  status: {a: 2}\nobject: {}\n",
                subset(json!({"status": {"a": 2}})),
                "expect:\n  verdict: done\n  status:\n    a: 1\nobject: {}\n".to_owned(),
            ),
            (
                "object: {}\nexpect: {}\n---\nobject: {}\n",
                None,
                format!("object: {{}}\nexpect:\n{all}---\nobject: {{}}\n"),
            ),
        ] {
            assert_eq!(rewritten(text, place(1, 1), expected), Ok(result), "{text}");
        }
    }

    #[test]
    fn steps_have_their_own() {
        let old = subset(json!({"verdict": "done"}));
        for (text, at, result) in [
            (
                "steps:\n- name: a\n- name: b\n",
                place(2, 3),
                "steps:\n- name: a\n  expect:\n    verdict: done\n- name: b\n",
            ),
            (
                "steps:\n  - expect:\n      verdict: x\n    name: a\n",
                place(2, 5),
                "steps:\n  - expect:\n      verdict: done\n    name: a\n",
            ),
            (
                "steps:\n- name: a\n  expect: {}\n\n- name: b\n",
                place(2, 3),
                "steps:\n- name: a\n  expect:\n    verdict: done\n\n- name: b\n",
            ),
        ] {
            assert_eq!(rewritten(text, at, old.clone()), Ok(result.to_owned()), "{text}");
        }
        let braces = place(2, 3);
        assert_eq!(rewritten("steps:\n- {name: a}\n", braces.clone(), old), Err(braces));
    }
}
