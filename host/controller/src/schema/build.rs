//! Builds the arena of a schema, for both sources: OpenAPI documents and the built-in table. Equal leaf nodes are shared, because
//! most fields are scalars.

use serde_json::Value;

use super::{Arena, Edge, Field, Key, Node, Span};

/// An arena under construction.
pub(super) struct Builder {
    nodes: Vec<Node>,
    fields: Vec<Field>,
    keys: Vec<Key>,
    names: String,
}

impl Builder {
    pub(super) fn new() -> Self {
        // The indices must match the constants of `Edge`.
        let nodes = vec![Node::Unknown, Node::FreeForm, Node::Scalar, Node::Quantity];
        Self { nodes, fields: Vec::new(), keys: Vec::new(), names: String::new() }
    }

    pub(super) fn finish(self) -> Arena {
        Arena { nodes: self.nodes.into(), fields: self.fields.into(), keys: self.keys.into(), names: self.names.into() }
    }

    /// Reserves a node to be filled in later, for schemas that contain themselves.
    pub(super) fn reserve(&mut self) -> u32 {
        self.push(Node::Unknown)
    }

    pub(super) fn fill(&mut self, index: u32, node: Node) {
        if let Some(place) = self.nodes.get_mut(index as usize) {
            *place = node;
        }
    }

    pub(super) fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        index(self.nodes.len() - 1)
    }

    /// The index of an equal shared node, if there is one.
    pub(super) fn shared(node: &Node) -> Option<u32> {
        let edge = match node {
            Node::Unknown => Edge::UNKNOWN,
            Node::FreeForm => Edge::FREE_FORM,
            Node::Scalar => Edge::SCALAR,
            Node::Quantity => Edge::QUANTITY,
            Node::Object { .. } | Node::List { .. } => return None,
        };
        Some(edge.node)
    }

    /// Adds the fields of one object, in any order.
    pub(super) fn fields(&mut self, mut fields: Vec<(&str, Edge)>) -> Span {
        // `Cursor::declared` searches by bisection.
        fields.sort_unstable_by_key(|(name, _)| *name);
        let start = index(self.fields.len());
        for (name, edge) in fields {
            let name = self.name(name);
            self.fields.push(Field { name, edge });
        }
        Span { start, end: index(self.fields.len()) }
    }

    /// Adds the keys of one list, each with its default value.
    pub(super) fn keys(&mut self, keys: impl IntoIterator<Item = (Box<str>, Value)>) -> Span {
        let start = index(self.keys.len());
        self.keys.extend(keys.into_iter().map(|(name, default)| Key { name, default }));
        Span { start, end: index(self.keys.len()) }
    }

    fn name(&mut self, name: &str) -> Span {
        let start = index(self.names.len());
        self.names.push_str(name);
        Span { start, end: index(self.names.len()) }
    }
}

/// An index into the arena. It fits, because one document of an API server is far smaller than 4 GiB.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
