//! Validation rules in CEL, the language of `x-kubernetes-validations`. Nothing here checks that an expression is valid: the API
//! server does when it takes the CRD.

use serde_json::{Value, json};

/// A validation rule.
pub struct Rule<'a> {
    /// The expression that must hold.
    pub expression: &'a str,
    /// What the API server says where it does not.
    pub message: &'a str,
}

/// The value of `x-kubernetes-validations`.
pub fn rules(rules: &[Rule<'_>]) -> Value {
    rules.iter().map(|rule| json!({ "rule": rule.expression, "message": rule.message })).collect()
}

/// A rule of an object that has exactly one of these fields.
pub fn exactly_one_of(fields: &[&str]) -> Value {
    let given: Vec<_> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    rules(&[Rule {
        expression: &format!("[{}].filter(given, given).size() == 1", given.join(", ")),
        message: &format!("give exactly one of {}", fields.join(", ")),
    }])
}
