//! Expressions in CEL (cel.dev) over JSON values. They come from other teams: whatever is in one, its evaluation ends after a bounded
//! number of steps, and needs no more memory than it may take steps. Reads nothing but the values that it is given, not even a clock.
//!
//! The language is parsed by the crate `cel`. It is evaluated here, for the crate cannot bound what an evaluation costs. An [`Expression`] is
//! what a manifest says about one object, and the host evaluates it; a [`Program`] has more names and more functions, and runs in a plugin.

mod compile;
mod dialect;
mod evaluate;
mod expression;
mod library;
mod node;
mod program;
mod value;

pub use self::{
    compile::CompileError,
    dialect::{COMPOSITION, Dialect, READINESS},
    expression::Expression,
    program::{Program, Reference},
};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// It is no expression.
    #[error(transparent)]
    NotCompiled(#[from] CompileError),
    /// It reads a name that has no value yet.
    #[error("`{0}` is not there")]
    NotThere(String),
    /// It reads a field that a value does not have.
    #[error("there is no field `{field}`")]
    NoSuchField {
        /// The field.
        field: String,
        /// The name at the beginning of what was read, if it begins with one.
        root: Option<String>,
    },
    /// It reads an element that a list does not have.
    #[error("a list has no element {element}")]
    NoSuchElement {
        /// The place, from 0 on.
        element: i64,
        /// The name at the beginning of what was read, if it begins with one.
        root: Option<String>,
    },
    /// A value is not of the type that is needed.
    #[error("{what} needs {needed}, not {found}")]
    WrongType {
        /// What needs it.
        what: &'static str,
        /// The type or types that are needed.
        needed: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// A number is too large, is divided by zero, or is not in a text.
    #[error("{0} has no result for these values")]
    NoResult(&'static str),
    /// It takes too long.
    #[error("it takes more than {0} steps")]
    TooCostly(usize),
}
