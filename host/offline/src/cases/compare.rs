//! Compares an expected value with the actual one. Knows nothing of plugins.
//!
//! Maps are compared by their keys. Elements of a list whose elements have names of their own (`metadata.name`, `name`, `type`) are
//! compared by those, so that one more container is one difference; the order of such a list counts, too.

use std::fmt;

use serde_json::Value;

/// Which fields count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// Those that are expected. Lists are compared as a whole.
    #[default]
    Subset,
    /// All.
    Exact,
}

/// A difference between what is expected and what is.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The place, such as `children[ConfigMap/first].data.greeting`.
    pub path: String,
    /// What is expected; none for nothing.
    pub expected: Option<Value>,
    /// What is; none for nothing.
    pub actual: Option<Value>,
}

/// The differences between two values at a place.
pub fn differences(path: &str, expected: &Value, actual: &Value, which: Match) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(path.to_owned(), expected, actual, which, &mut found);
    found
}

fn compare(path: String, expected: &Value, actual: &Value, which: Match, found: &mut Vec<Difference>) {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, value) in wanted {
                match there.get(key) {
                    Some(actual) => compare(below(&path, key), value, actual, which, found),
                    // An expected null is a field that shall not be there.
                    None if value.is_null() => {}
                    None => found.push(Difference::missing(below(&path, key), value)),
                }
            }
            let more = there.iter().filter(|(key, _)| which == Match::Exact && !wanted.contains_key(*key));
            found.extend(more.map(|(key, value)| Difference::surplus(below(&path, key), value)));
        }
        (Value::Array(wanted), Value::Array(there)) => match (names(wanted), names(there)) {
            (Some(wanted_names), Some(there_names)) if !wanted.is_empty() && !there.is_empty() => {
                let (wanted, there) = (Named(&wanted_names, wanted), Named(&there_names, there));
                compare_named(&path, wanted, there, which, found);
            }
            _ => compare_by_place(&path, (wanted, there), which, found),
        },
        _ if is_same_scalar(expected, actual) => {}
        _ => found.push(Difference { path, expected: Some(expected.clone()), actual: Some(actual.clone()) }),
    }
}

/// A list, and the names of its elements.
#[derive(Clone, Copy)]
struct Named<'a>(&'a [String], &'a [Value]);

impl<'a> Named<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().position(|known| known == name).and_then(|place| self.1.get(place))
    }
}

fn compare_named(path: &str, wanted: Named<'_>, there: Named<'_>, which: Match, found: &mut Vec<Difference>) {
    let before = found.len();
    for (name, value) in wanted.0.iter().zip(wanted.1) {
        match there.get(name) {
            Some(actual) => compare(format!("{path}[{name}]"), value, actual, which, found),
            None => found.push(Difference::missing(format!("{path}[{name}]"), value)),
        }
    }
    let more = there.0.iter().zip(there.1).filter(|(name, _)| wanted.get(name).is_none());
    found.extend(more.map(|(name, value)| Difference::surplus(format!("{path}[{name}]"), value)));
    if found.len() == before && wanted.0 != there.0 {
        let (expected, actual) = (Some(wanted.0.into()), Some(there.0.into()));
        found.push(Difference { path: format!("{path} (order)"), expected, actual });
    }
}

fn compare_by_place(path: &str, (wanted, there): (&[Value], &[Value]), which: Match, found: &mut Vec<Difference>) {
    for place in 0..wanted.len().max(there.len()) {
        let path = format!("{path}[{place}]");
        match (wanted.get(place), there.get(place)) {
            (Some(wanted), Some(there)) => compare(path, wanted, there, which, found),
            (Some(wanted), None) => found.push(Difference::missing(path, wanted)),
            (None, Some(there)) => found.push(Difference::surplus(path, there)),
            (None, None) => {}
        }
    }
}

/// The actual value with the fields that are expected: what a snapshot that names some fields only says now.
pub fn shaped(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(there)) => {
            let fields = wanted.iter().filter_map(|(key, value)| match there.get(key) {
                Some(actual) => Some((key.clone(), shaped(value, actual))),
                None => value.is_null().then(|| (key.clone(), Value::Null)),
            });
            Value::Object(fields.collect())
        }
        (Value::Array(wanted), Value::Array(there)) => {
            let wanted_names = names(wanted);
            let like = |place: usize, actual: &Value| match (&wanted_names, name_of(actual)) {
                (Some(names), Some(name)) => Named(names, wanted).get(&name),
                _ => wanted.get(place),
            };
            let elements = there.iter().enumerate().map(|(place, actual)| {
                like(place, actual).map_or_else(|| actual.clone(), |expected| shaped(expected, actual))
            });
            Value::Array(elements.collect())
        }
        _ => actual.clone(),
    }
}

/// `1` and `1.0` are one number in JSON.
fn is_same_scalar(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}

/// The names of the elements of a list, if each has another.
fn names(list: &[Value]) -> Option<Vec<String>> {
    let names: Vec<_> = list.iter().map(name_of).collect::<Option<_>>()?;
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort();
    sorted.dedup();
    (sorted.len() == names.len()).then_some(names)
}

/// The name of an element: kind and name of a Kubernetes object, else its `name` or `type`.
fn name_of(element: &Value) -> Option<String> {
    let text = |pointer: &str| element.pointer(pointer).and_then(Value::as_str);
    match (text("/kind"), text("/metadata/name"), text("/metadata/namespace")) {
        (Some(kind), Some(name), None) => Some(format!("{kind}/{name}")),
        (Some(kind), Some(name), Some(namespace)) => Some(format!("{kind}/{namespace}/{name}")),
        _ => text("/name").or_else(|| text("/type")).map(str::to_owned),
    }
}

fn below(path: &str, key: &str) -> String {
    let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (is_plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

impl Difference {
    fn missing(path: String, expected: &Value) -> Self {
        Self { path, expected: Some(expected.clone()), actual: None }
    }

    fn surplus(path: String, actual: &Value) -> Self {
        Self { path, expected: None, actual: Some(actual.clone()) }
    }
}

/// The most bytes of a value in a line.
const MAX_VALUE: usize = 300;

impl fmt::Display for Difference {
    /// The place, then the expected value after `-` and the actual one after `+`; of long texts the lines that differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let (Some(Value::String(expected)), Some(Value::String(actual))) = (&self.expected, &self.actual)
            && (expected.contains('\n') || actual.contains('\n'))
        {
            return write_lines(f, expected, actual);
        }
        for (sign, value) in [('-', &self.expected), ('+', &self.actual)] {
            match value {
                Some(value) => write!(f, "\n  {sign} {}", short(&value.to_string()))?,
                None => write!(f, "\n  {sign} nothing")?,
            }
        }
        Ok(())
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, expected: &str, actual: &str) -> fmt::Result {
    let (wanted, there): (Vec<_>, Vec<_>) = (expected.split('\n').collect(), actual.split('\n').collect());
    let same = wanted.iter().zip(&there).take_while(|(wanted, there)| wanted == there).count();
    let left = wanted.len().min(there.len()) - same;
    let at_the_end =
        wanted.iter().rev().zip(there.iter().rev()).take(left).take_while(|(wanted, there)| wanted == there).count();
    write!(f, " (line {})", same + 1)?;
    for (sign, lines) in [('-', &wanted), ('+', &there)] {
        for line in &lines[same..lines.len() - at_the_end] {
            write!(f, "\n  {sign} {}", short(line))?;
        }
    }
    Ok(())
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_VALUE);
    if end < text.len() { format!("{}… ({} bytes)", &text[..end], text.len()) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(expected: Value, actual: Value, which: Match) -> Vec<String> {
        differences("", &expected, &actual, which).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_subset_frees_fields_and_no_elements() {
        for (expected, actual, subset, exact) in [
            (json!({"a": 1}), json!({"a": 1}), vec![], vec![]),
            (json!({"a": 1}), json!({"a": 1.0}), vec![], vec![]),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), vec![], vec!["b\n  - nothing\n  + 2"]),
            (json!({"a": 1}), json!({}), vec!["a\n  - 1\n  + nothing"], vec!["a\n  - 1\n  + nothing"]),
            (json!({"a": null}), json!({}), vec![], vec![]),
            (json!({"a": null}), json!({"a": 1}), vec!["a\n  - null\n  + 1"], vec!["a\n  - null\n  + 1"]),
            (json!([1]), json!([1, 2]), vec!["[1]\n  - nothing\n  + 2"], vec!["[1]\n  - nothing\n  + 2"]),
            (json!("1"), json!(1), vec!["\n  - \"1\"\n  + 1"], vec!["\n  - \"1\"\n  + 1"]),
        ] {
            assert_eq!(found(expected.clone(), actual.clone(), Match::Subset), subset, "{expected} {actual}");
            assert_eq!(found(expected.clone(), actual.clone(), Match::Exact), exact, "{expected} {actual}");
        }
    }

    #[test]
    fn elements_with_names_are_compared_by_them() {
        let env = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name, "value": "1"})).collect() };
        let path = |differences: Vec<String>| -> Vec<String> {
            differences.iter().filter_map(|one| Some(one.lines().next()?.to_owned())).collect()
        };
        for (expected, actual, paths) in [
            (env(&["a", "b"]), env(&["a", "b"]), vec![]),
            (env(&["a", "b"]), env(&["b"]), vec!["[a]"]),
            (env(&["b"]), env(&["a", "b"]), vec!["[a]"]),
            (env(&["a", "b"]), env(&["b", "a"]), vec![" (order)"]),
            (
                json!([{"kind": "Service", "metadata": {"name": "web", "labels": {"example.com/a": "x"}}}]),
                json!([{"kind": "Service", "metadata": {"name": "web", "labels": {"example.com/a": "y"}}}]),
                vec!["[Service/web].metadata.labels[\"example.com/a\"]"],
            ),
        ] {
            assert_eq!(path(found(expected.clone(), actual.clone(), Match::Exact)), paths, "{expected} {actual}");
        }
    }

    #[test]
    fn of_a_long_text_the_lines_that_differ_are_shown() {
        let shown = found(json!("a\nb\nc\nd"), json!("a\nx\ny\nd"), Match::Exact);
        assert_eq!(shown, [" (line 2)\n  - b\n  - c\n  + x\n  + y"]);
        let long = found(json!("a"), json!("ü".repeat(400)), Match::Exact);
        assert!(long[0].len() < 400 && long[0].ends_with("… (802 bytes)"), "{long:?}");
    }

    #[test]
    fn a_snapshot_of_some_fields_keeps_its_shape() {
        let expected = json!({"a": 1, "gone": 1, "none": null, "list": [{"name": "x", "v": 1}]});
        let actual = json!({"a": 2, "b": 3, "list": [{"name": "y", "v": 3, "w": 4}, {"name": "x", "v": 2, "w": 5}]});
        let shaped = shaped(&expected, &actual);
        assert_eq!(
            shaped,
            json!({"a": 2, "none": null, "list": [{"name": "y", "v": 3, "w": 4}, {"name": "x", "v": 2}]})
        );
        assert!(differences("", &shaped, &actual, Match::Subset).is_empty());
    }
}
