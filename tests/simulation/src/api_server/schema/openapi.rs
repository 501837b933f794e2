//! Builds the schemas of built-in kinds from OpenAPI v3 documents, as a server publishes them.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use super::{Fields, List, ListKey, Node, Scalar, SchemaError, Shape, metadata};

/// The prefix of references to schemas in a document.
const PREFIX: &str = "#/components/schemas/";

/// The names of types that the server treats as a scalar of their own.
const SCALARS: [(&str, Scalar); 4] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", Scalar::Quantity),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", Scalar::IntOrString),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", Scalar::Time),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", Scalar::MicroTime),
];

/// The lists and times that are always shown although they are not required.
const ALWAYS_SHOWN: [&str; 8] = [
    "currentMetrics",
    "eventTime",
    "firstTimestamp",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "rules",
];

/// The type of `metadata`.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Reads kinds out of one document. Types that several kinds refer to are shared.
pub struct OpenApi<'d> {
    schemas: &'d Map<String, Value>,
    known: HashMap<String, Arc<Node>>,
    /// The types that are being read. A type that contains itself is free-form below.
    under_way: Vec<String>,
}

impl<'d> OpenApi<'d> {
    /// Reads from this document.
    ///
    /// # Errors
    /// [`SchemaError`] if it has no schemas.
    pub fn new(document: &'d Value) -> Result<Self, SchemaError> {
        let schemas = document["components"]["schemas"].as_object();
        let schemas = schemas.ok_or_else(|| SchemaError::Malformed("a document without schemas".to_owned()))?;
        Ok(Self { schemas, known: HashMap::new(), under_way: Vec::new() })
    }

    /// The schema of a kind; none if the document does not have it.
    pub fn kind(&mut self, group: &str, version: &str, kind: &str) -> Option<Arc<Node>> {
        let is_wanted = |found: &Value| found["group"] == group && found["version"] == version && found["kind"] == kind;
        let is_of_kind = |schema: &Value| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.iter().any(is_wanted))
        };
        let (_, schema) = self.schemas.iter().find(|(_, schema)| is_of_kind(schema))?;
        let mut node = self.read(schema);
        if let Shape::Object(fields) = &mut node.shape {
            metadata::complete(fields);
        }
        Some(Arc::new(node))
    }

    fn named(&mut self, name: &str) -> Arc<Node> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let node = if name == OBJECT_META {
            metadata::metadata()
        } else if let Some((_, scalar)) = SCALARS.iter().find(|(known, _)| *known == name) {
            Node::scalar(*scalar)
        } else if self.under_way.iter().any(|known| known == name) {
            return Arc::new(Node::default());
        } else if let Some(schema) = self.schemas.get(name) {
            self.under_way.push(name.to_owned());
            let node = Arc::new(self.read(schema));
            self.under_way.pop();
            node
        } else {
            Arc::new(Node::default())
        };
        self.known.insert(name.to_owned(), node.clone());
        node
    }

    /// The schema at a place, which may add a default or a merge rule to the one it refers to.
    fn place(&mut self, schema: &Value) -> Arc<Node> {
        let Some(name) = reference(schema) else { return Arc::new(self.read(schema)) };
        let target = self.named(name);
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        if schema.get("default").is_none() && !atomic {
            return target;
        }
        let shape = match &target.shape {
            Shape::Object(fields) => Shape::Object(Fields {
                named: fields.named.clone(),
                others: fields.others.clone(),
                atomic: fields.atomic || atomic,
                keeps_others: fields.keeps_others,
            }),
            Shape::Scalar(scalar) => Shape::Scalar(*scalar),
            Shape::List { items, list } => Shape::List { items: items.clone(), list: list.clone() },
            Shape::Any => Shape::Any,
        };
        Arc::new(Node { shape, default: schema.get("default").cloned(), ..Node::default() })
    }

    fn read(&mut self, schema: &Value) -> Node {
        let shape = match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("object"), _) => self.object(schema),
            (Some("array"), _) => Shape::List { items: self.place(&schema["items"]), list: list(self.schemas, schema) },
            (Some("string"), Some("int-or-string")) => Shape::Scalar(Scalar::IntOrString),
            (Some("string"), Some("byte")) => Shape::Scalar(Scalar::Bytes),
            (Some("string"), Some("date-time")) => Shape::Scalar(Scalar::Time),
            (Some("string"), _) => Shape::Scalar(Scalar::Text),
            (Some("integer"), Some("int32")) => Shape::Scalar(Scalar::Int32),
            (Some("integer"), _) => Shape::Scalar(Scalar::Int64),
            (Some("number"), _) => Shape::Scalar(Scalar::Number),
            (Some("boolean"), _) => Shape::Scalar(Scalar::Boolean),
            _ => Shape::Any,
        };
        Node { shape, default: schema.get("default").cloned(), ..Node::default() }
    }

    fn object(&mut self, schema: &Value) -> Shape {
        let mut fields = Fields { atomic: schema["x-kubernetes-map-type"] == "atomic", ..Fields::default() };
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_always_shown = required.iter().any(|known| known == name) || ALWAYS_SHOWN.contains(&name.as_str());
            let node = self.place(schema);
            let node = if is_always_shown { shown_as_null(node) } else { node };
            fields.named.push((name.as_str().into(), node));
        }
        fields.sort();
        fields.others = match schema.get("additionalProperties") {
            Some(others @ Value::Object(_)) => Some(self.place(others)),
            _ if fields.named.is_empty() => return Shape::Any,
            _ => None,
        };
        fields.keeps_others = fields.others.is_some();
        Shape::Object(fields)
    }
}

/// A list or a time that Go writes as null where there is none.
fn shown_as_null(node: Arc<Node>) -> Arc<Node> {
    let shape = match &node.shape {
        Shape::List { items, list } => Shape::List { items: items.clone(), list: list.clone() },
        Shape::Scalar(scalar @ (Scalar::Time | Scalar::MicroTime)) => Shape::Scalar(*scalar),
        _ => return node,
    };
    Arc::new(Node { shape, default: Some(Value::Null), ..Node::default() })
}

/// The name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    let only = schema["allOf"].as_array().and_then(|all| all.first()).unwrap_or(schema);
    only["$ref"].as_str()?.strip_prefix(PREFIX)
}

fn list(schemas: &Map<String, Value>, schema: &Value) -> List {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => List::Set,
        Some("map") => {
            let items = &schema["items"];
            let items = reference(items).and_then(|name| schemas.get(name)).unwrap_or(items);
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let default = |key: &str| items["properties"][key].get("default").cloned();
            List::Map(keys.map(|key| ListKey { name: key.into(), default: default(key) }).collect())
        }
        _ => List::Atomic,
    }
}
