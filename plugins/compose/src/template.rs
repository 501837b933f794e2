//! Templates: JSON with expressions in its texts. A text that is one expression becomes its value; of others, expressions become a part.

use pilothouse_expression::{COMPOSITION, CompileError, EvaluationError, Program, Reference};
use serde_json::{Map, Value};

use crate::problem::{Path, Problem, meant};
use crate::text::{Piece, Unended, pieces};

/// A compiled template.
#[derive(Debug)]
pub enum Template {
    /// A value without expressions.
    Plain(Value),
    /// A text that is one expression.
    Expression(Compiled),
    /// A text with expressions in it.
    Text(Vec<Part>),
    /// A list.
    List(Vec<Template>),
    /// An object.
    Object(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Debug)]
pub enum Part {
    /// As it is.
    Plain(String),
    /// The value of an expression, which must be a text, a number, true or false.
    Expression(Compiled),
}

/// A compiled expression.
#[derive(Debug)]
pub struct Compiled {
    /// As it is written.
    pub text: String,
    program: Program,
}

/// Why a template has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoValue {
    /// Where in the template.
    pub path: Path,
    /// The expression.
    pub expression: String,
    /// Why.
    pub error: ValueError,
}

/// Why an expression has no value that fits its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It has no value.
    Evaluation(EvaluationError),
    /// Its value cannot be a part of a text.
    NoText(&'static str),
    /// Its value is not of the type that is needed.
    Type {
        /// What is needed.
        needed: &'static str,
        /// What it is.
        found: &'static str,
    },
}

impl std::fmt::Display for NoValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: `{}`: ", self.path, self.expression)?;
        match &self.error {
            ValueError::Evaluation(error) => write!(f, "{error}"),
            ValueError::NoText(found) => {
                write!(f, "{found} cannot be a part of a text; use string(…), json.marshal(…) or orValue(…)")
            }
            ValueError::Type { needed, found } => write!(f, "it must be {needed}, not {found}"),
        }
    }
}

/// Compiles what a composition says over names that are there at that place, and gathers what is wrong.
pub struct Compiler<'c> {
    /// The names.
    pub names: &'c [&'c str],
    /// What is wrong.
    pub problems: &'c mut Vec<Problem>,
}

impl Compiler<'_> {
    /// A template.
    pub fn template(&mut self, path: &Path, value: &Value) -> Template {
        match value {
            Value::String(text) => self.text(path, text),
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                Template::List(elements.map(|(place, it)| self.template(&path.element(place), it)).collect())
            }
            Value::Object(fields) => {
                let compiled = fields.iter().map(|(name, value)| {
                    let path = path.field(name);
                    if name.contains("${") {
                        let what = "the name of a field cannot have an expression; write the whole object as one, such as \
                                    ${{schema.spec.key: 'value'}}";
                        self.problems.push(Problem::at(&path, what));
                    }
                    (name.clone(), self.template(&path, value))
                });
                Template::Object(compiled.collect())
            }
            other => Template::Plain(other.clone()),
        }
    }

    /// An expression where nothing else can be: `${…}`.
    pub fn expression(&mut self, path: &Path, value: &Value) -> Option<Compiled> {
        let what = "it must be one expression in CEL, such as ${schema.spec.enabled}";
        let told = self.problems.len();
        match self.template(path, value) {
            Template::Expression(compiled) => Some(compiled),
            // What is wrong with it is told.
            _ if self.problems.len() > told => None,
            Template::Plain(Value::String(text)) if !text.is_empty() => {
                self.problems.push(Problem::at(path, format!("{what}; write ${{{text}}}")));
                None
            }
            _ => {
                self.problems.push(Problem::at(path, what));
                None
            }
        }
    }

    fn text(&mut self, path: &Path, text: &str) -> Template {
        let found = match pieces(text) {
            Ok(found) => found,
            Err(Unended) => {
                let what =
                    "an expression begins with ${ and does not end; close it with }, or write $${ for the text itself";
                self.problems.push(Problem::at(path, what));
                return Template::Plain(Value::Null);
            }
        };
        match found.as_slice() {
            [] => Template::Plain(Value::String(String::new())),
            [Piece::Plain(text)] => Template::Plain(Value::String(text.clone())),
            [Piece::Expression(text)] => match self.compile(path, text) {
                Some(compiled) => Template::Expression(compiled),
                None => Template::Plain(Value::Null),
            },
            pieces => Template::Text(pieces.iter().filter_map(|piece| self.part(path, piece)).collect()),
        }
    }

    fn part(&mut self, path: &Path, piece: &Piece) -> Option<Part> {
        match piece {
            Piece::Plain(text) => Some(Part::Plain(text.clone())),
            Piece::Expression(text) => self.compile(path, text).map(Part::Expression),
        }
    }

    fn compile(&mut self, path: &Path, text: &str) -> Option<Compiled> {
        match Program::compile(text, self.names, COMPOSITION) {
            Ok(program) => Some(Compiled { text: text.to_owned(), program }),
            Err(error) => {
                let meant = match &error {
                    CompileError::UnknownName { name, .. } => meant(name, self.names.iter().copied()),
                    _ => None,
                };
                let hint = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                self.problems.push(Problem::at(path, format!("`{text}`: {error}{hint}")));
                None
            }
        }
    }
}

impl Compiled {
    /// What it reads.
    pub fn references(&self) -> Vec<Reference> {
        self.program.references()
    }

    /// Its value; none if it is optional and has none.
    ///
    /// # Errors
    /// [`NoValue`].
    pub fn value(&self, path: &Path, values: &[Option<&Value>]) -> Result<Option<Value>, NoValue> {
        self.program.value(values).map_err(|error| self.no_value(path, ValueError::Evaluation(error)))
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// [`NoValue`], also if it is something else than true or false.
    pub fn boolean(&self, path: &Path, values: &[Option<&Value>]) -> Result<bool, NoValue> {
        match self.value(path, values)? {
            Some(Value::Bool(it)) => Ok(it),
            other => {
                Err(self.no_value(path, ValueError::Type { needed: "true or false", found: type_of(other.as_ref()) }))
            }
        }
    }

    fn no_value(&self, path: &Path, error: ValueError) -> NoValue {
        NoValue { path: path.clone(), expression: self.text.clone(), error }
    }
}

impl Template {
    /// What it reads.
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.sort();
        found.dedup();
        found
    }

    fn collect(&self, found: &mut Vec<Reference>) {
        match self {
            Self::Plain(_) => {}
            Self::Expression(compiled) => found.extend(compiled.references()),
            Self::Text(parts) => parts.iter().for_each(|part| match part {
                Part::Plain(_) => {}
                Part::Expression(compiled) => found.extend(compiled.references()),
            }),
            Self::List(elements) => elements.iter().for_each(|element| element.collect(found)),
            Self::Object(fields) => fields.iter().for_each(|(_, value)| value.collect(found)),
        }
    }

    /// The field of an object template.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Its text, if it has no expressions.
    pub fn plain_text(&self) -> Option<&str> {
        match self {
            Self::Plain(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Its value; none if it is an expression whose value is optional and not there. Fields and elements of that kind are left out.
    ///
    /// # Errors
    /// [`NoValue`] for the first expression without a value.
    pub fn value(&self, path: &Path, values: &[Option<&Value>]) -> Result<Option<Value>, NoValue> {
        match self {
            Self::Plain(value) => Ok(Some(value.clone())),
            Self::Expression(compiled) => compiled.value(path, values),
            Self::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Plain(plain) => text.push_str(plain),
                        Part::Expression(compiled) => text.push_str(&as_part(compiled, path, values)?),
                    }
                }
                Ok(Some(Value::String(text)))
            }
            Self::List(elements) => {
                let mut list = Vec::with_capacity(elements.len());
                for (place, element) in elements.iter().enumerate() {
                    list.extend(element.value(&path.element(place), values)?);
                }
                Ok(Some(Value::Array(list)))
            }
            Self::Object(fields) => {
                let mut object = Map::new();
                for (name, field) in fields {
                    if let Some(value) = field.value(&path.field(name), values)? {
                        object.insert(name.clone(), value);
                    }
                }
                Ok(Some(Value::Object(object)))
            }
        }
    }

    /// The same for a value that must be a text.
    ///
    /// # Errors
    /// [`NoValue`], also if it is something else.
    pub fn text(&self, path: &Path, values: &[Option<&Value>]) -> Result<String, NoValue> {
        match self.value(path, values)? {
            Some(Value::String(text)) => Ok(text),
            other => {
                let error = ValueError::Type { needed: "a text", found: type_of(other.as_ref()) };
                let expression = match self {
                    Self::Expression(compiled) => compiled.text.clone(),
                    _ => other.unwrap_or_default().to_string(),
                };
                Err(NoValue { path: path.clone(), expression, error })
            }
        }
    }
}

fn as_part(compiled: &Compiled, path: &Path, values: &[Option<&Value>]) -> Result<String, NoValue> {
    match compiled.value(path, values)? {
        Some(Value::String(text)) => Ok(text),
        Some(number @ (Value::Number(_) | Value::Bool(_))) => Ok(number.to_string()),
        other => Err(compiled.no_value(path, ValueError::NoText(type_of(other.as_ref())))),
    }
}

/// What a value is, in words.
pub fn type_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "an optional value that is not there",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(template: &Value) -> Result<Option<Value>, String> {
        let schema = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "labels": {"a": "b"}, "on": true, "none": null}});
        let mut problems = Vec::new();
        let mut compiler = Compiler { names: &["schema"], problems: &mut problems };
        let template = compiler.template(&Path::of("template"), template);
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        template.value(&Path::of("template"), &[Some(&schema)]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_that_is_one_expression_becomes_its_value_and_others_have_it_as_a_part() {
        for (template, expected) in [
            (json!("${schema.spec.replicas}"), Some(json!(3))),
            (
                json!("${schema.spec.replicas} of ${schema.metadata.name}: ${schema.spec.on}"),
                Some(json!("3 of web: true")),
            ),
            (
                json!({"a": ["${schema.spec.labels}", 1, null], "b": "x"}),
                Some(json!({"a": [{"a": "b"}, 1, null], "b": "x"})),
            ),
            (json!("${schema.spec.?gone}"), None),
            (
                json!({"a": "${schema.spec.?gone}", "b": ["${schema.spec.?gone}", "${schema.spec.?on}"]}),
                Some(json!({"b": [true]})),
            ),
            (json!({"a": "${schema.spec.none}"}), Some(json!({"a": null}))),
            (json!("$${schema.spec.replicas}"), Some(json!("${schema.spec.replicas}"))),
            (json!("${ {'a': {'b': '}'}} }"), Some(json!({"a": {"b": "}"}}))),
        ] {
            assert_eq!(made(&template), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_has_no_value_says_where_and_why() {
        for (template, expected) in [
            (
                json!({"spec": {"a.b/c": ["${schema.spec.gone}"]}}),
                "template.spec[\"a.b/c\"][0]: `schema.spec.gone`: there is no field `gone`",
            ),
            (
                json!("x${schema.spec.labels}"),
                "template: `schema.spec.labels`: an object cannot be a part of a text; use string(…)",
            ),
            (json!("x${schema.spec.?gone}"), "an optional value that is not there cannot be a part of a text"),
            (
                json!("${shema.spec}"),
                "template: `shema.spec`: there is nothing called `shema`; the object is `schema`; did you mean `schema`?",
            ),
            (json!("${schema.spec"), "template: an expression begins with ${ and does not end"),
            (json!("${}"), "template: ``: line 1"),
            (json!({"a${schema.spec.on}": 1}), "the name of a field cannot have an expression"),
        ] {
            let told = made(&template);
            assert!(told.as_ref().is_err_and(|told| told.contains(expected)), "{template}: {told:?}");
        }
    }
}
