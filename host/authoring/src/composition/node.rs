//! A template of a composition: a manifest with expressions in places. It evaluates nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The field of that name.
    Field(String),
    /// The element at that place.
    Element(usize),
}

/// Where something is in a manifest.
pub(crate) type Path = Vec<Step>;

/// What stands in a place of a manifest instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The value of an expression. Where there was nothing, a field more.
    Whole(String),
    /// Parts of a text.
    Spans(Vec<Span>),
}

/// A part of a text, by its bytes, and the expression in its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// Where it begins.
    pub(crate) from: usize,
    /// Where it ends.
    pub(crate) to: usize,
    /// The expression.
    pub(crate) expression: String,
}

/// What stands in which places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits(pub(crate) BTreeMap<Path, Edit>);

impl Edits {
    /// A value becomes that of an expression.
    pub(crate) fn whole(&mut self, path: Path, expression: String) {
        self.0.insert(path, Edit::Whole(expression));
    }

    /// A part of a text becomes that of an expression, unless something of it is taken.
    pub(crate) fn span(&mut self, path: Path, span: Span) -> bool {
        match self.0.entry(path).or_insert_with(|| Edit::Spans(Vec::new())) {
            Edit::Spans(spans) if spans.iter().all(|other| span.to <= other.from || other.to <= span.from) => {
                spans.push(span);
                spans.sort();
                true
            }
            _ => false,
        }
    }

    /// The template of a manifest.
    pub(crate) fn template(&self, value: &Value) -> Value {
        let mut made = self.at(value, &mut Vec::new());
        for (path, edit) in &self.0 {
            if let Edit::Whole(expression) = edit {
                add(&mut made, path, expression);
            }
        }
        made
    }

    fn at(&self, value: &Value, path: &mut Path) -> Value {
        match (self.0.get(path), value) {
            (Some(Edit::Whole(expression)), _) => Value::String(format!("${{{expression}}}")),
            (Some(Edit::Spans(spans)), Value::String(text)) => Value::String(with_spans(text, spans)),
            (_, Value::String(text)) => Value::String(escaped(text)),
            (_, Value::Array(elements)) => {
                let of = |(place, element)| within(path, Step::Element(place), |path| self.at(element, path));
                elements.iter().enumerate().map(of).collect()
            }
            (_, Value::Object(fields)) => {
                let of = |(name, field): (&String, &Value)| {
                    let value = within(path, Step::Field(name.clone()), |path| self.at(field, path));
                    (name.clone(), value)
                };
                Value::Object(fields.iter().map(of).collect::<Map<_, _>>())
            }
            (_, other) => other.clone(),
        }
    }
}

/// Does something with a path that has one step more.
pub(crate) fn within<T>(path: &mut Path, step: Step, with: impl FnOnce(&mut Path) -> T) -> T {
    path.push(step);
    let result = with(path);
    path.pop();
    result
}

/// The value in a place.
pub(crate) fn at<'v>(value: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Element(place) => value.get(place),
    })
}

/// The same, to be changed.
pub(crate) fn at_mut<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Element(place) => value.get_mut(place),
    })
}

/// All texts, numbers and so on of a value, with their places. Empty lists and objects count as such.
pub(crate) fn leaves(value: &Value) -> Vec<(Path, &Value)> {
    fn collect<'v>(value: &'v Value, path: &mut Path, found: &mut Vec<(Path, &'v Value)>) {
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                for (place, element) in elements.iter().enumerate() {
                    within(path, Step::Element(place), |path| collect(element, path, found));
                }
            }
            Value::Object(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    within(path, Step::Field(name.clone()), |path| collect(field, path, found));
                }
            }
            leaf => found.push((path.clone(), leaf)),
        }
    }
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

/// A place, for people.
pub(crate) fn in_words(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Element(place) => format!("[{place}]"),
    };
    path.iter().map(step).collect::<String>().trim_start_matches('.').to_owned()
}

/// Adds a field where there is none. Objects on the way are made.
fn add(value: &mut Value, path: &[Step], expression: &str) {
    let Some((Step::Field(name), rest)) = path.split_first() else {
        if let (Some((Step::Element(place), rest)), Value::Array(elements)) = (path.split_first(), value) {
            elements.get_mut(*place).into_iter().for_each(|element| add(element, rest, expression));
        }
        return;
    };
    let Value::Object(fields) = value else { return };
    match fields.get_mut(name) {
        Some(known) => add(known, rest, expression),
        None if rest.is_empty() => drop(fields.insert(name.clone(), Value::String(format!("${{{expression}}}")))),
        None => {
            let mut made = Value::Object(Map::new());
            add(&mut made, rest, expression);
            fields.insert(name.clone(), made);
        }
    }
}

/// A text that has no expression in it, whatever it looks like.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn with_spans(text: &str, spans: &[Span]) -> String {
    let (mut made, mut from) = (String::new(), 0);
    for span in spans {
        made += &escaped(text.get(from..span.from).unwrap_or_default());
        // A dollar before an expression would make it a text.
        if made.ends_with('$') {
            made.pop();
            made += "${'$'}";
        }
        made += &format!("${{{}}}", span.expression);
        from = span.to;
    }
    made + &escaped(text.get(from..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(steps: &[&str]) -> Path {
        let step = |step: &&str| step.parse().map_or_else(|_| Step::Field((*step).to_owned()), Step::Element);
        steps.iter().map(step).collect()
    }

    #[test]
    fn a_template_has_expressions_in_their_places_and_texts_as_they_are() {
        let manifest = json!({"a": 1, "b": ["x-web-y", "${HOME}"], "c": {"$${": "cost: $5"}});
        let mut edits = Edits::default();
        edits.whole(path(&["a"]), "schema.spec.a".into());
        edits.whole(path(&["d", "e"]), "schema.spec.?e".into());
        assert!(edits.span(path(&["b", "0"]), Span { from: 2, to: 5, expression: "schema.metadata.name".into() }));
        assert!(!edits.span(path(&["b", "0"]), Span { from: 4, to: 6, expression: "no".into() }));
        assert!(edits.span(path(&["c", "$${"]), Span { from: 7, to: 8, expression: "price".into() }));
        let expected = json!({
            "a": "${schema.spec.a}", "b": ["x-${schema.metadata.name}-y", "$${HOME}"], "c": {"$${": "cost: ${'$'}${price}"},
            "d": {"e": "${schema.spec.?e}"},
        });
        assert_eq!(edits.template(&manifest), expected);
    }

    #[test]
    fn leaves_have_their_places() {
        let value = json!({"a": [{"b": 1}, []], "c": {}});
        let found: Vec<_> =
            leaves(&value).into_iter().map(|(path, value)| format!("{}={value}", in_words(&path))).collect();
        assert_eq!(found, ["a[0].b=1", "a[1]=[]", "c={}"]);
        assert_eq!(at(&value, &path(&["a", "0", "b"])), Some(&json!(1)));
    }
}
