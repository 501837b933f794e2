//! A set of fields as a tree, with the operations that server-side apply needs, and its serialized form (`fieldsV1`).

use serde_json::{Map, Value};

use super::Element;
use crate::api_server::schema::{Node, Shape};

/// A set of fields. A field in it says nothing about the fields below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// The fields of this level that are in the set, in order.
    pub members: Vec<Element>,
    /// The fields of this level below which there are some, in order. None of the sets is empty.
    pub children: Vec<(Element, Set)>,
}

impl Set {
    /// Whether no field is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether a field of this level is in it.
    pub fn has(&self, element: &Element) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// What is in it below a field.
    pub fn below(&self, element: &Element) -> Option<&Self> {
        let index = self.children.binary_search_by(|(known, _)| known.cmp(element)).ok()?;
        self.children.get(index).map(|(_, set)| set)
    }

    /// Adds a field of this level.
    pub fn insert(&mut self, element: Element) {
        if let Err(index) = self.members.binary_search(&element) {
            self.members.insert(index, element);
        }
    }

    /// Adds what is below a field, which had nothing below it so far.
    pub fn insert_below(&mut self, element: Element, set: Self) {
        if set.is_empty() {
            return;
        }
        match self.children.binary_search_by(|(known, _)| known.cmp(&element)) {
            Ok(index) => {
                if let Some((_, known)) = self.children.get_mut(index) {
                    *known = known.union(&set);
                }
            }
            Err(index) => self.children.insert(index, (element, set)),
        }
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut members = Vec::with_capacity(self.members.len() + other.members.len());
        zip(&self.members, &other.members, |a, b| members.extend(a.or(b).cloned()));
        let mut children = Vec::with_capacity(self.children.len() + other.children.len());
        zip(&self.children, &other.children, |a, b| match (a, b) {
            (Some((element, a)), Some((_, b))) => children.push((element.clone(), a.union(b))),
            (a, b) => children.extend(a.or(b).cloned()),
        });
        Self { members, children }
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.iter().filter(|member| other.has(member)).cloned().collect();
        let both = |(element, set): &(Element, Self)| {
            let both = set.intersection(other.below(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        };
        Self { members, children: self.children.iter().filter_map(both).collect() }
    }

    /// The fields that the other set does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, Below::Stays)
    }

    /// The fields that are neither in the other set nor below one that is.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(other, Below::Goes)
    }

    fn without(&self, other: &Self, below: Below) -> Self {
        let members = self.members.iter().filter(|member| !other.has(member)).cloned().collect();
        let rest = |(element, set): &(Element, Self)| {
            if below == Below::Goes && other.has(element) {
                return None;
            }
            let rest = other.below(element).map_or_else(|| set.clone(), |other| set.without(other, below));
            (!rest.is_empty()).then(|| (element.clone(), rest))
        };
        Self { members, children: self.children.iter().filter_map(rest).collect() }
    }

    /// The set with every declared field that has something below it. Without it, a set has `spec.replicas` and not `spec`.
    #[must_use]
    pub fn with_declared_parents(&self, node: &Node) -> Self {
        let mut all = Self { members: self.members.clone(), children: Vec::with_capacity(self.children.len()) };
        for (element, set) in &self.children {
            let below = match (element, &node.shape) {
                (Element::Field(name), Shape::Object(fields)) => {
                    if fields.declared(name).is_some() {
                        all.insert(element.clone());
                    }
                    fields.get(name).map(|node| &**node)
                }
                (Element::Key(_), Shape::List { items, .. }) => Some(&**items),
                _ => None,
            };
            let free = Node::default();
            all.children.push((element.clone(), set.with_declared_parents(below.unwrap_or(&free))));
        }
        all
    }

    /// Calls a function with the path of each field, as messages show it.
    pub fn each_path(&self, prefix: &str, call: &mut impl FnMut(String)) {
        self.members.iter().for_each(|member| call(format!("{prefix}{member}")));
        self.children.iter().for_each(|(element, set)| set.each_path(&format!("{prefix}{element}"), call));
    }

    /// The serialized form.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(256);
        self.push_to(&mut text, false);
        text
    }

    fn push_to(&self, text: &mut String, includes_itself: bool) {
        text.push('{');
        let mut is_first = true;
        let mut begin = |text: &mut String| {
            if !std::mem::take(&mut is_first) {
                text.push(',');
            }
        };
        if includes_itself {
            begin(text);
            text.push_str("\".\":{}");
        }
        let mut element_text = String::new();
        zip(&self.members, &self.children, |member, child| {
            begin(text);
            let Some(element) = member.or(child.map(|(element, _)| element)) else { return };
            element_text.clear();
            element.push_to(&mut element_text);
            push_string(text, &element_text);
            text.push(':');
            match child {
                Some((_, set)) => set.push_to(text, member.is_some()),
                None => text.push_str("{}"),
            }
        });
        text.push('}');
    }

    /// Parses the serialized form. What this server does not know is left out.
    pub fn parse(fields: &Map<String, Value>) -> Self {
        let mut set = Self::default();
        for (text, below) in fields {
            let (Some(element), Some(below)) = (Element::parse(text), below.as_object()) else { continue };
            if below.is_empty() || below.contains_key(".") {
                set.insert(element.clone());
            }
            set.insert_below(element, Self::parse(below));
        }
        set
    }
}

/// What becomes of the fields below a field that a difference takes away.
#[derive(Clone, Copy, PartialEq)]
enum Below {
    Stays,
    Goes,
}

/// Something that is in order by an element.
trait Ordered {
    fn element(&self) -> &Element;
}

impl Ordered for Element {
    fn element(&self) -> &Element {
        self
    }
}

impl Ordered for (Element, Set) {
    fn element(&self) -> &Element {
        &self.0
    }
}

/// Walks two ordered lists side by side.
fn zip<'a, A: Ordered, B: Ordered>(a: &'a [A], b: &'a [B], mut call: impl FnMut(Option<&'a A>, Option<&'a B>)) {
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.get(i), b.get(j)) {
            (None, None) => return,
            (Some(first), Some(second)) => match first.element().cmp(second.element()) {
                std::cmp::Ordering::Less => {
                    call(Some(first), None);
                    i += 1;
                }
                std::cmp::Ordering::Greater => {
                    call(None, Some(second));
                    j += 1;
                }
                std::cmp::Ordering::Equal => {
                    call(Some(first), Some(second));
                    i += 1;
                    j += 1;
                }
            },
            (first, second) => {
                call(first, second);
                i += usize::from(first.is_some());
                j += usize::from(second.is_some());
            }
        }
    }
}

/// Appends a JSON string.
fn push_string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            c if c < ' ' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: Value) -> Set {
        value.as_object().map(Set::parse).unwrap_or_default()
    }

    #[test]
    fn a_set_is_what_its_text_says() {
        let text = r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:tags":{"v:\"a\"":{}}}}"#;
        let parsed: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(set(parsed).to_text(), text);
    }

    #[test]
    fn operations_follow_their_names() {
        let a = set(json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}, "f:e": {".": {}, "f:f": {}}}));
        let b = set(json!({"f:b": {"f:c": {}}, "f:e": {}, "f:g": {}}));
        for (name, found, expected) in [
            (
                "union",
                a.union(&b),
                json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}, "f:e": {".": {}, "f:f": {}}, "f:g": {}}),
            ),
            ("intersection", a.intersection(&b), json!({"f:b": {"f:c": {}}, "f:e": {}})),
            ("difference", a.difference(&b), json!({"f:a": {}, "f:b": {"f:d": {}}, "f:e": {"f:f": {}}})),
            ("recursive", a.recursive_difference(&b), json!({"f:a": {}, "f:b": {"f:d": {}}})),
        ] {
            assert_eq!(found.to_text(), expected.to_string(), "{name}");
        }
    }
}
