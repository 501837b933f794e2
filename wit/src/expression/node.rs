//! What an expression is compiled to. Values only.

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Node>),
    /// The object that the expression is about.
    Object,
    /// A variable of a macro, by its place among those that are in scope.
    Variable(usize),
    /// The same, where it is set anew before it is read again: a list need not be copied.
    Taken(usize),
    /// `operand.field`
    Field(Box<Node>, String),
    /// `has(operand.field)`
    Has(Box<Node>, String),
    /// `condition ? one : other`
    Choice(Box<[Node; 3]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// Anything but false counts as true, errors too.
    IsNotFalse(Box<Node>),
    Call(Function, Vec<Node>),
    /// One more element for the list in a variable.
    Append(usize, Box<Node>),
    Fold(Box<Fold>),
}

/// What a macro, such as `all`, becomes: each element of a list, or each name in an object, leads to another result. The result and then
/// the element are the newest two variables.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    /// The first result.
    pub(super) first: Node,
    /// Whether to go on.
    pub(super) goes_on: Node,
    /// The next result.
    pub(super) next: Node,
    /// What the last result means.
    pub(super) last: Node,
}

/// A function or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Not,
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equals,
    NotEquals,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
    Index,
    Size,
    Contains,
    StartsWith,
    EndsWith,
    ToInteger,
    ToDouble,
    ToText,
}

impl Function {
    /// The operator with this name in the syntax tree.
    pub(super) fn operator(name: &str, operands: usize) -> Option<Self> {
        Some(match (name, operands) {
            ("!_", 1) => Self::Not,
            ("-_", 1) => Self::Negate,
            ("_+_", 2) => Self::Add,
            ("_-_", 2) => Self::Subtract,
            ("_*_", 2) => Self::Multiply,
            ("_/_", 2) => Self::Divide,
            ("_%_", 2) => Self::Modulo,
            ("_==_", 2) => Self::Equals,
            ("_!=_", 2) => Self::NotEquals,
            ("_<_", 2) => Self::Less,
            ("_<=_", 2) => Self::LessEquals,
            ("_>_", 2) => Self::Greater,
            ("_>=_", 2) => Self::GreaterEquals,
            ("@in", 2) => Self::In,
            ("_[_]", 2) => Self::Index,
            _ => return None,
        })
    }

    /// The function with this name. `is_method`: it is called on a value, which is the first argument.
    pub(super) fn named(name: &str, is_method: bool, arguments: usize) -> Option<Self> {
        Some(match (name, is_method, arguments) {
            ("size", _, 1) => Self::Size,
            ("contains", true, 2) => Self::Contains,
            ("startsWith", true, 2) => Self::StartsWith,
            ("endsWith", true, 2) => Self::EndsWith,
            ("int", false, 1) => Self::ToInteger,
            ("double", false, 1) => Self::ToDouble,
            ("string", false, 1) => Self::ToText,
            _ => return None,
        })
    }

    /// Its name, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Not => "`!`",
            Self::Negate | Self::Subtract => "`-`",
            Self::Add => "`+`",
            Self::Multiply => "`*`",
            Self::Divide => "`/`",
            Self::Modulo => "`%`",
            Self::Equals => "`==`",
            Self::NotEquals => "`!=`",
            Self::Less => "`<`",
            Self::LessEquals => "`<=`",
            Self::Greater => "`>`",
            Self::GreaterEquals => "`>=`",
            Self::In => "`in`",
            Self::Index => "`[]`",
            Self::Size => "`size`",
            Self::Contains => "`contains`",
            Self::StartsWith => "`startsWith`",
            Self::EndsWith => "`endsWith`",
            Self::ToInteger => "`int`",
            Self::ToDouble => "`double`",
            Self::ToText => "`string`",
        }
    }
}
