//! Compiles the text of an expression, and refuses what it cannot be: a name or a function that is not there, or more than an expression
//! may be. Evaluates nothing.

use cel::{
    common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue},
    parser::Parser,
};

use super::node::{Fold, Function, Node};

/// The most bytes of an expression.
const LONGEST: usize = 1024;

/// How deeply parts of an expression are nested at most. Each level takes stack, when it is parsed, compiled and evaluated.
const DEEPEST: u16 = 32;

/// The functions that are there, for people.
const FUNCTIONS: &str =
    "size, contains, startsWith, endsWith, int, double, string, has, all, exists, exists_one, filter and map";

/// Why a text is no expression that can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is too long.
    #[error("it has {0} bytes; at most {LONGEST} are allowed")]
    TooLong(usize),
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
    #[error("it is nested more than {DEEPEST} levels deep")]
    TooDeep,
    /// It names a variable that is not there.
    #[error("there is nothing called `{0}`; the object is `self`")]
    UnknownName(String),
    /// It calls a function that is not there.
    #[error("there is no function `{0}` for these arguments; there are {FUNCTIONS}")]
    UnknownFunction(String),
    /// It makes a value that is not a list.
    #[error("maps, messages and optional values cannot be made here")]
    Construction,
    /// A macro has two variables.
    #[error("a macro has one variable here")]
    TwoVariables,
    /// A literal is of a type that JSON does not have.
    #[error("numbers without a sign and bytes are not supported, for JSON has none")]
    NoJson,
}

/// Compiles an expression.
///
/// # Errors
/// [`CompileError`] for the first thing that is wrong with it.
pub(super) fn compile(text: &str) -> Result<Node, CompileError> {
    if text.len() > LONGEST {
        return Err(CompileError::TooLong(text.len()));
    }
    let parser = Parser::new().max_recursion_depth(DEEPEST).error_recovery_limit(1);
    let parsed = parser.parse(text).map_err(|errors| match errors.errors.into_iter().next() {
        Some(error) => CompileError::Syntax { line: error.pos.0, column: error.pos.1, what: error.msg },
        None => CompileError::Syntax { line: 1, column: 1, what: "it cannot be parsed".to_owned() },
    })?;
    Compiler { scope: Vec::new(), depth: 0 }.node(parsed)
}

struct Compiler {
    /// The names of the variables of macros, the innermost last.
    scope: Vec<String>,
    depth: u16,
}

impl Compiler {
    fn node(&mut self, parsed: IdedExpr) -> Result<Node, CompileError> {
        if self.depth > DEEPEST {
            return Err(CompileError::TooDeep);
        }
        self.depth += 1;
        let node = self.part(parsed.expr);
        self.depth -= 1;
        node
    }

    fn part(&mut self, part: Expr) -> Result<Node, CompileError> {
        match part {
            Expr::Literal(literal) => literal_node(&literal),
            Expr::Ident(name) => match self.place(&name) {
                Some(place) => Ok(Node::Variable(place)),
                None if name == "self" => Ok(Node::Object),
                None => Err(CompileError::UnknownName(name)),
            },
            Expr::Select(select) => {
                let operand = Box::new(self.node(*select.operand)?);
                Ok(if select.test { Node::Has(operand, select.field) } else { Node::Field(operand, select.field) })
            }
            Expr::List(list) if list.optional_indices.is_empty() => self.nodes(list.elements).map(Node::List),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(fold) => self.fold(*fold),
            Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => Err(CompileError::Construction),
        }
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
        let (name, is_method) = (call.func_name, call.target.is_some());
        let arguments = call.target.into_iter().map(|target| *target).chain(call.args).collect();
        let mut arguments = self.nodes(arguments)?;
        let function = match is_method {
            true => None,
            false => Function::operator(&name, arguments.len()),
        };
        if let Some(function) = function.or_else(|| Function::named(&name, is_method, arguments.len())) {
            return Ok(Node::Call(function, arguments));
        }
        let (third, second, first) = (arguments.pop(), arguments.pop(), arguments.pop());
        match (name.as_str(), first, second, third) {
            ("_?_:_", Some(condition), Some(one), Some(other)) => Ok(Node::Choice(Box::new([condition, one, other]))),
            ("_&&_", None, Some(one), Some(other)) => Ok(Node::And(Box::new([one, other]))),
            ("_||_", None, Some(one), Some(other)) => Ok(Node::Or(Box::new([one, other]))),
            ("@not_strictly_false", None, None, Some(operand)) => Ok(Node::IsNotFalse(Box::new(operand))),
            _ => Err(CompileError::UnknownFunction(name)),
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
