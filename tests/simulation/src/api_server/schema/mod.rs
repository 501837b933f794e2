//! What a kind's objects may look like: the fields with their types, defaults and rules, and how lists and maps are merged. Built
//! once from OpenAPI or from a CustomResourceDefinition, then shared. Never changes an object itself.

mod custom;
mod metadata;
mod openapi;
mod rules;

use std::sync::Arc;

use serde_json::Value;

pub use self::{custom::SchemaError, openapi::OpenApi, rules::Rules};

/// The schema of one value.
#[derive(Debug, Default)]
pub struct Node {
    /// What the value is.
    pub shape: Shape,
    /// What is filled in where the value is missing.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// What a custom resource's value must satisfy; none for built-in kinds, which have code for it.
    pub rules: Option<Box<Rules>>,
}

/// What a value is.
#[derive(Debug, Default)]
pub enum Shape {
    /// A number, a text or a boolean.
    Scalar(Scalar),
    /// A list.
    List {
        /// Its elements.
        items: Arc<Node>,
        /// How two lists are merged.
        list: List,
    },
    /// An object, or a map.
    Object(Fields),
    /// Anything: lists are atomic, objects are merged field by field.
    #[default]
    Any,
}

/// The types of scalars, as far as a server treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A text.
    Text,
    /// A point in time with seconds.
    Time,
    /// A point in time with microseconds.
    MicroTime,
    /// Base64.
    Bytes,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A number or a text.
    IntOrString,
    /// A quantity, which the server normalises.
    Quantity,
}

/// How lists are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// As one value.
    Atomic,
    /// Element by element, each a scalar of its own.
    Set,
    /// Element by element, by these keys; each has its default.
    Map(Vec<ListKey>),
}

/// A field that identifies an element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The field.
    pub name: Arc<str>,
    /// Its value where the element does not have it.
    pub default: Option<Value>,
}

/// The fields of an object.
#[derive(Debug, Default)]
pub struct Fields {
    /// The declared ones, by name.
    pub named: Vec<(Arc<str>, Arc<Node>)>,
    /// All others, as a merge sees them; none if there are no others.
    pub others: Option<Arc<Node>>,
    /// Whether the object is merged as one value.
    pub atomic: bool,
    /// Whether an object keeps undeclared fields when it is read.
    pub keeps_others: bool,
}

impl Fields {
    /// The schema of a field; none if it is not declared.
    pub fn get(&self, name: &str) -> Option<&Arc<Node>> {
        self.declared(name).map(|(_, node)| node).or(self.others.as_ref())
    }

    /// A declared field.
    pub fn declared(&self, name: &str) -> Option<(&Arc<str>, &Arc<Node>)> {
        let index = self.named.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.named.get(index).map(|(name, node)| (name, node))
    }

    fn sort(&mut self) {
        self.named.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

impl Node {
    fn scalar(scalar: Scalar) -> Arc<Self> {
        Arc::new(Self { shape: Shape::Scalar(scalar), ..Self::default() })
    }

    fn object(named: Vec<(&str, Arc<Self>)>) -> Self {
        let mut fields =
            Fields { named: named.into_iter().map(|(name, node)| (name.into(), node)).collect(), ..Fields::default() };
        fields.sort();
        Self { shape: Shape::Object(fields), ..Self::default() }
    }

    fn map_of(others: Arc<Self>) -> Arc<Self> {
        let fields = Fields { others: Some(others), keeps_others: true, ..Fields::default() };
        Arc::new(Self { shape: Shape::Object(fields), ..Self::default() })
    }

    fn list_of(items: Arc<Self>, list: List) -> Arc<Self> {
        Arc::new(Self { shape: Shape::List { items, list }, ..Self::default() })
    }

    /// The fields, if the value is an object.
    pub fn fields(&self) -> Option<&Fields> {
        if let Shape::Object(fields) = &self.shape { Some(fields) } else { None }
    }

    /// The schema below a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.fields()?.get(name).map(|node| &**node))
    }
}
