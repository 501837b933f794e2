//! Evaluates a compiled expression, and counts the steps. An error is a value here: `true || ERROR` is true, as CEL has it.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::Value as Json;

use super::{
    EvaluationError, library,
    node::{Element, Entry, Fold, Function, Node, Presence},
    value::{Value, steps_of_text},
};

pub(super) type Evaluated<'v> = Result<Value<'v>, EvaluationError>;

/// One evaluation.
pub(super) struct Evaluation<'v> {
    roots: &'v [Option<&'v Json>],
    /// Those of macros, the innermost last.
    variables: Vec<Evaluated<'v>>,
    /// The steps that it may take, and those that are left.
    most: usize,
    left: usize,
}

impl<'v> Evaluation<'v> {
    pub(super) fn of(roots: &'v [Option<&'v Json>], steps: usize) -> Self {
        Self { roots, variables: Vec::new(), most: steps, left: steps }
    }

    /// The value of an expression; none if it is optional and has none.
    pub(super) fn json(mut self, node: &'v Node) -> Result<Option<Json>, EvaluationError> {
        let value = match self.result(node)? {
            Value::Optional(None) => return Ok(None),
            value => value,
        };
        self.spend(value.json_steps())?;
        value.into_json().map(Some).ok_or(EvaluationError::NoResult("the expression"))
    }

    /// The value of an expression that has to be true or false.
    pub(super) fn boolean(mut self, node: &'v Node) -> Result<bool, EvaluationError> {
        match self.result(node)? {
            Value::Boolean(it) => Ok(it),
            other => Err(wrong_type("the expression", "a bool", &other)),
        }
    }

    /// The value of an expression that has to be a text.
    pub(super) fn text(mut self, node: &'v Node) -> Result<String, EvaluationError> {
        match self.result(node)? {
            Value::Text(text) => Ok(text.into_owned()),
            other => Err(wrong_type("the expression", "a string", &other)),
        }
    }

    fn result(&mut self, node: &'v Node) -> Evaluated<'v> {
        let result = self.evaluate(node);
        // Whoever ran out of steps has no result, although `||` and `&&` pass over errors.
        if self.left == 0 { Err(EvaluationError::TooCostly(self.most)) } else { result }
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        self.left = self.left.saturating_sub(steps);
        if self.left == 0 { Err(EvaluationError::TooCostly(self.most)) } else { Ok(()) }
    }

    fn evaluate(&mut self, node: &'v Node) -> Evaluated<'v> {
        self.spend(1)?;
        match node {
            Node::Null => Ok(Value::Null),
            Node::Boolean(it) => Ok(Value::Boolean(*it)),
            Node::Integer(it) => Ok(Value::Integer(*it)),
            Node::Double(it) => Ok(Value::Double(*it)),
            Node::Text(text) => Ok(Value::Text(Cow::Borrowed(text))),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Root(place, name) => self.root(*place, name),
            Node::Variable(place) => self.variable(*place),
            Node::Taken(place) => self.taken(*place),
            Node::Field(operand, field) => self.field(operand, field),
            Node::OptionalField(operand, field) => self.optional_field(operand, field),
            Node::Has(operand, field) => {
                let value = match self.evaluate(operand)? {
                    Value::Optional(None) => return Ok(Value::Boolean(false)),
                    Value::Optional(Some(value)) => *value,
                    value => value,
                };
                value.has_field(field).map(Value::Boolean).ok_or_else(|| wrong_type("`has`", "a map", &value))
            }
            Node::Choice(parts) => {
                let [condition, one, other] = &**parts;
                let is_true = self.condition("`?:`", condition)?;
                self.evaluate(if is_true { one } else { other })
            }
            Node::And(operands) => self.connect("`&&`", operands, false),
            Node::Or(operands) => self.connect("`||`", operands, true),
            Node::IsNotFalse(operand) => {
                let is_false = matches!(self.evaluate(operand), Ok(Value::Boolean(false)));
                Ok(Value::Boolean(!is_false))
            }
            Node::Call(function, arguments) => self.call(*function, arguments),
            Node::Append(place, element) => self.append(*place, element),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn variable(&mut self, place: usize) -> Evaluated<'v> {
        let value = self.variables.get(place).cloned().unwrap_or(Ok(Value::Null));
        self.spend(value.as_ref().map_or(1, Value::copy_steps))?;
        value
    }

    fn taken(&mut self, place: usize) -> Evaluated<'v> {
        let variable = self.variables.get_mut(place);
        variable.map_or(Ok(Value::Null), |variable| std::mem::replace(variable, Ok(Value::Null)))
    }

    fn root(&self, place: usize, name: &str) -> Evaluated<'v> {
        let value = self.roots.get(place).copied().flatten();
        value.map(Value::of).ok_or_else(|| EvaluationError::NotThere(name.to_owned()))
    }

    fn list(&mut self, elements: &'v [Element]) -> Evaluated<'v> {
        let mut list = Vec::new();
        for element in elements {
            let value = self.evaluate(&element.node)?;
            list.extend(present(value, element.presence)?);
        }
        Ok(Value::List(list))
    }

    fn map(&mut self, entries: &'v [Entry]) -> Evaluated<'v> {
        let mut map: Vec<(Cow<'v, str>, Value<'v>)> = Vec::new();
        for Entry { key, value, presence } in entries {
            let key = match self.evaluate(key)? {
                Value::Text(key) => key,
                other => return Err(wrong_type("the key of a map", "a string", &other)),
            };
            self.spend(map.len() + steps_of_text(&key))?;
            if map.iter().any(|(name, _)| *name == key) {
                return Err(EvaluationError::NoResult("a map with a key that is there twice"));
            }
            let value = self.evaluate(value)?;
            map.extend(present(value, *presence)?.map(|value| (key, value)));
        }
        Ok(Value::Map(map))
    }

    fn field(&mut self, operand: &'v Node, field: &str) -> Evaluated<'v> {
        // What is optional stays optional: `a.?b.c` has no value where there is no `b`, nor where that has no `c`.
        let value = match self.evaluate(operand)? {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => return optional_field(*value, field),
            value => value,
        };
        match value.into_field(field) {
            Ok(found) => {
                found.ok_or_else(|| EvaluationError::NoSuchField { field: field.to_owned(), root: root(operand) })
            }
            Err(other) => Err(wrong_type("a field", "a map", &other)),
        }
    }

    fn optional_field(&mut self, operand: &'v Node, field: &str) -> Evaluated<'v> {
        match self.evaluate(operand)? {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => optional_field(*value, field),
            value => optional_field(value, field),
        }
    }

    fn condition(&mut self, what: &'static str, node: &'v Node) -> Result<bool, EvaluationError> {
        match self.evaluate(node)? {
            Value::Boolean(it) => Ok(it),
            other => Err(wrong_type(what, "a bool", &other)),
        }
    }

    /// `decisive`: what either operand decides alone, whatever the other one is.
    fn connect(&mut self, what: &'static str, operands: &'v [Node; 2], decisive: bool) -> Evaluated<'v> {
        let [one, other] = operands;
        let one = self.condition(what, one);
        if one == Ok(decisive) {
            return Ok(Value::Boolean(decisive));
        }
        match self.condition(what, other) {
            Ok(other) if other == decisive => Ok(Value::Boolean(decisive)),
            other => one.and(other).map(Value::Boolean),
        }
    }

    fn append(&mut self, place: usize, element: &'v Node) -> Evaluated<'v> {
        let element = self.evaluate(element)?;
        match self.taken(place)? {
            Value::List(mut elements) => {
                elements.push(element);
                Ok(Value::List(elements))
            }
            other => Err(wrong_type("`map`", "a list", &other)),
        }
    }

    fn fold(&mut self, fold: &'v Fold) -> Evaluated<'v> {
        let range = self.evaluate(&fold.range)?;
        let found = range.type_name();
        let Some(elements) = range.into_elements() else {
            return Err(EvaluationError::WrongType { what: "a macro", needed: "a list or a map", found });
        };
        let depth = self.variables.len();
        let first = self.evaluate(&fold.first);
        self.variables.extend([first, Ok(Value::Null)]);
        for element in elements {
            self.spend(1)?;
            if !matches!(self.evaluate(&fold.goes_on), Ok(Value::Boolean(true))) {
                break;
            }
            self.set(depth + 1, Ok(element));
            let next = self.evaluate(&fold.next);
            self.set(depth, next);
        }
        let last = self.evaluate(&fold.last);
        self.variables.truncate(depth);
        last
    }

    fn set(&mut self, place: usize, value: Evaluated<'v>) {
        if let Some(variable) = self.variables.get_mut(place) {
            *variable = value;
        }
    }

    fn call(&mut self, function: Function, arguments: &'v [Node]) -> Evaluated<'v> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.evaluate(argument)?);
        }
        if function.is_making() {
            return library::call(self, function, values);
        }
        let (second, first) = match (values.pop(), values.pop()) {
            (Some(only), None) => return self.of_one(function, only),
            (Some(second), Some(first)) => (second, first),
            (None, _) => return Err(EvaluationError::NoResult(function.name())),
        };
        match (function, first) {
            (Function::Index, Value::Optional(value)) => match value {
                Some(value) => library::optional_index(*value, &second),
                None => Ok(Value::Optional(None)),
            },
            (Function::Index, value) => {
                let root = arguments.first().and_then(root);
                index(value, &second, root)
            }
            (function, first) => self.of_two(function, first, second),
        }
    }

    fn of_one(&mut self, function: Function, value: Value<'v>) -> Evaluated<'v> {
        let no_result = EvaluationError::NoResult(function.name());
        match (function, value) {
            (Function::Not, Value::Boolean(it)) => Ok(Value::Boolean(!it)),
            (Function::Negate, Value::Integer(it)) => it.checked_neg().map(Value::Integer).ok_or(no_result),
            (Function::Negate, Value::Double(it)) => Ok(Value::Double(-it)),
            (Function::Size, value) => self.size(value),
            (Function::ToInteger, Value::Integer(it)) => Ok(Value::Integer(it)),
            // Beyond this, doubles and integers do not meet.
            #[allow(clippy::cast_possible_truncation)]
            (Function::ToInteger, Value::Double(it)) if it.abs() < 9e18 => Ok(Value::Integer(it as i64)),
            (Function::ToInteger, Value::Text(text)) => text.parse().map(Value::Integer).map_err(|_| no_result),
            (Function::ToDouble, Value::Double(it)) => Ok(Value::Double(it)),
            #[allow(clippy::cast_precision_loss)]
            (Function::ToDouble, Value::Integer(it)) => Ok(Value::Double(it as f64)),
            (Function::ToDouble, Value::Text(text)) => text.parse().map(Value::Double).map_err(|_| no_result),
            (Function::ToText, Value::Text(text)) => Ok(Value::Text(text)),
            (Function::ToText, Value::Integer(it)) => Ok(Value::Text(it.to_string().into())),
            (Function::ToText, Value::Double(it)) => Ok(Value::Text(it.to_string().into())),
            (Function::ToText, Value::Boolean(it)) => Ok(Value::Text(it.to_string().into())),
            (Function::ToInteger, Value::Double(_)) => Err(no_result),
            (function, other) => Err(wrong_type(function.name(), needed(function), &other)),
        }
    }

    fn size(&mut self, value: Value<'v>) -> Evaluated<'v> {
        let size = match &value {
            Value::Text(text) => {
                self.spend(steps_of_text(text))?;
                text.chars().count()
            }
            Value::Elements(elements) => elements.len(),
            Value::List(elements) => elements.len(),
            Value::Object(fields) => fields.len(),
            Value::Map(entries) => entries.len(),
            other => return Err(wrong_type("`size`", needed(Function::Size), other)),
        };
        i64::try_from(size).map(Value::Integer).map_err(|_| EvaluationError::NoResult("`size`"))
    }

    fn of_two(&mut self, function: Function, one: Value<'v>, other: Value<'v>) -> Evaluated<'v> {
        match function {
            Function::Equals => self.equals(&one, &other).map(Value::Boolean),
            Function::NotEquals => self.equals(&one, &other).map(|equals| Value::Boolean(!equals)),
            Function::Less => self.compare(function, &one, &other, Ordering::is_lt),
            Function::LessEquals => self.compare(function, &one, &other, Ordering::is_le),
            Function::Greater => self.compare(function, &one, &other, Ordering::is_gt),
            Function::GreaterEquals => self.compare(function, &one, &other, Ordering::is_ge),
            Function::In => self.is_in(&one, other),
            Function::Contains => self.search(function, &one, &other, |text, part| text.contains(part)),
            Function::StartsWith => self.search(function, &one, &other, |text, part| text.starts_with(part)),
            Function::EndsWith => self.search(function, &one, &other, |text, part| text.ends_with(part)),
            Function::Add => self.add(one, other),
            _ => arithmetic(function, &one, &other),
        }
    }

    /// Whether both are equal, as CEL has it: numbers by their value, whatever their type.
    pub(super) fn equals(&mut self, one: &Value<'v>, other: &Value<'v>) -> Result<bool, EvaluationError> {
        self.spend(1)?;
        match (one, other) {
            (Value::Optional(one), Value::Optional(other)) => match (one, other) {
                (None, None) => Ok(true),
                (Some(one), Some(other)) => self.equals(one, other),
                _ => Ok(false),
            },
            (Value::Map(entries), other) | (other, Value::Map(entries)) => {
                self.spend(entries.len() + other.copy_steps())?;
                let size = match other {
                    Value::Map(entries) => entries.len(),
                    Value::Object(fields) => fields.len(),
                    _ => return Ok(false),
                };
                for (name, value) in entries {
                    self.spend(size)?;
                    let Ok(Some(other)) = other.clone().into_field(name) else { return Ok(false) };
                    if !self.equals(value, &other)? {
                        return Ok(false);
                    }
                }
                Ok(size == entries.len())
            }
            (Value::Null, Value::Null) => Ok(true),
            (Value::Text(one), Value::Text(other)) if one.len() == other.len() => {
                self.spend(steps_of_text(one))?;
                Ok(one == other)
            }
            (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
                for (name, value) in *one {
                    let Some(other) = other.get(name) else { return Ok(false) };
                    if !self.equals(&Value::of(value), &Value::of(other))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Elements(_) | Value::List(_), Value::Elements(_) | Value::List(_)) => {
                self.spend(one.copy_steps() + other.copy_steps())?;
                let (one, other) = (one.clone().into_elements(), other.clone().into_elements());
                let (mut one, mut other) = (one.into_iter().flatten(), other.into_iter().flatten());
                loop {
                    match (one.next(), other.next()) {
                        (None, None) => return Ok(true),
                        (Some(one), Some(other)) if self.equals(&one, &other)? => {}
                        _ => return Ok(false),
                    }
                }
            }
            (Value::Text(_), Value::Text(_)) => Ok(false),
            _ => Ok(one.compare(other) == Some(Ordering::Equal)),
        }
    }

    fn compare(
        &mut self,
        function: Function,
        one: &Value<'v>,
        other: &Value<'v>,
        is_wanted: fn(Ordering) -> bool,
    ) -> Evaluated<'v> {
        if let Value::Text(text) = one {
            self.spend(steps_of_text(text))?;
        }
        let is_number = one.is_number() && other.is_number();
        match one.compare(other) {
            Some(ordering) => Ok(Value::Boolean(is_wanted(ordering))),
            // Not a number.
            None if is_number => Ok(Value::Boolean(false)),
            None => Err(wrong_type(function.name(), "two values of one type", other)),
        }
    }

    fn is_in(&mut self, wanted: &Value<'v>, all: Value<'v>) -> Evaluated<'v> {
        match all {
            Value::Object(_) | Value::Map(_) => match wanted {
                Value::Text(name) => Ok(Value::Boolean(all.has_field(name) == Some(true))),
                other => Err(wrong_type("`in`", "a string before it", other)),
            },
            Value::Elements(_) | Value::List(_) => {
                for element in all.into_elements().into_iter().flatten() {
                    if self.equals(wanted, &element)? {
                        return Ok(Value::Boolean(true));
                    }
                }
                Ok(Value::Boolean(false))
            }
            other => Err(wrong_type("`in`", "a list or a map", &other)),
        }
    }

    fn search(
        &mut self,
        function: Function,
        text: &Value<'v>,
        part: &Value<'v>,
        is_found: fn(&str, &str) -> bool,
    ) -> Evaluated<'v> {
        match (text, part) {
            (Value::Text(text), Value::Text(part)) => {
                self.spend(steps_of_text(text) + steps_of_text(part))?;
                Ok(Value::Boolean(is_found(text, part)))
            }
            (Value::Text(_), other) | (other, _) => Err(wrong_type(function.name(), "strings", other)),
        }
    }

    fn add(&mut self, one: Value<'v>, other: Value<'v>) -> Evaluated<'v> {
        match (one, other) {
            (Value::Text(one), Value::Text(other)) => {
                self.spend(steps_of_text(&one) + steps_of_text(&other))?;
                Ok(Value::Text(Cow::Owned(format!("{one}{other}"))))
            }
            (one @ (Value::Elements(_) | Value::List(_)), other @ (Value::Elements(_) | Value::List(_))) => {
                let mut sum = Vec::new();
                for element in [one, other].into_iter().filter_map(Value::into_elements).flatten() {
                    self.spend(1)?;
                    sum.push(element);
                }
                Ok(Value::List(sum))
            }
            (one, other) => arithmetic(Function::Add, &one, &other),
        }
    }
}

/// A part of a list or a map that is made; none if it is optional and not there.
fn present<'v>(value: Value<'v>, presence: Presence) -> Result<Option<Value<'v>>, EvaluationError> {
    match (presence, value) {
        (Presence::Always, value) => Ok(Some(value)),
        (Presence::IfThere, Value::Optional(value)) => Ok(value.map(|value| *value)),
        (Presence::IfThere, other) => Err(wrong_type("`?` in a list or a map", "an optional value", &other)),
    }
}

/// Where nothing is, nothing is below it.
fn optional_field<'v>(value: Value<'v>, field: &str) -> Evaluated<'v> {
    match value.into_field(field) {
        Err(Value::Null) => Ok(Value::Optional(None)),
        Ok(found) => Ok(Value::Optional(found.map(Box::new))),
        Err(other) => Err(wrong_type("a field", "a map", &other)),
    }
}

/// The name at the beginning of a chain of fields.
fn root(node: &Node) -> Option<String> {
    match node {
        Node::Root(_, name) => Some(name.clone()),
        Node::Field(operand, _) | Node::OptionalField(operand, _) => root(operand),
        Node::Call(Function::Index | Function::OptionalIndex, arguments) => arguments.first().and_then(root),
        _ => None,
    }
}

/// `root`: the name with which what is indexed begins.
fn index<'v>(value: Value<'v>, index: &Value<'v>, root: Option<String>) -> Evaluated<'v> {
    match (value, index) {
        (value @ (Value::Object(_) | Value::Map(_)), Value::Text(name)) => match value.into_field(name) {
            Ok(Some(found)) => Ok(found),
            _ => Err(EvaluationError::NoSuchField { field: name.clone().into_owned(), root }),
        },
        (Value::Elements(elements), Value::Integer(place)) => {
            let element = usize::try_from(*place).ok().and_then(|place| elements.get(place));
            element.map(Value::of).ok_or(EvaluationError::NoSuchElement { element: *place, root })
        }
        (Value::List(elements), Value::Integer(place)) => {
            let element = usize::try_from(*place).ok().and_then(|place| elements.into_iter().nth(place));
            element.ok_or(EvaluationError::NoSuchElement { element: *place, root })
        }
        (Value::Object(_) | Value::Map(_), other) => Err(wrong_type("a map's `[]`", "a string", other)),
        (Value::Elements(_) | Value::List(_), other) => Err(wrong_type("a list's `[]`", "an int", other)),
        (other, _) => Err(wrong_type("`[]`", "a list or a map", &other)),
    }
}

fn arithmetic<'v>(function: Function, one: &Value<'v>, other: &Value<'v>) -> Evaluated<'v> {
    let result = match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => match function {
            Function::Add => one.checked_add(*other),
            Function::Subtract => one.checked_sub(*other),
            Function::Multiply => one.checked_mul(*other),
            Function::Divide => one.checked_div(*other),
            Function::Modulo => one.checked_rem(*other),
            _ => None,
        }
        .map(Value::Integer),
        (Value::Double(one), Value::Double(other)) => match function {
            Function::Add => Some(one + other),
            Function::Subtract => Some(one - other),
            Function::Multiply => Some(one * other),
            Function::Divide => Some(one / other),
            _ => None,
        }
        .map(Value::Double),
        (Value::Integer(_) | Value::Double(_), other) | (other, _) => {
            return Err(wrong_type(function.name(), "two values of one type", other));
        }
    };
    result.ok_or(EvaluationError::NoResult(function.name()))
}

/// The types that a function of one value takes.
fn needed(function: Function) -> &'static str {
    match function {
        Function::Not => "a bool",
        Function::Negate => "a number",
        Function::Size => "a string, a list or a map",
        Function::ToText => "a string, a number or a bool",
        _ => "a number or a string",
    }
}

pub(super) fn wrong_type(what: &'static str, needed: &'static str, found: &Value<'_>) -> EvaluationError {
    EvaluationError::WrongType { what, needed, found: found.type_name() }
}
