//! Parses kinds' schemas from an OpenAPI v3 document of the API server. Parses only the parts that a kind refers to: the document of the
//! core kinds has more than a megabyte. It is gone through once, however many kinds are asked for: that of a hundred kinds of one group has
//! several.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::{Edge, Flags, List, Node, Schema, build::Builder};

/// The deepest nesting. Below it a schema is unknown, so that a hostile CRD cannot overflow the stack.
const MAX_DEPTH: usize = 100;

/// The prefix of references to schemas in a document.
const PREFIX: &str = "#/components/schemas/";

/// The name of the schema for quantities.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The prefix of the schemas of built-in kinds, which the API server decodes into Go types.
const GO_TYPES: &str = "io.k8s.api.";

impl Schema {
    /// Parses the schema of a kind from a document such as `/openapi/v3/apis/apps/v1`; none if the document does not have the kind.
    ///
    /// # Errors
    /// If the document is not JSON or not OpenAPI.
    pub fn parse(document: &str, api_version: &str, kind: &str) -> Result<Option<Self>, serde_json::Error> {
        Ok(Schemas::split(document)?.of(api_version, kind))
    }
}

/// A document, which is gone through when the first kind is asked for.
#[derive(Clone, Debug)]
pub struct Document {
    text: String,
    schemas: OnceLock<Schemas>,
}

impl Document {
    /// The document with this JSON text.
    pub fn new(text: String) -> Self {
        Self { text, schemas: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The schema of a kind; none if the document does not have the kind.
    ///
    /// # Errors
    /// As [`Schema::parse`].
    pub fn schema(&self, api_version: &str, kind: &str) -> Result<Option<Schema>, serde_json::Error> {
        let schemas = match self.schemas.get() {
            Some(known) => known,
            None => {
                let split = Schemas::split(&self.text)?;
                self.schemas.get_or_init(|| split)
            }
        };
        Ok(schemas.of(api_version, kind))
    }
}

/// The schemas of a document, not parsed yet.
#[derive(Clone, Debug)]
struct Schemas {
    by_name: HashMap<String, Box<RawValue>>,
    /// The names of those that are of a kind.
    names: HashMap<GroupVersionKind, String>,
}

impl Schemas {
    fn split(document: &str) -> Result<Self, serde_json::Error> {
        let Parts { components: Components { schemas: by_name } } = serde_json::from_str(document)?;
        let mut names = HashMap::new();
        for (name, text) in &by_name {
            for kind in kinds_of(text.get()) {
                names.insert(kind, name.clone());
            }
        }
        Ok(Self { by_name, names })
    }

    fn of(&self, api_version: &str, kind: &str) -> Option<Schema> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let [group, version, kind] = [group, version, kind].map(str::to_owned);
        let name = self.names.get(&GroupVersionKind { group, version, kind })?;
        let mut reader = Reader { schemas: &self.by_name, known: HashMap::new(), builder: Builder::new() };
        let root = reader.named(name, 0);
        let goes_through_types = name.starts_with(GO_TYPES);
        Some(Schema { arena: Arc::new(reader.builder.finish()), root, goes_through_types })
    }
}

/// The kinds that a schema is of; none for most.
fn kinds_of(text: &str) -> Vec<GroupVersionKind> {
    // To search for the word is much faster than to parse all.
    if !text.contains("x-kubernetes-group-version-kind") {
        return Vec::new();
    }
    serde_json::from_str(text).map(|Kinds { kinds }| kinds).unwrap_or_default()
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
struct Components {
    #[serde(default)]
    schemas: HashMap<String, Box<RawValue>>,
}

/// A string that is copied only if it has escapes.
#[derive(Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(transparent)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

#[derive(Deserialize)]
struct Kinds {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Vec<GroupVersionKind>,
}

#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize)]
struct Reference<'t> {
    #[serde(borrow, rename = "$ref")]
    reference: Option<Text<'t>>,
}

/// The relevant parts of one schema. Nested schemas are not parsed yet.
#[derive(Deserialize)]
struct Raw<'t> {
    #[serde(borrow, rename = "$ref")]
    reference: Option<Text<'t>>,
    #[serde(borrow, rename = "allOf", default)]
    all_of: Vec<&'t RawValue>,
    #[serde(borrow, rename = "type")]
    type_name: Option<Text<'t>>,
    #[serde(borrow, default)]
    properties: BTreeMap<Text<'t>, &'t RawValue>,
    #[serde(borrow, rename = "additionalProperties")]
    others: Option<&'t RawValue>,
    #[serde(borrow)]
    items: Option<&'t RawValue>,
    #[serde(borrow)]
    default: Option<&'t RawValue>,
    #[serde(default)]
    nullable: bool,
    #[serde(rename = "oneOf")]
    one_of: Option<IgnoredAny>,
    #[serde(borrow, rename = "x-kubernetes-list-type")]
    list_type: Option<Text<'t>>,
    #[serde(rename = "x-kubernetes-list-map-keys", default)]
    list_map_keys: Vec<Box<str>>,
    #[serde(borrow, rename = "x-kubernetes-map-type")]
    map_type: Option<Text<'t>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", default)]
    preserves_unknown: bool,
    #[serde(rename = "x-kubernetes-int-or-string", default)]
    int_or_string: bool,
}

impl Raw<'_> {
    /// The name of the schema that this one refers to (`$ref`, or `allOf` with one entry). This one may add flags.
    fn target(&self) -> Option<String> {
        let name = |reference: &Option<Text<'_>>| {
            let Text(reference) = reference.as_ref()?;
            reference.strip_prefix(PREFIX).map(str::to_owned)
        };
        match self.all_of.as_slice() {
            [only] => serde_json::from_str::<Reference<'_>>(only.get()).ok().and_then(|only| name(&only.reference)),
            _ => name(&self.reference),
        }
    }

    fn flags(&self) -> Flags {
        let map_type = self.map_type.as_ref().map(|Text(name)| &**name);
        Flags::default()
            .with_if(self.nullable, Flags::NULLABLE)
            .with_if(self.default.is_some(), Flags::DEFAULTED)
            .with_if(map_type == Some("atomic"), Flags::ATOMIC)
            .with_if(map_type == Some("granular"), Flags::GRANULAR)
    }
}

struct Reader<'t> {
    schemas: &'t HashMap<String, Box<RawValue>>,
    /// The schemas that were parsed or are being parsed, by name.
    known: HashMap<String, Edge>,
    builder: Builder,
}

impl Reader<'_> {
    fn named(&mut self, name: &str, depth: usize) -> Edge {
        if name == QUANTITY {
            return Edge::QUANTITY;
        }
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        if depth > MAX_DEPTH {
            return Edge::UNKNOWN;
        }
        let found = self.schemas.get(name);
        let Some(raw) = found.and_then(|text| serde_json::from_str::<Raw<'_>>(text.get()).ok()) else {
            return Edge::UNKNOWN;
        };
        if let Some(target) = raw.target() {
            return self.named(&target, depth + 1);
        }
        let edge = Edge { node: self.builder.reserve(), flags: raw.flags() };
        // Before its fields are read: a schema that contains itself finds this edge and ends.
        self.known.insert(name.to_owned(), edge);
        let node = self.node(raw, depth + 1);
        let shared = Builder::shared(&node);
        self.builder.fill(edge.node, node);
        let edge = Edge { node: shared.unwrap_or(edge.node), ..edge };
        self.known.insert(name.to_owned(), edge);
        edge
    }

    fn place(&mut self, text: &RawValue, depth: usize) -> Edge {
        if depth > MAX_DEPTH {
            return Edge::UNKNOWN;
        }
        let Ok(raw) = serde_json::from_str::<Raw<'_>>(text.get()) else { return Edge::UNKNOWN };
        let flags = raw.flags();
        if let Some(target) = raw.target() {
            let target = self.named(&target, depth);
            return Edge { flags: target.flags.with(flags), ..target };
        }
        let node = self.node(raw, depth + 1);
        let node = Builder::shared(&node).unwrap_or_else(|| self.builder.push(node));
        Edge { node, flags }
    }

    fn node(&mut self, raw: Raw<'_>, depth: usize) -> Node {
        match raw.type_name.as_ref().map(|Text(name)| &**name) {
            Some("array") => self.list(&raw, depth),
            Some("object") => self.object(&raw, depth),
            // For example an int-or-string, or the quantity of another API group.
            None if raw.int_or_string || raw.one_of.is_some() => Node::Scalar,
            None if !raw.properties.is_empty() => self.object(&raw, depth),
            None => Node::FreeForm,
            Some(_) => Node::Scalar,
        }
    }

    fn object(&mut self, raw: &Raw<'_>, depth: usize) -> Node {
        let fields: Vec<_> =
            raw.properties.iter().map(|(Text(name), text)| (&**name, self.place(text, depth))).collect();
        let others = self.others(raw, depth);
        Node::Object { fields: self.builder.fields(fields), others }
    }

    fn others(&mut self, raw: &Raw<'_>, depth: usize) -> Option<Edge> {
        match raw.others.map(RawValue::get) {
            _ if raw.preserves_unknown => Some(Edge::FREE_FORM),
            Some("true") => Some(Edge::FREE_FORM),
            Some("false") => None,
            Some(_) => raw.others.map(|others| self.place(others, depth)),
            // Server-side apply also treats an object without properties as free-form.
            None => raw.properties.is_empty().then_some(Edge::FREE_FORM),
        }
    }

    fn list(&mut self, raw: &Raw<'_>, depth: usize) -> Node {
        let items = raw.items.map_or(Edge::FREE_FORM, |items| self.place(items, depth));
        let list = match raw.list_type.as_ref().map(|Text(name)| &**name) {
            Some("set") => List::Set,
            Some("map") => {
                let keys: Vec<_> =
                    raw.list_map_keys.iter().map(|key| (key.clone(), self.default_of(raw, key))).collect();
                List::Map(self.builder.keys(keys))
            }
            // Server-side apply treats a list without a list type as atomic, too.
            _ => List::Atomic,
        };
        Node::List { items, list }
    }

    /// The default of a key in the elements of a list; null without one.
    fn default_of(&self, list: &Raw<'_>, key: &str) -> Value {
        let item = list.items.and_then(|items| serde_json::from_str::<Raw<'_>>(items.get()).ok());
        let target = item.as_ref().and_then(Raw::target);
        let target = target.and_then(|name| self.schemas.get(&name));
        let item = match target {
            Some(text) => serde_json::from_str::<Raw<'_>>(text.get()).ok(),
            None => item,
        };
        let field = item.and_then(|item| item.properties.get(&Text(Cow::Borrowed(key))).copied());
        let field = field.and_then(|text| serde_json::from_str::<Raw<'_>>(text.get()).ok());
        let default = field.and_then(|field| field.default);
        default.and_then(|default| serde_json::from_str(default.get()).ok()).unwrap_or_default()
    }
}
