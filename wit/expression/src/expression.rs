//! One expression over one object, `self`, as a manifest has it in its text. Its bounds are those of what the host evaluates itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CompileError, EvaluationError, Program, dialect::READINESS};

/// An expression.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Expression {
    text: String,
    /// Or why it cannot be evaluated.
    compiled: Result<Arc<Program>, CompileError>,
}

impl Expression {
    /// Why it cannot be evaluated; none if it can.
    pub fn fault(&self) -> Option<&CompileError> {
        self.compiled.as_ref().err()
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is true of an object.
    ///
    /// # Errors
    /// [`EvaluationError`] if it has no value, or one that is neither true nor false.
    pub fn is_true_of(&self, object: &serde_json::Value) -> Result<bool, EvaluationError> {
        self.program()?.boolean(&[Some(object)])
    }

    /// The text that it makes of an object.
    ///
    /// # Errors
    /// [`EvaluationError`] if it has no value, or one that is no text.
    pub fn text_of(&self, object: &serde_json::Value) -> Result<String, EvaluationError> {
        self.program()?.text(&[Some(object)])
    }

    fn program(&self) -> Result<&Program, EvaluationError> {
        self.compiled.as_deref().map_err(|error| error.clone().into())
    }
}

impl From<String> for Expression {
    fn from(text: String) -> Self {
        let compiled = Program::compile(&text, &["self"], READINESS).map(Arc::new);
        Self { text, compiled }
    }
}

impl From<&str> for Expression {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster() -> Value {
        json!({
            "metadata": {"name": "db", "generation": 3, "labels": {"tier": "data", "a.b/c": "d"}},
            "spec": {"replicas": 3, "paused": false, "ratio": 0.5, "none": null},
            "status": {
                "phase": "Cluster in healthy state", "ready": 3, "nodes": ["a", "b", "c"],
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Up"},
                    {"type": "Archiving", "status": "False", "reason": "NoSpace"},
                ],
            },
        })
    }

    #[test]
    fn expressions_have_the_values_that_cel_gives_them() {
        for (text, expected) in [
            ("self.status.phase == 'Cluster in healthy state'", true),
            ("self.status.ready >= self.spec.replicas && !self.spec.paused", true),
            ("self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", true),
            ("self.status.conditions.all(c, c.status == 'True')", false),
            ("self.status.conditions.exists_one(c, c.status == 'False')", true),
            ("self.status.conditions.filter(c, c.status == 'False')[0].reason == 'NoSpace'", true),
            ("self.status.nodes.map(n, n + '-0') == ['a-0', 'b-0', 'c-0']", true),
            ("self.status.nodes.filter(n, n != 'b').map(n, n + n) == ['aa', 'cc']", true),
            ("self.status.nodes.map(n, self.status.nodes.map(m, n + m))[2][0] == 'ca'", true),
            ("self.status.nodes.all(n, self.status.nodes.exists(m, m == n))", true),
            ("size(self.status.nodes) == 3 && self.status.nodes.size() == 3 && size('äö') == 2", true),
            ("has(self.status.phase) && !has(self.status.gone)", true),
            ("has(self.metadata.labels) && self.metadata.labels['a.b/c'] == 'd'", true),
            ("'tier' in self.metadata.labels && !('x' in self.status.nodes) && 'c' in self.status.nodes", true),
            ("self.metadata.labels.exists(name, name.startsWith('a.'))", true),
            ("self.status.phase.contains('healthy') && self.status.phase.endsWith('state')", true),
            ("self.spec.ratio * 2.0 == 1 && 1 < 1.5 && 2.5 > 2", true),
            ("7 / 2 == 3 && 7 % 2 == 1 && -7 + 2 * 3 - 1 == -2", true),
            ("int('12') == 12 && string(12) == '12' && double('0.5') == 0.5 && int(2.9) == 2", true),
            ("self.spec.none == null && self.status.nodes != null", true),
            ("self.status == self.status && self.status != self.spec && [1, 2.0] == [1.0, 2]", true),
            ("(self.spec.paused ? 'a' : 'b') == 'b'", true),
            // What decides alone decides, whatever errors there are beside it.
            ("self.gone.phase == 'x' || self.spec.replicas == 3", true),
            ("self.spec.paused && self.gone.phase == 'x'", false),
            ("[0, 1].exists(n, 1 / n == 1)", true),
            ("[0, 1].all(n, 1 / n == 2)", false),
        ] {
            assert_eq!(Expression::from(text).is_true_of(&cluster()), Ok(expected), "{text}");
        }
        let text = Expression::from("self.status.phase + ', ' + string(self.status.ready) + ' ready'");
        assert_eq!(text.text_of(&cluster()).as_deref(), Ok("Cluster in healthy state, 3 ready"));
    }

    #[test]
    fn what_has_no_value_says_why() {
        for (text, words) in [
            ("self.status.gone == 1", "there is no field `gone`"),
            ("self.metadata.labels['gone'] == 'x'", "there is no field `gone`"),
            ("self.status.nodes[3] == 'x'", "no element 3"),
            ("self.status.nodes[-1] == 'x'", "no element -1"),
            ("self.status.phase", "the expression needs a bool, not a string"),
            ("self.status.phase.gone == 1", "a field needs a map, not a string"),
            ("self.status.phase && true", "`&&` needs a bool, not a string"),
            ("self.status.phase > 1", "`>` needs two values of one type"),
            ("self.status.phase + 1 == 'x'", "`+` needs two values of one type"),
            ("has(self.gone.phase)", "there is no field `gone`"),
            ("1 / 0 == 1", "`/` has no result"),
            ("9223372036854775807 + 1 == 1", "`+` has no result"),
            ("int('x') == 1", "`int` has no result"),
            ("self.status.phase.all(c, true)", "a macro needs a list or a map, not a string"),
            ("[0, 1].all(n, 1 / n == 1)", "`/` has no result"),
            ("size(3) == 1", "`size` needs a string, a list or a map, not an int"),
        ] {
            let told = Expression::from(text).is_true_of(&cluster()).map_err(|error| error.to_string());
            assert!(told.as_ref().is_err_and(|told| told.contains(words)), "{text}: {told:?}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_is_refused_with_words_that_help() {
        let chain = format!("self{}", ".a".repeat(100));
        let nested = format!("{}1{} == 1", "(".repeat(60), ")".repeat(60));
        let long = format!("self.a == '{}'", "a".repeat(1024));
        for (text, words) in [
            ("", "line 1"),
            ("self.status.phase ==", "line 1, column"),
            ("self.status.phase = 'x'", "line 1, column 19"),
            ("object.status.phase == 'x'", "there is nothing called `object`; the object is `self`"),
            ("self.status.nodes.all(n, m == 'x')", "there is nothing called `m`"),
            ("self.status.phase.matches('x')", "no function `matches`"),
            ("now() == 1", "no function `now`"),
            ("self.nodes.exists(1, true)", "line 1"),
            ("{'a': 1} == self", "maps"),
            ("1u == 1u", "without a sign"),
            ("self.status.?phase == 'x'", "line 1"),
            ("@result == 1", "line 1"),
            (&chain, "levels deep"),
            (&nested, "imit"),
            (&long, "at most 1024"),
        ] {
            let fault = Expression::from(text).fault().map(ToString::to_string);
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(words)), "{text}: {fault:?}");
        }
    }

    /// Whoever wrote it: no expression takes long, overflows the stack or fills the memory.
    #[test]
    fn hostile_expressions_end() {
        let elements: Vec<_> = (0..2000).map(|number| json!({"name": format!("{number:0>100}")})).collect();
        let object = json!({"list": elements, "text": "a".repeat(1 << 20)});
        let doubling = format!("[self.text]{} == []", ".map(x, x + x)".repeat(20));
        let lists = format!("[1]{} == []", ".map(x, [x, x])".repeat(20));
        for text in [
            "self.list.all(x, self.list.all(y, x == x && y == y))",
            "self.list.map(x, self.list) == self.list.map(x, self.list)",
            "self.list.exists(x, self.text.contains(x.name))",
            "self.list.exists(x, self.list.exists(y, false)) || true",
            &doubling,
            &lists,
        ] {
            let expression = Expression::from(text);
            assert_eq!(expression.fault(), None, "{text}");
            assert_eq!(expression.is_true_of(&object), Err(EvaluationError::TooCostly(50_000)), "{text}");
        }
        assert_eq!(Expression::from("self.list.filter(x, x.name != '').size() == 2000").is_true_of(&object), Ok(true));
        for piece in
            ["(", "[", "!", "-", "a.", "a[", "{", "a?", "a+", "a&&", "a.map(a,", "'", "\\", "\u{0}", "\u{10ffff}", "`"]
        {
            let text = piece.repeat(1000 / piece.len());
            assert!(Expression::from(text).fault().is_some(), "{piece}");
        }
    }
}
