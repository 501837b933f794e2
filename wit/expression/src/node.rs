//! What an expression is compiled to. Values only.

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// A name of those that the expression is about, by its place.
    Root(usize, String),
    /// A variable of a macro, by its place among those that are in scope.
    Variable(usize),
    /// The same, where it is set anew before it is read again: a list need not be copied.
    Taken(usize),
    /// `operand.field`
    Field(Box<Node>, String),
    /// `operand.?field`
    OptionalField(Box<Node>, String),
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

/// An element of a list that is made.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) node: Node,
    pub(super) presence: Presence,
}

/// An entry of a map that is made.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Node,
    pub(super) value: Node,
    pub(super) presence: Presence,
}

/// Whether a part of a list or a map is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Always,
    /// It is an optional value, and left out where that has no value.
    IfThere,
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
    ToBoolean,
    TypeOf,
    OptionalIndex,
    OptionalOf,
    OptionalNone,
    HasValue,
    OptionalValue,
    Or,
    OrValue,
    Merge,
    LowerAscii,
    UpperAscii,
    Trim,
    Replace,
    Split,
    Join,
    Substring,
    IndexOf,
    Format,
    Greatest,
    Least,
    Max,
    Min,
    Sum,
    Sort,
    Distinct,
    Flatten,
    Quantity,
    IsQuantity,
    Marshal,
    Unmarshal,
}

/// Functions beyond those of readiness: how they are called, with how many arguments (a value that a method is called on is the first
/// one), and their names for people.
const MAKING: &[(Call, &str, std::ops::RangeInclusive<usize>, Function, &str)] = &[
    (Call::Function, "bool", 1..=1, Function::ToBoolean, "`bool`"),
    (Call::Function, "type", 1..=1, Function::TypeOf, "`type`"),
    (Call::Function, "quantity", 1..=1, Function::Quantity, "`quantity`"),
    (Call::Function, "isQuantity", 1..=1, Function::IsQuantity, "`isQuantity`"),
    (Call::Function, "optional.of", 1..=1, Function::OptionalOf, "`optional.of`"),
    (Call::Function, "optional.none", 0..=0, Function::OptionalNone, "`optional.none`"),
    (Call::Function, "math.greatest", 1..=32, Function::Greatest, "`math.greatest`"),
    (Call::Function, "math.least", 1..=32, Function::Least, "`math.least`"),
    (Call::Function, "json.marshal", 1..=1, Function::Marshal, "`json.marshal`"),
    (Call::Function, "json.unmarshal", 1..=1, Function::Unmarshal, "`json.unmarshal`"),
    (Call::Method, "hasValue", 1..=1, Function::HasValue, "`hasValue`"),
    (Call::Method, "value", 1..=1, Function::OptionalValue, "`value`"),
    (Call::Method, "or", 2..=2, Function::Or, "`or`"),
    (Call::Method, "orValue", 2..=2, Function::OrValue, "`orValue`"),
    (Call::Method, "merge", 2..=2, Function::Merge, "`merge`"),
    (Call::Method, "lowerAscii", 1..=1, Function::LowerAscii, "`lowerAscii`"),
    (Call::Method, "upperAscii", 1..=1, Function::UpperAscii, "`upperAscii`"),
    (Call::Method, "trim", 1..=1, Function::Trim, "`trim`"),
    (Call::Method, "replace", 3..=3, Function::Replace, "`replace`"),
    (Call::Method, "split", 2..=3, Function::Split, "`split`"),
    (Call::Method, "join", 1..=2, Function::Join, "`join`"),
    (Call::Method, "substring", 2..=3, Function::Substring, "`substring`"),
    (Call::Method, "indexOf", 2..=2, Function::IndexOf, "`indexOf`"),
    (Call::Method, "format", 2..=2, Function::Format, "`format`"),
    (Call::Method, "max", 1..=1, Function::Max, "`max`"),
    (Call::Method, "min", 1..=1, Function::Min, "`min`"),
    (Call::Method, "sum", 1..=1, Function::Sum, "`sum`"),
    (Call::Method, "sort", 1..=1, Function::Sort, "`sort`"),
    (Call::Method, "distinct", 1..=1, Function::Distinct, "`distinct`"),
    (Call::Method, "flatten", 1..=1, Function::Flatten, "`flatten`"),
];

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Function,
    Method,
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

    /// The same for functions that make values.
    pub(super) fn making(name: &str, call: Call, arguments: usize) -> Option<Self> {
        let is_it = |(how, known, number, ..): &&(Call, &str, std::ops::RangeInclusive<usize>, Self, &str)| {
            *how == call && *known == name && number.contains(&arguments)
        };
        MAKING.iter().find(is_it).map(|(.., function, _)| *function)
    }

    /// Whether it is one of those that make values.
    pub(super) fn is_making(self) -> bool {
        self == Self::OptionalIndex || MAKING.iter().any(|(.., it, _)| *it == self)
    }

    /// Their names, for people.
    pub(super) fn names_of_making() -> String {
        MAKING.iter().map(|(_, name, ..)| *name).collect::<Vec<_>>().join(", ")
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
            Self::OptionalIndex => "`[?]`",
            made => MAKING.iter().find(|(.., it, _)| *it == made).map_or("a function", |(.., name)| name),
        }
    }
}
