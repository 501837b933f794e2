//! Compiles the text of an expression, and refuses what it cannot be: a name or a function that is not there, or more than an expression
//! may be. Evaluates nothing.

use cel::{
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr},
    parser::{ParseErrors, Parser, PrattParser},
};

use crate::{
    dialect::{Dialect, Extent},
    node::{Call, Element, Entry, Fold, Function, Node, Presence},
};

/// The functions that are there, for people.
const FUNCTIONS: &str =
    "size, contains, startsWith, endsWith, int, double, string, has, all, exists, exists_one, filter and map";

/// Why a text is no expression that can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is too long.
    #[error("it has {bytes} bytes; at most {most} are allowed")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// It is not in the grammar of CEL.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Where, from 1 on.
        line: isize,
        /// Where, from 1 on.
        column: isize,
        /// What the parser says.
        what: String,
    },
    /// It is nested too deeply.
    #[error("it is nested more than {0} levels deep")]
    TooDeep(u16),
    /// It names a variable that is not there.
    #[error("there is nothing called `{name}`; {there_is}")]
    UnknownName {
        /// The name.
        name: String,
        /// The names that are there, in words.
        there_is: String,
    },
    /// It calls a function that is not there.
    #[error("there is no function `{name}` for these arguments; there are {there_are}")]
    UnknownFunction {
        /// The function.
        name: String,
        /// Those that are there, in words.
        there_are: String,
    },
    /// It makes a value that cannot be made.
    #[error("{0} cannot be made here")]
    Construction(&'static str),
    /// A macro has two variables.
    #[error("a macro has one variable here")]
    TwoVariables,
    /// A literal is of a type that JSON does not have.
    #[error("numbers without a sign and bytes are not supported, for JSON has none")]
    NoJson,
}

/// Compiles an expression over these names.
///
/// # Errors
/// [`CompileError`] for the first thing that is wrong with it.
pub(super) fn compile(text: &str, names: &[&str], dialect: Dialect) -> Result<Node, CompileError> {
    if text.len() > dialect.longest {
        return Err(CompileError::TooLong { bytes: text.len(), most: dialect.longest });
    }
    let parsed = parse(text, dialect).map_err(|errors| match errors.errors.into_iter().next() {
        Some(error) => CompileError::Syntax { line: error.pos.0, column: error.pos.1, what: error.msg },
        None => CompileError::Syntax { line: 1, column: 1, what: "it cannot be parsed".to_owned() },
    })?;
    Compiler { names, dialect, scope: Vec::new(), depth: 0 }.node(parsed)
}

/// Of the two parsers of the crate, the older one is for what the host compiles once. The other one is some fifteen times as fast, which counts
/// in a plugin that compiles in each of its calls.
fn parse(text: &str, dialect: Dialect) -> Result<IdedExpr, ParseErrors> {
    match dialect.extent {
        Extent::Judge => Parser::new().max_recursion_depth(dialect.deepest).error_recovery_limit(1).parse(text),
        Extent::Make => PrattParser::new()
            .max_recursion_depth(dialect.deepest)
            .error_recovery_limit(1)
            .max_expression_node_count(dialect.longest)
            .enable_optional_syntax(true)
            .parse(text),
    }
}

struct Compiler<'c> {
    names: &'c [&'c str],
    dialect: Dialect,
    /// The names of the variables of macros, the innermost last.
    scope: Vec<String>,
    depth: u16,
}

impl Compiler<'_> {
    fn node(&mut self, parsed: IdedExpr) -> Result<Node, CompileError> {
        if self.depth > self.dialect.deepest {
            return Err(CompileError::TooDeep(self.dialect.deepest));
        }
        self.depth += 1;
        let node = self.part(parsed.expr);
        self.depth -= 1;
        node
    }

    fn part(&mut self, part: Expr) -> Result<Node, CompileError> {
        match part {
            Expr::Literal(literal) => literal_node(&literal),
            Expr::Ident(name) => self.named(name),
            Expr::Select(select) => {
                let operand = Box::new(self.node(*select.operand)?);
                Ok(if select.test { Node::Has(operand, select.field) } else { Node::Field(operand, select.field) })
            }
            Expr::List(list) => self.list(list),
            Expr::Map(map) if self.dialect.extent == Extent::Make => self.map(map),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(fold) => self.fold(*fold),
            Expr::Map(_) => Err(CompileError::Construction("maps, messages and optional values")),
            Expr::Struct(_) | Expr::Unspecified => Err(CompileError::Construction("messages")),
        }
    }

    fn named(&self, name: String) -> Result<Node, CompileError> {
        if let Some(place) = self.place(&name) {
            return Ok(Node::Variable(place));
        }
        match self.names.iter().position(|known| *known == name) {
            Some(place) => Ok(Node::Root(place, name)),
            None => Err(CompileError::UnknownName { name, there_is: self.there_is() }),
        }
    }

    /// The names that are there, in words.
    fn there_is(&self) -> String {
        match self.names {
            [] => "there are no names here".to_owned(),
            [only] => format!("the object is `{only}`"),
            [first @ .., last] => format!("there are {} and {last}", first.join(", ")),
        }
    }

    fn list(&mut self, list: ListExpr) -> Result<Node, CompileError> {
        let ListExpr { elements, optional_indices } = list;
        let elements = elements.into_iter().enumerate().map(|(place, parsed)| {
            let presence = if optional_indices.contains(&place) { Presence::IfThere } else { Presence::Always };
            Ok(Element { node: self.node(parsed)?, presence })
        });
        elements.collect::<Result<_, _>>().map(Node::List)
    }

    fn map(&mut self, map: MapExpr) -> Result<Node, CompileError> {
        let mut entries = Vec::new();
        for entry in map.entries {
            let EntryExpr::MapEntry(entry) = entry.expr else { return Err(CompileError::Construction("messages")) };
            let presence = if entry.optional { Presence::IfThere } else { Presence::Always };
            entries.push(Entry { key: self.node(entry.key)?, value: self.node(entry.value)?, presence });
        }
        Ok(Node::Map(entries))
    }

    fn nodes(&mut self, parsed: Vec<IdedExpr>) -> Result<Vec<Node>, CompileError> {
        parsed.into_iter().map(|parsed| self.node(parsed)).collect()
    }

    /// The place of a variable of a macro.
    fn place(&self, name: &str) -> Option<usize> {
        self.scope.iter().rposition(|variable| variable == name)
    }

    fn call(&mut self, call: CallExpr) -> Result<Node, CompileError> {
        if let Some(node) = self.append(&call)? {
            return Ok(node);
        }
        let CallExpr { func_name, target, args } = call;
        // A name before the dot that is none of a value belongs to the function: `math.greatest`.
        let (name, target) = match target.map(|target| *target) {
            Some(IdedExpr { expr: Expr::Ident(library), .. }) if self.is_library(&library) => {
                (format!("{library}.{func_name}"), None)
            }
            target => (func_name, target),
        };
        let how = if target.is_some() { Call::Method } else { Call::Function };
        let mut arguments = self.nodes(target.into_iter().chain(args).collect())?;
        if let Some(function) = self.function(&name, how, arguments.len()) {
            return Ok(Node::Call(function, arguments));
        }
        let (third, second, first) = (arguments.pop(), arguments.pop(), arguments.pop());
        match (name.as_str(), first, second, third) {
            ("_?_:_", Some(condition), Some(one), Some(other)) => Ok(Node::Choice(Box::new([condition, one, other]))),
            ("_&&_", None, Some(one), Some(other)) => Ok(Node::And(Box::new([one, other]))),
            ("_||_", None, Some(one), Some(other)) => Ok(Node::Or(Box::new([one, other]))),
            ("_?._", None, Some(operand), Some(Node::Text(field))) => Ok(Node::OptionalField(Box::new(operand), field)),
            ("_[?_]", None, Some(operand), Some(index)) => {
                Ok(Node::Call(Function::OptionalIndex, vec![operand, index]))
            }
            ("@not_strictly_false", None, None, Some(operand)) => Ok(Node::IsNotFalse(Box::new(operand))),
            _ => Err(CompileError::UnknownFunction { name, there_are: self.there_are() }),
        }
    }

    fn is_library(&self, name: &str) -> bool {
        let is_named = self.place(name).is_some() || self.names.contains(&name);
        self.dialect.extent == Extent::Make && matches!(name, "math" | "json" | "optional") && !is_named
    }

    fn function(&self, name: &str, how: Call, arguments: usize) -> Option<Function> {
        let operator = match how {
            Call::Method => None,
            Call::Function => Function::operator(name, arguments),
        };
        let making = || match self.dialect.extent {
            Extent::Judge => None,
            Extent::Make => Function::making(name, how, arguments),
        };
        operator.or_else(|| Function::named(name, how == Call::Method, arguments)).or_else(making)
    }

    /// The functions that are there, in words.
    fn there_are(&self) -> String {
        match self.dialect.extent {
            Extent::Judge => FUNCTIONS.to_owned(),
            Extent::Make => format!("{FUNCTIONS}, {}", Function::names_of_making()),
        }
    }

    /// `RESULT + [ELEMENT]`, with which the macros `map` and `filter` make their lists, if a call is that. To copy the list each time would
    /// take steps for each of its elements.
    fn append(&mut self, call: &CallExpr) -> Result<Option<Node>, CompileError> {
        let ("_+_", [IdedExpr { expr: Expr::Ident(result), .. }, IdedExpr { expr: Expr::List(list), .. }]) =
            (call.func_name.as_str(), call.args.as_slice())
        else {
            return Ok(None);
        };
        let (Some(place), [element]) = (self.place(result), list.elements.as_slice()) else { return Ok(None) };
        // No author's variable has such a name.
        if !result.starts_with('@') {
            return Ok(None);
        }
        let element = self.node(element.clone())?;
        Ok(Some(Node::Append(place, Box::new(element))))
    }

    fn fold(&mut self, fold: ComprehensionExpr) -> Result<Node, CompileError> {
        if fold.iter_var2.is_some() {
            return Err(CompileError::TwoVariables);
        }
        let (range, first) = (self.node(fold.iter_range)?, self.node(fold.accu_init)?);
        self.scope.extend([fold.accu_var, fold.iter_var]);
        let parts = [fold.loop_cond, fold.loop_step, fold.result].map(|part| self.node(part));
        self.scope.truncate(self.scope.len().saturating_sub(2));
        let [goes_on, next, last] = parts;
        let mut fold = Fold { range, first, goes_on: goes_on?, next: next?, last: last? };
        if let Node::Choice(parts) = &mut fold.next {
            take(&mut parts[2], self.scope.len());
        }
        take(&mut fold.last, self.scope.len());
        Ok(Node::Fold(Box::new(fold)))
    }
}

/// Takes the variable at this place instead of reading it, if the node does no more than that.
fn take(node: &mut Node, place: usize) {
    if matches!(node, Node::Variable(read) if *read == place) {
        *node = Node::Taken(place);
    }
}

fn literal_node(literal: &LiteralValue) -> Result<Node, CompileError> {
    match literal {
        LiteralValue::Boolean(it) => Ok(Node::Boolean(*it.inner())),
        LiteralValue::Int(it) => Ok(Node::Integer(*it.inner())),
        LiteralValue::Double(it) => Ok(Node::Double(*it.inner())),
        LiteralValue::String(it) => Ok(Node::Text(it.inner().to_owned())),
        LiteralValue::Null => Ok(Node::Null),
        LiteralValue::Bytes(_) | LiteralValue::UInt(_) => Err(CompileError::NoJson),
    }
}
