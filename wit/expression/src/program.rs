//! A compiled expression over any number of named values, and what of them it reads.

use serde_json::Value as Json;

use crate::{
    CompileError, Dialect, EvaluationError,
    compile::compile,
    evaluate::Evaluation,
    node::{Fold, Function, Node},
};

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    node: Node,
    steps: usize,
}

/// Something that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// The fields below it, as far as they are written out; without any, everything below it may be read.
    pub path: Vec<String>,
}

impl Program {
    /// Compiles an expression over these names.
    ///
    /// # Errors
    /// [`CompileError`] for the first thing that is wrong with it.
    pub fn compile(text: &str, names: &[&str], dialect: Dialect) -> Result<Self, CompileError> {
        Ok(Self { node: compile(text, names, dialect)?, steps: dialect.steps })
    }

    /// Its value, with the values of the names in the order in which they were given; a name without a value is not there. None if its value
    /// is an optional one without a value.
    ///
    /// # Errors
    /// [`EvaluationError`] if it has no value.
    pub fn value(&self, values: &[Option<&Json>]) -> Result<Option<Json>, EvaluationError> {
        Evaluation::of(values, self.steps).json(&self.node)
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// [`EvaluationError`] if it has no value, or one that is neither true nor false.
    pub fn boolean(&self, values: &[Option<&Json>]) -> Result<bool, EvaluationError> {
        Evaluation::of(values, self.steps).boolean(&self.node)
    }

    /// The text that it makes.
    ///
    /// # Errors
    /// [`EvaluationError`] if it has no value, or one that is no text.
    pub fn text(&self, values: &[Option<&Json>]) -> Result<String, EvaluationError> {
        Evaluation::of(values, self.steps).text(&self.node)
    }

    /// What it reads.
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        collect(&self.node, &mut found);
        found.sort();
        found.dedup();
        found
    }
}

fn collect(node: &Node, found: &mut Vec<Reference>) {
    if let Some(reference) = reference(node) {
        found.push(reference);
        return;
    }
    match node {
        Node::Null | Node::Boolean(_) | Node::Integer(_) | Node::Double(_) | Node::Text(_) => {}
        Node::Variable(_) | Node::Taken(_) | Node::Root(..) => {}
        Node::Field(operand, _) | Node::Has(operand, _) | Node::OptionalField(operand, _) => collect(operand, found),
        Node::IsNotFalse(operand) | Node::Append(_, operand) => collect(operand, found),
        Node::And(operands) | Node::Or(operands) => operands.iter().for_each(|it| collect(it, found)),
        Node::Choice(parts) => parts.iter().for_each(|it| collect(it, found)),
        Node::List(nodes) => nodes.iter().for_each(|element| collect(&element.node, found)),
        Node::Map(entries) => entries.iter().for_each(|entry| {
            collect(&entry.key, found);
            collect(&entry.value, found);
        }),
        Node::Call(_, nodes) => nodes.iter().for_each(|it| collect(it, found)),
        Node::Fold(fold) => {
            let Fold { range, first, goes_on, next, last } = &**fold;
            [range, first, goes_on, next, last].into_iter().for_each(|it| collect(it, found));
        }
    }
}

/// What a chain of fields reads that begins with a name.
fn reference(node: &Node) -> Option<Reference> {
    chain(node).map(|chain| chain.reference)
}

/// A chain of fields that begins with a name.
struct Chain {
    reference: Reference,
    /// Whether all of it is fields so far. What is below an element of a list has no path of its own.
    is_of_fields: bool,
}

fn chain(node: &Node) -> Option<Chain> {
    match node {
        Node::Root(_, name) => {
            let reference = Reference { name: name.clone(), path: Vec::new() };
            Some(Chain { reference, is_of_fields: true })
        }
        Node::Field(operand, field) | Node::Has(operand, field) | Node::OptionalField(operand, field) => {
            Some(chain(operand)?.below(field))
        }
        Node::Call(Function::Index | Function::OptionalIndex, arguments) => match arguments.as_slice() {
            [operand, Node::Text(field)] => Some(chain(operand)?.below(field)),
            // An index that is computed reads something itself, which is found apart.
            [operand, Node::Integer(_)] => Some(Chain { is_of_fields: false, ..chain(operand)? }),
            _ => None,
        },
        _ => None,
    }
}

impl Chain {
    fn below(mut self, field: &str) -> Self {
        if self.is_of_fields {
            self.reference.path.push(field.to_owned());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::COMPOSITION;

    #[test]
    fn what_an_expression_reads_is_known_without_values() {
        let names = ["schema", "web"];
        for (text, expected) in [
            ("1 + 2", vec![]),
            ("schema.spec.image", vec![("schema", vec!["spec", "image"])]),
            ("schema.spec.?image.orValue('x')", vec![("schema", vec!["spec", "image"])]),
            ("has(web.status.url) ? web.status.url : ''", vec![("web", vec!["status", "url"])]),
            ("schema.metadata.labels['a.b/c']", vec![("schema", vec!["metadata", "labels", "a.b/c"])]),
            ("web.status.nodes[0].name", vec![("web", vec!["status", "nodes"])]),
            ("schema.spec[web.status.key]", vec![("schema", vec!["spec"]), ("web", vec!["status", "key"])]),
            (
                "web.status.nodes.map(n, n + schema.spec.suffix)",
                vec![("schema", vec!["spec", "suffix"]), ("web", vec!["status", "nodes"])],
            ),
            ("{'a': web}.a.status", vec![("web", vec![])]),
        ] {
            let found = Program::compile(text, &names, COMPOSITION).map(|program| program.references());
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, path)| Reference {
                    name: name.to_owned(),
                    path: path.into_iter().map(str::to_owned).collect(),
                })
                .collect();
            assert_eq!(found, Ok(expected), "{text}");
        }
    }

    /// One table of what compositions have beyond readiness.
    #[test]
    fn values_are_made_as_cel_makes_them() {
        let schema = json!({
            "metadata": {"name": "Web-1", "labels": {"team": "red"}},
            "spec": {"ports": [80, 443], "cpu": "500m", "memory": "2Gi", "none": null},
        });
        for (text, expected) in [
            ("{'a': 1, 'b': [true, null], 'c': schema.spec.ports}", json!({"a": 1, "b": [true, null], "c": [80, 443]})),
            ("{'a': 1} == {'a': 1.0}", json!(true)),
            ("{'a': 1}.a + {'b': 2}['b']", json!(3)),
            ("has({'a': 1}.a) && 'a' in {'a': 1} && size({'a': 1}) == 1", json!(true)),
            ("{'b': 1, 'a': 2}.map(k, k)", json!(["b", "a"])),
            ("{?'a': schema.spec.?gone, ?'b': schema.spec.?cpu}", json!({"b": "500m"})),
            ("[?schema.spec.?gone, ?schema.spec.?cpu]", json!(["500m"])),
            ("schema.spec.?gone.?deeper.orValue('none')", json!("none")),
            ("schema.spec.?cpu.orValue('none')", json!("500m")),
            ("schema.spec.?gone.hasValue() || schema.?spec.?cpu.hasValue()", json!(true)),
            ("schema.spec.?gone.or(schema.spec.?cpu).value()", json!("500m")),
            ("schema.spec.ports[?5].orValue(1)", json!(1)),
            ("schema.spec.ports[?1].orValue(1)", json!(443)),
            ("schema.metadata.labels[?'team'].orValue('blue')", json!("red")),
            ("optional.of(3).value() + optional.none().orValue(4)", json!(7)),
            ("schema.metadata.labels.merge({'tier': 'web', 'team': 'blue'})", json!({"team": "blue", "tier": "web"})),
            ("schema.metadata.name.lowerAscii() + schema.metadata.name.upperAscii()", json!("web-1WEB-1")),
            ("' a '.trim() + 'a-b'.replace('-', '.')", json!("aa.b")),
            ("'a,b,c'.split(',').join('/')", json!("a/b/c")),
            ("['a', 'b'].join()", json!("ab")),
            ("'a,b,c'.split(',', 2)", json!(["a", "b,c"])),
            ("'hällo'.substring(1, 3) + 'hello'.substring(3)", json!("ällo")),
            ("'hello'.indexOf('l') * 10 + 'hello'.indexOf('x')", json!(19)),
            (
                "'%s has %d of %s, 100%%'.format([schema.metadata.name, 3, schema.spec.ports])",
                json!("Web-1 has 3 of [80,443], 100%"),
            ),
            ("math.greatest(1, 5, 3) + math.least([4, 2])", json!(7)),
            ("schema.spec.ports.sum() + [1, 2].max() - [1, 2].min()", json!(524)),
            ("quantity(schema.spec.cpu) * 2.0", json!(1.0)),
            ("quantity(schema.spec.memory)", json!(2_147_483_648_i64)),
            ("isQuantity('2x') || isQuantity('1e3')", json!(true)),
            ("bool('true') && !bool('false')", json!(true)),
            ("json.marshal({'a': [1, schema.spec.none]})", json!(r#"{"a":[1,null]}"#)),
            ("json.unmarshal('{\"a\": 1}').a", json!(1)),
            ("[[1, 2], [3]].flatten() + [3, 1, 2].sort() + [1, 1, 2].distinct()", json!([1, 2, 3, 1, 2, 3, 1, 2])),
            ("type(1) == type(2) && type('a') == 'string'", json!(true)),
        ] {
            let program = Program::compile(text, &["schema"], COMPOSITION);
            let value = program.map_err(Into::into).and_then(|program| program.value(&[Some(&schema)]));
            assert_eq!(value, Ok(Some(expected)), "{text}");
        }
        let absent = Program::compile("schema.spec.?gone", &["schema"], COMPOSITION);
        assert_eq!(absent.map_err(Into::into).and_then(|program| program.value(&[Some(&schema)])), Ok(None));
    }

    #[test]
    fn what_has_no_value_says_why_and_of_what() {
        let (schema, web) = (json!({"spec": {"text": "a"}}), json!({"status": {"nodes": []}}));
        let gone = |field: &str, root: &str| EvaluationError::NoSuchField {
            field: field.to_owned(),
            root: (!root.is_empty()).then(|| root.to_owned()),
        };
        for (text, expected) in [
            ("web.status.ip", gone("ip", "web")),
            ("web.status['ip']", gone("ip", "web")),
            (
                "schema.spec.text + web.status.nodes[0]",
                EvaluationError::NoSuchElement { element: 0, root: Some("web".to_owned()) },
            ),
            ("late.status.ip", EvaluationError::NotThere("late".to_owned())),
            ("late.?status", EvaluationError::NotThere("late".to_owned())),
            ("[schema].map(s, s.gone)", gone("gone", "")),
            ("schema.spec.?gone.value()", EvaluationError::NoResult("`value`")),
            ("'%s'.format([])", EvaluationError::NoResult("`format`")),
            ("'%x'.format([1])", EvaluationError::NoResult("`format`")),
            ("'a'.substring(2)", EvaluationError::NoResult("`substring`")),
            ("quantity('abc')", EvaluationError::NoResult("`quantity`")),
            ("json.unmarshal('{')", EvaluationError::NoResult("`json.unmarshal`")),
            ("[].max()", EvaluationError::NoResult("`max`")),
            ("{1: 2}", EvaluationError::WrongType { what: "the key of a map", needed: "a string", found: "an int" }),
            ("[1, 'a'].join()", EvaluationError::WrongType { what: "`join`", needed: "strings", found: "an int" }),
            (
                "schema.spec.text.merge({})",
                EvaluationError::WrongType { what: "`merge`", needed: "maps", found: "a string" },
            ),
        ] {
            let program = Program::compile(text, &["schema", "web", "late"], COMPOSITION);
            let value = program.map_err(Into::into).and_then(|it| it.value(&[Some(&schema), Some(&web), None]));
            assert_eq!(value, Err(expected), "{text}");
        }
    }

    #[test]
    fn making_values_ends_too() {
        let text = json!("a".repeat(1000));
        for expression in [
            format!("[t]{}", ".map(x, x.replace('a', x))".repeat(4)),
            format!("[t]{}", ".map(x, [x, x].join(x))".repeat(10)),
            format!("[{{'a': t}}]{}", ".map(x, {'a': x, 'b': x})".repeat(20)),
            format!("[t]{}", ".map(x, '%s%s'.format([x, x]))".repeat(16)),
            format!("[t]{}", ".map(x, json.marshal([x, x]))".repeat(16)),
            format!("[[1]]{}.flatten()", ".map(x, x + x)".repeat(20)),
            "t.split('').map(x, t.split('').map(y, x == y))".to_owned(),
            "t.split('').map(x, {'k': t.split('')}).map(x, {'k': x}.merge({'j': x}))".to_owned(),
        ] {
            let program = Program::compile(&expression, &["t"], COMPOSITION);
            let value = program.map_err(Into::into).and_then(|program| program.value(&[Some(&text)]));
            assert!(matches!(value, Err(EvaluationError::TooCostly(_))), "{expression}: {:.200}", format!("{value:?}"));
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_refused_with_those_that_are() {
        for (text, words) in [
            ("shema.spec", "there is nothing called `shema`; there are schema and web"),
            ("schema.spec.matches('a')", "there is no function `matches`"),
            ("{'a': 1, 2}", "line 1"),
            ("Pod{name: 'a'}", "messages"),
            ("'a'.format(1, 2)", "there is no function `format` for these arguments"),
            ("math.sqrt(2)", "there is no function `math.sqrt`"),
        ] {
            let fault = Program::compile(text, &["schema", "web"], COMPOSITION).map_err(|error| error.to_string());
            assert!(fault.as_ref().is_err_and(|fault| fault.contains(words)), "{text}: {fault:?}");
        }
    }
}
