//! The selector of namespaces in a `Plugin` as a label selector. Matches nothing itself.

use pilothouse_engine::{Requirement, Selector};

use crate::api::{LabelSelector, SelectorOperator, SelectorRequirement};

impl From<&LabelSelector> for Selector {
    fn from(selector: &LabelSelector) -> Self {
        let labels = selector.match_labels.iter().map(|(key, value)| Requirement::In(key.clone(), vec![value.clone()]));
        let expressions =
            selector.match_expressions.iter().map(|SelectorRequirement { key, operator, values }| match operator {
                SelectorOperator::In => Requirement::In(key.clone(), values.clone()),
                SelectorOperator::NotIn => Requirement::NotIn(key.clone(), values.clone()),
                SelectorOperator::Exists => Requirement::Exists(key.clone()),
                SelectorOperator::DoesNotExist => Requirement::Absent(key.clone()),
            });
        labels.chain(expressions).collect()
    }
}
