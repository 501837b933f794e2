//! How two objects differ.

use serde_json::Value;

use super::{Element, Set, items::identify};
use crate::api_server::schema::{Fields, List, Node, Shape};

/// The differences between two objects. No field is in two of the sets.
#[derive(Debug, Default)]
pub struct Comparison {
    /// What only the first has.
    pub removed: Set,
    /// What both have with different values.
    pub modified: Set,
    /// What only the second has.
    pub added: Set,
}

/// What the value at a path itself is, apart from what is below.
#[derive(Clone, Copy)]
enum Change {
    None,
    Removed,
    Modified,
    Added,
}

/// Compares two objects.
pub fn compare(before: &Value, after: &Value, node: &Node) -> Comparison {
    let mut found = Comparison::default();
    if before != after {
        // The object itself is no field.
        walk(&mut found, Some(before), Some(after), node);
    }
    found
}

impl Comparison {
    /// Whether the objects are the same.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// The comparison without some fields and all that is below them.
    #[must_use]
    pub fn without(self, fields: &Set) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    fn note(&mut self, element: &Element, change: Change) {
        match change {
            Change::None => {}
            Change::Removed => self.removed.insert(element.clone()),
            Change::Modified => self.modified.insert(element.clone()),
            Change::Added => self.added.insert(element.clone()),
        }
    }

    fn child(&mut self, element: &Element, before: Option<&Value>, after: Option<&Value>, node: &Node) {
        let mut below = Self::default();
        let change = walk(&mut below, before, after, node);
        self.note(element, change);
        self.removed.insert_below(element.clone(), below.removed);
        self.modified.insert_below(element.clone(), below.modified);
        self.added.insert_below(element.clone(), below.added);
    }
}

/// Compares two values that differ below a path, and returns what is to be said of the path itself.
fn walk(found: &mut Comparison, before: Option<&Value>, after: Option<&Value>, node: &Node) -> Change {
    let leaf = match (before, after) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::Modified,
    };
    let parent = match leaf {
        Change::Modified => Change::None,
        other => other,
    };
    match &node.shape {
        Shape::Scalar(_) => leaf,
        Shape::Object(fields) if fields.atomic => leaf,
        Shape::Object(fields) => objects(found, (before, after), Some(fields), (leaf, parent)),
        Shape::List { list: List::Atomic, .. } => leaf,
        Shape::List { items, list } => {
            let (before, after) = (elements(before), elements(after));
            if before.is_empty() && after.is_empty() {
                return leaf;
            }
            lists(found, (before, after), items, list);
            parent
        }
        Shape::Any => {
            let either = |is: fn(&Value) -> bool| before.is_some_and(is) || after.is_some_and(is);
            if either(Value::is_object) && !either(|value| !value.is_object() && !value.is_null()) {
                objects(found, (before, after), None, (leaf, parent))
            } else if either(Value::is_object) {
                // One is an object and the other something else: the fields of the object come or go as well.
                let only = |value: Option<&'_ Value>| value.is_some_and(Value::is_object);
                if only(before) {
                    objects(found, (before, None), None, (leaf, parent));
                } else {
                    objects(found, (None, after), None, (leaf, parent));
                }
                leaf
            } else {
                leaf
            }
        }
    }
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn objects(
    found: &mut Comparison,
    (before, after): (Option<&Value>, Option<&Value>),
    fields: Option<&Fields>,
    (leaf, parent): (Change, Change),
) -> Change {
    let (before, after) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
    if before.is_none_or(serde_json::Map::is_empty) && after.is_none_or(serde_json::Map::is_empty) {
        return leaf;
    }
    let free = Node::default();
    let mut visit = |name: &str, a: Option<&Value>, b: Option<&Value>| {
        if a == b {
            return;
        }
        let declared = fields.and_then(|fields| fields.declared(name));
        let element = Element::Field(declared.map_or_else(|| name.into(), |(name, _)| name.clone()));
        let node = fields.and_then(|fields| fields.get(name)).map_or(&free, |node| &**node);
        found.child(&element, a, b, node);
    };
    for (name, value) in before.into_iter().flatten() {
        visit(name, Some(value), after.and_then(|after| after.get(name)));
    }
    for (name, value) in after.into_iter().flatten() {
        if before.is_none_or(|before| !before.contains_key(name)) {
            visit(name, None, Some(value));
        }
    }
    parent
}

fn lists(found: &mut Comparison, (before, after): (&[Value], &[Value]), items: &Node, list: &List) {
    fn identified<'v>(values: &'v [Value], list: &List) -> Vec<(Element, &'v Value)> {
        values.iter().filter_map(|value| Some((identify(list, value).ok()?, value))).collect()
    }
    fn with<'v>(values: &[(Element, &'v Value)], element: &Element) -> Vec<&'v Value> {
        values.iter().filter(|(known, _)| known == element).map(|(_, value)| *value).collect()
    }
    let (before, after) = (identified(before, list), identified(after, list));
    let mut seen = Set::default();
    for (element, _) in before.iter().chain(&after) {
        if seen.has(element) {
            continue;
        }
        seen.insert(element.clone());
        let (old, new) = (with(&before, element), with(&after, element));
        match (old.len(), new.len()) {
            (..2, ..2) | (2.., 2..) if old == new => {}
            (0 | 1, 0 | 1) => found.child(element, old.first().copied(), new.first().copied(), items),
            (2.., 2..) => found.note(element, Change::Modified),
            (2.., _) => {
                if let Some(new) = new.first() {
                    found.child(element, None, Some(new), items);
                }
                found.note(element, Change::Removed);
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    found.child(element, Some(old), None, items);
                }
                found.note(element, Change::Added);
            }
        }
    }
}
