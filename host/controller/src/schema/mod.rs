//! The schema of a kind: its fields, list types, keys of lists, quantities and free-form values. Imports nothing of this crate.
//! Pure: makes no request and validates nothing.
//!
//! # Flow
//!
//! [`Schema::parse`] reads a schema from the API server's OpenAPI. Without it, [`Schema::built_in`] has a table of the core
//! kinds. A [`Cursor`] then walks the schema together with a JSON value.
//!
//! # Guarantees
//!
//! A cursor never fails. At a place that the schema does not describe, it is unknown, with the safest answers to all questions: the
//! list is atomic, the field allowed, null is no value.
//!
//! # Example
//!
//! ```
//! use pilothouse_controller::schema::{ListType, Schema};
//!
//! let spec = Schema::built_in("v1", "Service").root().field("spec");
//! let ListType::Map(keys) = spec.field("ports").list_type() else { unreachable!() };
//! assert_eq!(keys.names().collect::<Vec<_>>(), ["port", "protocol"]);
//! assert!(!spec.field("noSuchField").is_known());
//! ```

mod build;
mod built_in;
mod cache;
mod duplicates;
mod keys;
mod openapi;
mod prune;
#[cfg(test)]
pub(crate) mod samples;

use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub(crate) use self::keys::plain;
pub use self::{
    cache::SchemaCache,
    duplicates::{Duplicate, duplicates},
    keys::Keys,
    openapi::Document,
    prune::prune_status,
};

/// The schema of one kind. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    arena: Arc<Arena>,
    root: Edge,
    goes_through_types: bool,
}

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'s> {
    arena: &'s Arena,
    edge: Edge,
}

/// The merge strategy of a list (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug)]
pub enum ListType<'s> {
    /// The list has one owner, who writes all of it. Also any list with an unknown type.
    Atomic,
    /// The elements are scalars without duplicates, in any order.
    Set,
    /// The elements are objects that are identified by keys.
    Map(Keys<'s>),
}

/// The nodes of a schema. They refer to each other by index, because a schema may contain itself.
#[derive(Debug, Default, PartialEq)]
struct Arena {
    nodes: Box<[Node]>,
    fields: Box<[Field]>,
    keys: Box<[Key]>,
    /// The concatenated names of all fields.
    names: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Node {
    /// The schema does not describe it.
    #[default]
    Unknown,
    /// Any JSON value is allowed, and the API server stores it unchanged.
    FreeForm,
    Scalar,
    /// A `resource.Quantity`, which the API server normalises.
    Quantity,
    Object {
        fields: Span,
        /// The schema of additional fields; none if they are not allowed.
        others: Option<Edge>,
    },
    List {
        items: Edge,
        list: List,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum List {
    Atomic,
    Set,
    Map(Span),
}

/// A range in one of the arena's arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    start: u32,
    end: u32,
}

/// A reference to a node, with the flags of the referring place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    node: u32,
    flags: Flags,
}

/// The flags of a place, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Flags(u8);

/// A field of an object; the fields of one object are sorted by name.
#[derive(Debug, PartialEq)]
struct Field {
    name: Span,
    edge: Edge,
}

/// A key of a list.
#[derive(Debug, PartialEq)]
struct Key {
    name: Box<str>,
    /// The default value; null without one.
    default: Value,
}

impl Flags {
    /// Null is allowed as a value (`nullable`).
    const NULLABLE: Self = Self(1);
    /// There is a default, which the API server fills in.
    const DEFAULTED: Self = Self(2);
    /// A map or struct with one owner (`x-kubernetes-map-type: atomic`).
    const ATOMIC: Self = Self(4);
    /// A map or struct of an atomic type that is granular at this place.
    const GRANULAR: Self = Self(8);

    fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn with_if(self, condition: bool, flag: Self) -> Self {
        if condition { self.with(flag) } else { self }
    }
}

impl Edge {
    const UNKNOWN: Self = Self { node: 0, flags: Flags(0) };
    const FREE_FORM: Self = Self { node: 1, flags: Flags(0) };
    const SCALAR: Self = Self { node: 2, flags: Flags(0) };
    const QUANTITY: Self = Self { node: 3, flags: Flags(0) };
}

impl Span {
    fn of<T>(self, all: &[T]) -> &[T] {
        all.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl Schema {
    /// The schema to go by for an object: the known one, or the built-in one of its kind.
    pub fn known_or_built_in<'s>(known: Option<&'s Self>, object: &Value) -> &'s Self {
        let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
        known.unwrap_or_else(|| Self::built_in(text("apiVersion"), text("kind")))
    }

    /// The place of the whole object.
    pub fn root(&self) -> Cursor<'_> {
        Cursor { arena: &self.arena, edge: self.root }
    }

    /// Whether the API server decodes the kind into a Go type. Go types leave empty maps out and have defaults that no schema
    /// tells; custom resources are stored as they are, with the defaults of their schema.
    pub fn goes_through_types(&self) -> bool {
        self.goes_through_types
    }

    /// Whether both are clones of one parsed schema.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.arena, &other.arena)
    }

    /// An identity of the parsed schema, unique among the living ones.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.arena).addr()
    }

    /// The memory of the schema in bytes.
    pub fn bytes(&self) -> usize {
        let Arena { nodes, fields, keys, names } = &*self.arena;
        size_of_val(&**nodes) + size_of_val(&**fields) + size_of_val(&**keys) + names.len()
    }
}

impl<'s> Cursor<'s> {
    /// An unknown place.
    pub fn unknown() -> Self {
        static NOTHING: LazyLock<Arena> = LazyLock::new(Arena::default);
        Cursor { arena: &NOTHING, edge: Edge::UNKNOWN }
    }

    /// The place of a field of this object.
    pub fn field(self, name: &str) -> Self {
        let edge = match self.node() {
            Node::Object { fields, others } => self.declared(*fields, name).or(*others).unwrap_or(Edge::UNKNOWN),
            Node::FreeForm => Edge::FREE_FORM,
            _ => Edge::UNKNOWN,
        };
        Self { edge, ..self }
    }

    /// The place of every element of this list.
    pub fn items(self) -> Self {
        let edge = match self.node() {
            Node::List { items, .. } => *items,
            Node::FreeForm => Edge::FREE_FORM,
            _ => Edge::UNKNOWN,
        };
        Self { edge, ..self }
    }

    /// The merge strategy of this list.
    pub fn list_type(self) -> ListType<'s> {
        match self.node() {
            Node::List { list: List::Map(keys), .. } => ListType::Map(Keys(keys.of(&self.arena.keys))),
            Node::List { list: List::Set, .. } => ListType::Set,
            _ => ListType::Atomic,
        }
    }

    /// Whether the schema describes this place.
    pub fn is_known(self) -> bool {
        *self.node() != Node::Unknown
    }

    /// Whether the values here are quantities.
    pub fn is_quantity(self) -> bool {
        *self.node() == Node::Quantity
    }

    /// Whether any JSON value is allowed here.
    pub fn is_free_form(self) -> bool {
        *self.node() == Node::FreeForm
    }

    /// Whether null is allowed as a value here.
    pub fn takes_null(self) -> bool {
        self.is_free_form() || self.edge.flags.has(Flags::NULLABLE)
    }

    /// Whether the API server fills in a default here.
    pub fn is_defaulted(self) -> bool {
        self.edge.flags.has(Flags::DEFAULTED)
    }

    /// Whether this is an object whose keys are data, such as labels.
    pub fn is_map(self) -> bool {
        matches!(self.node(), Node::Object { fields, others: Some(others) }
            if fields.start == fields.end && *others != Edge::UNKNOWN)
    }

    /// Whether this is an object with one owner, who writes all of it.
    pub fn is_atomic(self) -> bool {
        self.edge.flags.has(Flags::ATOMIC) && !self.edge.flags.has(Flags::GRANULAR)
    }

    /// Whether an object here may have a field. True for unknown places.
    pub fn allows(self, name: &str) -> bool {
        match self.node() {
            Node::Object { fields, others: None } => self.declared(*fields, name).is_some(),
            _ => true,
        }
    }

    /// The declared fields of this object.
    pub fn fields(self) -> impl Iterator<Item = (&'s str, Self)> {
        let fields = match self.node() {
            Node::Object { fields, .. } => fields.of(&self.arena.fields),
            _ => &[],
        };
        fields.iter().map(move |field| (self.name(field), Self { edge: field.edge, ..self }))
    }

    fn declared(self, fields: Span, name: &str) -> Option<Edge> {
        let fields = fields.of(&self.arena.fields);
        let place = fields.binary_search_by(|field| self.name(field).cmp(name)).ok()?;
        fields.get(place).map(|field| field.edge)
    }

    fn name(self, field: &Field) -> &'s str {
        self.arena.names.get(field.name.start as usize..field.name.end as usize).unwrap_or_default()
    }

    fn node(self) -> &'s Node {
        self.arena.nodes.get(self.edge.node as usize).unwrap_or(&Node::Unknown)
    }
}

/// The keys of a JSON pointer (RFC 6901), without the escapes.
pub fn pointer_keys(pointer: &str) -> impl Iterator<Item = String> {
    let unescaped = |key: &str| key.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(move |key| if key.contains('~') { unescaped(key) } else { key.to_owned() })
}

/// The JSON pointer (RFC 6901) with these keys.
pub fn pointer<K: AsRef<str>>(path: &[K]) -> String {
    path.iter().map(|key| format!("/{}", key.as_ref().replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the schema says about a field, in words.
    fn says(at: Cursor<'_>) -> String {
        let list = match at.list_type() {
            ListType::Map(keys) => format!("map by {}", keys.names().collect::<Vec<_>>().join("+")),
            ListType::Set => "set".to_owned(),
            ListType::Atomic => String::new(),
        };
        let also = [
            (at.is_quantity(), "quantity"),
            (at.is_free_form(), "free-form"),
            (at.takes_null() && !at.is_free_form(), "nullable"),
            (at.is_defaulted(), "defaulted"),
            (at.is_map(), "map"),
            (at.is_atomic(), "atomic"),
            (!at.is_known(), "unknown"),
        ];
        let also = also.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word.to_owned());
        [list].into_iter().chain(also).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Walks a schema; `*` stands for the elements of a list.
    fn walk<'s>(schema: &'s Schema, path: &str) -> Cursor<'s> {
        let steps = path.split('/').skip(1);
        steps.fold(schema.root(), |at, step| if step == "*" { at.items() } else { at.field(step) })
    }

    #[test]
    fn reads_types_and_flags_from_the_api_servers_openapi() {
        let props = "/spec/versions/*/schema/openAPIV3Schema";
        let recursive = format!("{props}/properties/spec/properties/a/items/any");
        let rules = format!("{props}/properties/a/x-kubernetes-validations");
        let default = format!("{props}/default/any/thing");
        let container = "/spec/template/spec/containers/*";
        let below = |path: &str| format!("{container}{path}");
        let cases = [
            ("Deployment", "/spec".to_owned(), "defaulted"),
            ("Deployment", "/spec/replicas".to_owned(), ""),
            ("Deployment", "/spec/selector".to_owned(), "atomic"),
            ("Deployment", "/spec/none".to_owned(), "unknown"),
            ("Deployment", "/spec/replicas/none".to_owned(), "unknown"),
            ("Deployment", "/spec/template/spec/nodeSelector".to_owned(), "map, atomic"),
            ("Deployment", "/spec/template/spec/containers".to_owned(), "map by name"),
            ("Deployment", below("/args"), ""),
            ("Deployment", below("/env"), "map by name"),
            ("Deployment", below("/ports"), "map by containerPort+protocol"),
            ("Deployment", below("/resources/limits"), "map"),
            ("Deployment", below("/resources/limits/cpu"), "quantity"),
            ("Deployment", "/metadata/labels".to_owned(), "map"),
            ("Deployment", "/metadata/finalizers".to_owned(), "set"),
            ("Deployment", "/metadata/ownerReferences".to_owned(), "map by uid"),
            ("Service", "/spec/ports".to_owned(), "map by port+protocol"),
            ("NetworkPolicy", "/spec/ingress/*/ports".to_owned(), ""),
            ("CustomResourceDefinition", rules, "map by rule"),
            ("CustomResourceDefinition", recursive, "free-form"),
            ("CustomResourceDefinition", default, "free-form"),
            ("Gadget", "/spec/note".to_owned(), "nullable"),
            ("Gadget", "/spec/port".to_owned(), ""),
            ("Gadget", "/spec/values".to_owned(), ""),
            ("Gadget", "/spec/values/known".to_owned(), ""),
            ("Gadget", "/spec/values/other/*/below".to_owned(), "free-form"),
            ("Gadget", "/spec/anything".to_owned(), "free-form"),
            ("Gadget", "/spec/listeners".to_owned(), "map by host+port"),
            ("Gadget", "/spec/tags".to_owned(), "set"),
            ("Gadget", "/spec/pinned".to_owned(), "map, atomic"),
            ("Gadget", "/spec/routes/*/paths".to_owned(), "defaulted"),
        ];
        for (kind, path, expected) in cases {
            let api_version = match kind {
                "Deployment" => "apps/v1",
                "NetworkPolicy" => "networking.k8s.io/v1",
                "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
                "Gadget" => "example.com/v1",
                _ => "v1",
            };
            assert_eq!(says(walk(&samples::schema(api_version, kind), &path)), expected, "{kind}: {path}");
        }
    }

    #[test]
    fn a_document_without_the_kind_has_no_schema() {
        for (api_version, kind) in [("apps/v1", "DaemonSet"), ("apps/v2", "Deployment"), ("v1", "Deployment")] {
            assert!(matches!(Schema::parse(samples::DOCUMENT, api_version, kind), Ok(None)), "{api_version} {kind}");
        }
        assert!(matches!(Schema::parse("{}", "v1", "Pod"), Ok(None)));
        assert!(Schema::parse("not JSON", "v1", "Pod").is_err());
        assert!(Schema::parse("7", "v1", "Pod").is_err());
    }

    #[test]
    fn broken_and_endless_schemas_are_unknown() -> Result<(), serde_json::Error> {
        let kind = r#""x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Odd"}]"#;
        let deep = format!("{}{{}}{}", r#"{"type":"array","items":"#.repeat(10_000), "}".repeat(10_000));
        let circle = r##"{"$ref": "#/components/schemas/circle"}"##;
        let fields = format!(
            r##""deep": {deep}, "lost": {{"$ref": "#/components/schemas/none"}}, "wrong": {{"properties": 7}}, "circle": {circle},
                "alias": {{"$ref": "#/components/schemas/alias"}}, "itself": {{"$ref": "#/components/schemas/itself"}}"##
        );
        let document = format!(
            r##"{{"components": {{"schemas": {{
                "odd": {{"type": "object", "properties": {{{fields}}}, {kind}}},
                "alias": {{"$ref": "#/components/schemas/circle"}},
                "itself": {{"$ref": "#/components/schemas/itself"}},
                "circle": {{"properties": {{"again": {circle}}}}}
            }}}}}}"##
        );
        let schema = Schema::parse(&document, "v1", "Odd")?.unwrap_or_else(|| Schema::built_in("", "").clone());
        assert!(!walk(&schema, "/lost").is_known());
        assert!(!walk(&schema, "/wrong").is_known());
        assert!(walk(&schema, "/circle/again/again/again").is_known());
        assert!(walk(&schema, "/alias/again/again").is_known());
        assert!(!walk(&schema, "/itself").is_known());
        assert!(walk(&schema, "/deep/*/*/*").is_known());
        assert!(!walk(&schema, &format!("/deep{}", "/*".repeat(500))).is_known());
        Ok(())
    }

    #[test]
    fn the_built_in_table_agrees_with_the_api_server() {
        let cases = [
            ("apps/v1", "Deployment", "/spec/template/spec/containers/*/ports"),
            ("apps/v1", "Deployment", "/spec/template/spec/containers/*/env"),
            ("apps/v1", "Deployment", "/spec/template/spec/nodeSelector"),
            ("apps/v1", "StatefulSet", "/spec/template/spec/initContainers"),
            ("v1", "Pod", "/spec/topologySpreadConstraints"),
            ("v1", "Service", "/spec/ports"),
            ("v1", "Service", "/spec/selector"),
            ("v1", "ConfigMap", "/metadata/finalizers"),
            ("example.com/v1", "Gadget", "/metadata/ownerReferences"),
            ("networking.k8s.io/v1", "NetworkPolicy", "/spec/ingress"),
        ];
        for (api_version, kind, path) in cases {
            let (served, table) = (samples::schema(api_version, kind), Schema::built_in(api_version, kind));
            assert_eq!(says(walk(table, path)), says(walk(&served, path)), "{kind}: {path}");
        }
        assert!(!walk(Schema::built_in("example.com/v1", "Gadget"), "/spec/tags").is_known());
    }
}
