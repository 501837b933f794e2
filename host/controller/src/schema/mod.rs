//! What fields a kind has and how they merge: list types, keys of lists, quantities, free-form values. Read from the API
//! server's OpenAPI ([`Schema::parse`]); where that is not known, a table of the core kinds stands in
//! ([`Schema::built_in`]). A leaf: imports nothing of this crate. Pure: makes no request and validates nothing.
//!
//! A [`Cursor`] walks a schema beside a JSON value. It never fails: where the schema says nothing, it says "unknown".
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
mod duplicates;
mod keys;
mod openapi;
mod prune;
#[cfg(test)]
pub(crate) mod samples;

use std::sync::{Arc, LazyLock};

pub(crate) use self::keys::plain;
pub use self::{
    duplicates::{Duplicate, duplicates},
    keys::Keys,
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

/// How the elements of a list are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug)]
pub enum ListType<'s> {
    /// The list is one value: whoever writes it writes all of it. Also what is not known to be another.
    Atomic,
    /// Elements are values, each at most once, in any order.
    Set,
    /// Elements are objects, told apart by the values of some of their fields.
    Map(Keys<'s>),
}

/// Nodes that refer to each other by index, for a schema may contain itself.
#[derive(Debug, Default, PartialEq)]
struct Arena {
    nodes: Box<[Node]>,
    fields: Box<[Field]>,
    keys: Box<[Key]>,
    /// All names of fields, one after another.
    names: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Node {
    /// The schema says nothing about it.
    #[default]
    Unknown,
    /// Any JSON value is allowed, and stays as it is.
    FreeForm,
    Scalar,
    /// A `resource.Quantity`, which the API server writes in its own way.
    Quantity,
    Object {
        fields: Span,
        /// What fields hold that are not listed; none if there are no others.
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

/// A part of an array of the arena.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    start: u32,
    end: u32,
}

/// A way to a node, and what the schema says at this place of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    node: u32,
    marks: Marks,
}

/// What a schema says beside a type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Marks(u8);

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
    /// What an element has that leaves it out; null if the schema does not say.
    default: serde_json::Value,
}

impl Marks {
    /// Null is a value.
    const NULLABLE: Self = Self(1);
    /// The API server fills it in.
    const DEFAULTED: Self = Self(2);
    /// A map or a struct that is one value (`x-kubernetes-map-type`).
    const ATOMIC: Self = Self(4);
    /// One that is not, though its type is.
    const GRANULAR: Self = Self(8);

    fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn with_if(self, condition: bool, mark: Self) -> Self {
        if condition { self.with(mark) } else { self }
    }
}

impl Edge {
    const UNKNOWN: Self = Self { node: 0, marks: Marks(0) };
    const FREE_FORM: Self = Self { node: 1, marks: Marks(0) };
    const SCALAR: Self = Self { node: 2, marks: Marks(0) };
    const QUANTITY: Self = Self { node: 3, marks: Marks(0) };
}

impl Span {
    fn of<T>(self, all: &[T]) -> &[T] {
        all.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl Schema {
    /// The place of the whole object.
    pub fn root(&self) -> Cursor<'_> {
        Cursor { arena: &self.arena, edge: self.root }
    }

    /// Whether the API server keeps objects of the kind as Go types, which drop empty maps; custom resources are kept as
    /// they are.
    pub fn drops_empty_maps(&self) -> bool {
        self.goes_through_types
    }

    /// Whether it is the very schema that another one is a clone of.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.arena, &other.arena)
    }

    /// Names this very schema, as long as it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.arena).addr()
    }

    /// Bytes that the schema takes.
    pub fn bytes(&self) -> usize {
        let Arena { nodes, fields, keys, names } = &*self.arena;
        size_of_val(&**nodes) + size_of_val(&**fields) + size_of_val(&**keys) + names.len()
    }
}

impl<'s> Cursor<'s> {
    /// A place of which nothing is known.
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

    /// How elements of this list are told apart.
    pub fn list_type(self) -> ListType<'s> {
        match self.node() {
            Node::List { list: List::Map(keys), .. } => ListType::Map(Keys(keys.of(&self.arena.keys))),
            Node::List { list: List::Set, .. } => ListType::Set,
            _ => ListType::Atomic,
        }
    }

    /// Whether the schema says anything about this place.
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

    /// Whether null is a value here, and not the same as no field.
    pub fn takes_null(self) -> bool {
        self.is_free_form() || self.edge.marks.has(Marks::NULLABLE)
    }

    /// Whether the API server fills in a value here that was left out.
    pub fn is_defaulted(self) -> bool {
        self.edge.marks.has(Marks::DEFAULTED)
    }

    /// Whether this is an object whose keys are data, such as labels.
    pub fn is_map(self) -> bool {
        matches!(self.node(), Node::Object { fields, others: Some(others) }
            if fields.start == fields.end && *others != Edge::UNKNOWN)
    }

    /// Whether this is an object that is one value: whoever writes it writes all of it.
    pub fn is_atomic(self) -> bool {
        self.edge.marks.has(Marks::ATOMIC) && !self.edge.marks.has(Marks::GRANULAR)
    }

    /// Whether an object here may have a field; also where that is not known.
    pub fn allows(self, name: &str) -> bool {
        match self.node() {
            Node::Object { fields, others: None } => self.declared(*fields, name).is_some(),
            _ => true,
        }
    }

    /// The fields that this object is known to have.
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

/// A JSON pointer, from its keys.
pub(crate) fn pointer<K: AsRef<str>>(path: &[K]) -> String {
    path.iter().map(|key| format!("/{}", key.as_ref().replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a schema says about a place, in words.
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

    /// Walks a schema; `*` is every element of a list.
    fn walk<'s>(schema: &'s Schema, path: &str) -> Cursor<'s> {
        let steps = path.split('/').skip(1);
        steps.fold(schema.root(), |at, step| if step == "*" { at.items() } else { at.field(step) })
    }

    #[test]
    fn reads_what_the_api_server_says() {
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
    fn a_document_without_the_kind_has_no_schema_of_it() {
        for (api_version, kind) in [("apps/v1", "DaemonSet"), ("apps/v2", "Deployment"), ("v1", "Deployment")] {
            assert!(matches!(Schema::parse(samples::DOCUMENT, api_version, kind), Ok(None)), "{api_version} {kind}");
        }
        assert!(matches!(Schema::parse("{}", "v1", "Pod"), Ok(None)));
        assert!(Schema::parse("not JSON", "v1", "Pod").is_err());
        assert!(Schema::parse("7", "v1", "Pod").is_err());
    }

    #[test]
    fn schemas_that_are_broken_or_without_end_are_unknown() -> Result<(), serde_json::Error> {
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
    fn the_table_of_core_kinds_says_the_same_as_the_api_server() {
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
