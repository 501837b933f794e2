//! The results of cases as text for people, JSON for programs, and JUnit XML for CI systems. Runs and writes nothing.

use std::{fmt::Write, time::Duration};

use serde_json::{Value, json};

use super::{file::Place, run::Ran, run::StepFailure};

/// A case that was run, or could not be.
#[derive(Clone, Debug)]
pub struct Result {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub place: Place,
    /// How long it took.
    pub duration: Duration,
    /// How it went.
    pub ran: Ran,
}

impl Result {
    /// Whether it passed.
    pub fn is_passed(&self) -> bool {
        self.ran.failures.is_empty()
    }

    /// Its lines for people.
    pub fn text(&self) -> String {
        let Self { name, place, ran, .. } = self;
        let word = if self.is_passed() { "ok  " } else { "FAIL" };
        let mut text = format!("{word}  {}: {name}\n", place.file.display());
        for note in &ran.notes {
            add_lines(&mut text, "      note: ", note);
        }
        for failed in &ran.failures {
            add_lines(&mut text, "      ", &headline(failed));
            for difference in failed.failure.differences() {
                add_lines(&mut text, "        ", &difference.to_string());
            }
        }
        text
    }

    fn json(&self) -> Value {
        let Self { name, place, duration, ran } = self;
        let failures: Vec<_> = ran.failures.iter().map(failure_json).collect();
        json!({
            "name": name, "file": place.file, "line": place.line, "passed": self.is_passed(),
            "seconds": duration.as_secs_f64(), "failures": failures, "notes": ran.notes,
        })
    }

    fn junit(&self) -> String {
        let Self { name, place, duration, ran } = self;
        let mut text = format!(
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{1}\" line=\"{}\" time=\"{:.3}\">\n",
            escaped(name),
            escaped(&place.file.to_string_lossy()),
            place.line,
            duration.as_secs_f64(),
        );
        for failed in &ran.failures {
            let differences: Vec<_> = failed.failure.differences().iter().map(ToString::to_string).collect();
            let (message, body) = (escaped(&headline(failed)), escaped(&differences.join("\n")));
            // Nothing goes wrong while a text is written to a text.
            let written = writeln!(text, "      <failure message=\"{message}\">{body}</failure>");
            debug_assert!(written.is_ok());
        }
        if !ran.notes.is_empty() {
            text.push_str(&format!("      <system-out>{}</system-out>\n", escaped(&ran.notes.join("\n"))));
        }
        text.push_str("    </testcase>\n");
        text
    }
}

/// The results of all cases as one JSON document.
pub fn json(results: &[Result]) -> Value {
    let failed = failed(results);
    let cases: Vec<_> = results.iter().map(Result::json).collect();
    json!({"cases": cases, "passed": results.len() - failed, "failed": failed})
}

/// The results of all cases as JUnit XML.
pub fn junit(results: &[Result]) -> String {
    let seconds = results.iter().map(|result| result.duration.as_secs_f64()).sum::<f64>();
    let counts = format!("tests=\"{}\" failures=\"{}\" time=\"{seconds:.3}\"", results.len(), failed(results));
    let cases: String = results.iter().map(Result::junit).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"pilothouse test\" \
         {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// How many cases failed.
pub fn failed(results: &[Result]) -> usize {
    results.iter().filter(|result| !result.is_passed()).count()
}

fn headline(failed: &StepFailure) -> String {
    match failed.step.as_str() {
        "" => failed.failure.to_string(),
        step => format!("{step}: {}", failed.failure),
    }
}

fn failure_json(failed: &StepFailure) -> Value {
    let differences: Vec<_> = failed
        .failure
        .differences()
        .iter()
        .map(|one| json!({"path": one.path, "expected": one.expected, "actual": one.actual}))
        .collect();
    json!({"step": failed.step, "message": failed.failure.to_string(), "differences": differences})
}

fn add_lines(text: &mut String, indent: &str, lines: &str) {
    let blank = " ".repeat(indent.len());
    for (number, line) in lines.lines().enumerate() {
        let indent = if number == 0 { indent } else { &blank };
        text.push_str(&format!("{indent}{line}\n"));
    }
}

/// A text in XML, without the characters that XML cannot have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
