//! Collects the mistakes of an object, each with its field. Says nothing of what is a mistake.

use serde_json::Value;

use super::error::Cause;

/// The mistakes found so far.
#[derive(Debug, Default)]
pub struct Causes(Vec<Cause>);

impl Causes {
    /// A value that cannot be.
    pub fn invalid(&mut self, field: impl Into<String>, value: &Value, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"));
    }

    /// A value that is missing.
    pub fn required(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueRequired", field, format!("Required value{}{why}", if why.is_empty() { "" } else { ": " }));
    }

    /// A value that may not be there.
    pub fn forbidden(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {why}"));
    }

    /// A value twice.
    pub fn duplicate(&mut self, field: impl Into<String>, value: &Value) {
        self.add("FieldValueDuplicate", field, format!("Duplicate value: {value}"));
    }

    /// A value that is not among the possible ones.
    pub fn not_supported(&mut self, field: impl Into<String>, value: &Value, possible: &[&str]) {
        let possible = possible.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
        self.add("FieldValueNotSupported", field, format!("Unsupported value: {value}: supported values: {possible}"));
    }

    /// A value of another type.
    pub fn wrong_type(&mut self, field: impl Into<String>, value: &Value, expected: &str) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let field = field.into();
        let message = format!("Invalid value: {found:?}: {field} in body must be of type {expected}: {found:?}");
        self.add("FieldValueTypeInvalid", field, message);
    }

    /// A text that is too long.
    pub fn too_long(&mut self, field: impl Into<String>, most: u64) {
        self.add("FieldValueTooLong", field, format!("Too long: may not be more than {most} bytes"));
    }

    /// A list that is too long.
    pub fn too_many(&mut self, field: impl Into<String>, found: usize, most: u64) {
        self.add("FieldValueTooMany", field, format!("Too many: {found}: must have at most {most} items"));
    }

    /// Any mistake.
    pub fn add(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.0.push(Cause::new(reason, field, message));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Cause> {
        self.0
    }
}
