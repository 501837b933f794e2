//! Case files: their format, and what is wrong with one, with line and column. Runs nothing.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};

use super::{compare::Match, path::path_at};
use crate::{Inputs, kind_of};

/// The time on the plugin's clock where a case names none. Always the same, so that a case is.
const DEFAULT_NOW: &str = "2026-01-01T00:00:00Z";

/// A test case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name: that of the file, with the number of the document where there are several, or what the case says.
    pub name: String,
    /// Where it is written.
    pub place: Place,
    /// What the plugin is called with first.
    pub inputs: Inputs,
    /// The steps. A case without steps has one, whose answer is that to a single call.
    pub steps: Vec<Step>,
    /// Whether what the plugin returns is carried out.
    pub is_scenario: bool,
}

/// A step of a case.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name; empty for the only one.
    pub name: String,
    /// Where it is written: its first key.
    pub place: Place,
    /// What happens before the plugin is called.
    pub changes: Changes,
    /// What is expected; none to be written by an update.
    pub expected: Option<Expected>,
}

/// What happens in a step before the plugin is called.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// A merge patch of the object.
    pub patch: Option<Value>,
    /// Merge patches of live children, by `KIND/NAME`.
    pub live: Map<String, Value>,
    /// Live children that somebody deletes, as `KIND/NAME`.
    pub delete: Vec<String>,
    /// Other objects to look up than before.
    pub lookups: Option<Vec<Value>>,
    /// Another configuration.
    pub config: Option<Value>,
    /// Another time.
    pub now: Option<Timestamp>,
    /// Whether the controllers of Kubernetes do nothing in this step.
    pub without_controllers: bool,
}

/// What is expected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// Which fields count.
    pub which: Match,
    /// Whether the case says which.
    pub says_which: bool,
    /// The sections.
    pub sections: Map<String, Value>,
}

/// A place in a case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1 on.
    pub line: usize,
    /// The column, from 1 on.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Why a case file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// It cannot be read.
    #[error("failed to read '{file}': {source}", file = file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no case.
    #[error("'{}' has no case: a case is a YAML document with `object` and `expect`", .0.display())]
    Empty(PathBuf),
    /// It is not YAML, or no case.
    #[error("{place}: {path}{message}", path = if path.is_empty() { String::new() } else { format!("{path}: ") })]
    Malformed {
        /// Where.
        place: Place,
        /// The path of the field, such as `steps[1].expect`.
        path: String,
        /// What is wrong, and what is right.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CaseText {
    name: Option<String>,
    object: Spanned<Value>,
    #[serde(default)]
    children: Vec<Spanned<Value>>,
    #[serde(default)]
    lookups: Vec<Spanned<Value>>,
    #[serde(default)]
    config: Value,
    now: Option<Spanned<String>>,
    expect: Option<ExpectText>,
    steps: Option<Spanned<Vec<Spanned<StepText>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepText {
    name: Option<String>,
    patch: Option<Value>,
    #[serde(default)]
    live: Map<String, Value>,
    #[serde(default)]
    delete: Vec<String>,
    lookups: Option<Vec<Spanned<Value>>>,
    config: Option<Value>,
    now: Option<Spanned<String>>,
    controllers: Option<Controllers>,
    expect: Option<ExpectText>,
}

/// What the controllers of Kubernetes do in a step.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Controllers {
    /// What they do when all is well.
    Simulated,
    /// Nothing.
    Idle,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum MatchText {
    Subset,
    Exact,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpectText {
    #[serde(rename = "match")]
    which: Option<MatchText>,
    verdict: Option<Value>,
    children: Option<Value>,
    options: Option<Value>,
    on_object: Option<Value>,
    status: Option<Value>,
    conditions: Option<Value>,
    events: Option<Value>,
    measurements: Option<Value>,
    requeue_after: Option<Value>,
    removes_many: Option<Value>,
    error: Option<Value>,
}

/// Reads the cases of a file.
///
/// # Errors
/// [`CaseError`], which says where.
pub fn read(file: &Path) -> Result<Vec<Case>, CaseError> {
    let text = std::fs::read_to_string(file).map_err(|source| CaseError::Read { file: file.to_owned(), source })?;
    parse(file, &text)
}

/// The cases in the text of a file.
pub(super) fn parse(file: &Path, text: &str) -> Result<Vec<Case>, CaseError> {
    let reader = Reader { file, text };
    let documents: Vec<Option<Spanned<CaseText>>> =
        serde_saphyr::from_multiple(text).map_err(|error| reader.malformed(&error))?;
    let documents: Vec<_> = documents.into_iter().flatten().collect();
    if documents.is_empty() {
        return Err(CaseError::Empty(file.to_owned()));
    }
    let several = documents.len() > 1;
    let named = documents.into_iter().enumerate();
    named.map(|(number, document)| reader.case(document, several.then_some(number + 1))).collect()
}

/// What it takes to say where something is wrong.
struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn case(&self, document: Spanned<CaseText>, number: Option<usize>) -> Result<Case, CaseError> {
        let place = self.place(document.referenced);
        let CaseText { name, object, children, lookups, config, now, expect, steps } = document.value;
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let default_name = || number.map_or_else(|| stem.to_string(), |number| format!("{stem} #{number}"));
        let inputs = Inputs {
            object: self.object(object)?,
            children: self.objects(children)?,
            lookups: self.objects(lookups)?,
            config,
            now: self.time(now)?.unwrap_or_else(default_now),
        };
        let is_scenario = steps.is_some();
        let steps = match (steps, expect) {
            (Some(steps), Some(_)) => {
                return Err(
                    self.wrong(steps.referenced, "a case has either `expect` or `steps`, each with its own `expect`")
                );
            }
            (Some(steps), None) if steps.value.is_empty() => {
                return Err(self.wrong(steps.referenced, "there are no steps"));
            }
            (Some(steps), None) => {
                let numbered = steps.value.into_iter().enumerate();
                numbered.map(|(number, step)| self.step(step, number + 1)).collect::<Result<_, _>>()?
            }
            (None, expect) => vec![Step {
                name: String::new(),
                place: place.clone(),
                changes: Changes::default(),
                expected: expect.map(Expected::from),
            }],
        };
        Ok(Case { name: name.unwrap_or_else(default_name), place, inputs, steps, is_scenario })
    }

    fn step(&self, step: Spanned<StepText>, number: usize) -> Result<Step, CaseError> {
        let place = self.place(step.referenced);
        let StepText { name, patch, live, delete, lookups, config, now, controllers, expect } = step.value;
        let changes = Changes {
            patch,
            live,
            delete,
            lookups: lookups.map(|lookups| self.objects(lookups)).transpose()?,
            config,
            now: self.time(now)?,
            without_controllers: controllers == Some(Controllers::Idle),
        };
        let name = name.unwrap_or_else(|| format!("step {number}"));
        Ok(Step { name, place, changes, expected: expect.map(Expected::from) })
    }

    fn objects(&self, objects: Vec<Spanned<Value>>) -> Result<Vec<Value>, CaseError> {
        objects.into_iter().map(|object| self.object(object)).collect()
    }

    /// An object, which is written here or in the file of that name.
    fn object(&self, object: Spanned<Value>) -> Result<Value, CaseError> {
        let (location, value) = (object.referenced, object.value);
        let value = match value.as_str() {
            Some(path) => self.object_of_file(location, path)?,
            None => value,
        };
        let kind = kind_of(&value);
        let has_name = value.pointer("/metadata/name").is_some_and(Value::is_string);
        match (kind.api_version.is_empty() || kind.kind.is_empty(), has_name) {
            (true, _) => {
                Err(self.wrong(location, "an object without apiVersion and kind, nor the path of a file with one"))
            }
            (false, false) => Err(self.wrong(location, &format!("an object of kind {kind} without metadata.name"))),
            (false, true) => Ok(value),
        }
    }

    fn object_of_file(&self, location: Location, path: &str) -> Result<Value, CaseError> {
        let file = self.file.parent().unwrap_or(Path::new("")).join(path);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| self.wrong(location, &format!("failed to read '{}': {error}", file.display())))?;
        serde_saphyr::from_str(&text)
            .map_err(|error| self.wrong(location, &format!("'{}' is not one YAML document: {error}", file.display())))
    }

    fn time(&self, time: Option<Spanned<String>>) -> Result<Option<Timestamp>, CaseError> {
        let parse = |time: Spanned<String>| {
            time.value.parse().map_err(|_| {
                self.wrong(time.referenced, &format!("'{}' is not a time such as {DEFAULT_NOW}", time.value))
            })
        };
        time.map(parse).transpose()
    }

    fn wrong(&self, location: Location, message: &str) -> CaseError {
        let place = self.place(location);
        CaseError::Malformed { path: path_at(self.text, place.line), place, message: message.to_owned() }
    }

    fn malformed(&self, error: &serde_saphyr::Error) -> CaseError {
        let place = self.place(error.location().unwrap_or(Location::UNKNOWN));
        // The first line has the message; below it is a picture of the place.
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().trim();
        let at = format!(" at line {}, column {}", place.line, place.column);
        let message = message.strip_suffix(&at).unwrap_or(message).to_owned();
        CaseError::Malformed { path: path_at(self.text, place.line), place, message }
    }

    fn place(&self, location: Location) -> Place {
        let number = |number: u64| usize::try_from(number).unwrap_or_default().max(1);
        Place { file: self.file.to_owned(), line: number(location.line()), column: number(location.column()) }
    }
}

fn default_now() -> Timestamp {
    DEFAULT_NOW.parse().unwrap_or_default()
}

impl From<ExpectText> for Expected {
    fn from(text: ExpectText) -> Self {
        let ExpectText {
            which,
            verdict,
            children,
            options,
            on_object,
            status,
            conditions,
            events,
            measurements,
            requeue_after,
            removes_many,
            error,
        } = text;
        let sections = [
            ("verdict", verdict),
            ("children", children),
            ("options", options),
            ("onObject", on_object),
            ("status", status),
            ("conditions", conditions),
            ("events", events),
            ("measurements", measurements),
            ("requeueAfter", requeue_after),
            ("removesMany", removes_many),
            ("error", error),
        ];
        Self {
            says_which: which.is_some(),
            which: match which {
                Some(MatchText::Exact) => Match::Exact,
                Some(MatchText::Subset) | None => Match::Subset,
            },
            sections: sections.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        match parse(Path::new("FILE"), text) {
            Ok(cases) => format!("{} cases", cases.len()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_wrong_with_a_case_file_is_told_with_its_line_and_path() {
        let object = "object: {apiVersion: v1, kind: Web, metadata: {name: a}}\n";
        for (text, words) in [
            (String::new(), &["FILE", "has no case"][..]),
            (
                format!("{object}expct: {{}}\n"),
                &["FILE:2:1: expct: ", "unknown field `expct`, expected one of", "expect, steps"],
            ),
            (format!("{object}expect:\n  verdct: done\n"), &["FILE:3:3: expect.verdct: ", "unknown field"]),
            (format!("---\n{object}---\n{object}steps:\n- name: a\n- nam: b\n"), &["FILE:7:3: steps[1].nam: "]),
            (format!("{object}now: yesterday\n"), &["FILE:2:6: now: ", "'yesterday' is not a time such as 2026"]),
            (format!("{object}steps: []\n"), &["FILE:2:8: steps: ", "there are no steps"]),
            (format!("{object}steps: [{{}}]\nexpect: {{}}\n"), &["FILE:2:8", "either `expect` or `steps`"]),
            ("object: {kind: Web}\n".to_owned(), &["FILE:1:9: object: ", "without apiVersion and kind"]),
            ("object: absent.yaml\n".to_owned(), &["FILE:1:9: object: ", "absent.yaml'", "No such file"]),
            (format!("{object}children: [{{apiVersion: v1, kind: A}}]\n"), &["FILE:2:12: children: ", "metadata.name"]),
            ("object: [\n".to_owned(), &["FILE:"]),
            (format!("{object}expect: {{}}\n---\n{object}"), &["2 cases"]),
        ] {
            let told = error(&text);
            assert!(words.iter().all(|word| told.contains(word)), "{words:?} are not in: {told}\n{text}");
        }
    }
}
