//! The manifest of the plugin that a composition makes: its kinds, and the fields that its expressions read, and no more.

use std::collections::{BTreeMap, BTreeSet};

use pilothouse_sdk::raw::KindRef;
use serde_json::{Map, Value, json};

use crate::parts::{Composition, EACH, Lookup, Node, SCHEMA, Which};

/// How many fields deep a pointer goes. A plugin that is called a little too often costs less than a list of every field.
const DEEPEST: usize = 2;

/// The field by which a child is seen to be there.
const UID: &str = "/metadata/uid";

/// The manifest, JSON.
pub fn manifest(composition: &Composition) -> Value {
    let kind = |kind: &KindRef| json!({"apiVersion": kind.api_version, "kind": kind.kind});
    let read = Read::by(composition);
    let children = read.children();
    let mut manifest = Map::from_iter([
        ("name".to_owned(), json!(composition.name)),
        ("reconciles".to_owned(), kind(&composition.kind)),
        ("children".to_owned(), children.iter().map(|(of, _)| kind(of)).collect()),
        ("lookups".to_owned(), lookups(composition, &read)),
    ]);
    if let Some(version) = &composition.version {
        manifest.insert("version".to_owned(), json!(version));
    }
    if let Fields::These(fields) = read.of(SCHEMA) {
        manifest.insert("reads".to_owned(), json!(fields));
    }
    let child_reads = children.iter().filter_map(|(of, fields)| match fields {
        Fields::All => None,
        Fields::These(fields) => Some(json!({"apiVersion": of.api_version, "kind": of.kind, "fields": fields})),
    });
    manifest.insert("childReads".to_owned(), child_reads.collect());
    Value::Object(manifest)
}

/// The fields of a looked-up object that expressions read, for the lookup itself; all without any.
pub fn fields_of_lookup(composition: &Composition, name: &str) -> Vec<String> {
    match Read::by(composition).of(name) {
        Fields::All => Vec::new(),
        Fields::These(fields) if fields.is_empty() => vec![UID.to_owned()],
        Fields::These(fields) => fields.into_iter().collect(),
    }
}

/// Fields, as JSON pointers.
#[derive(Clone, Debug)]
enum Fields {
    All,
    These(BTreeSet<String>),
}

impl Fields {
    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (Self::These(fields), Self::These(others)) => fields.extend(others),
            (_, Self::All) => *self = Self::All,
        }
    }
}

/// What expressions read, by the name with which they begin.
struct Read<'r> {
    composition: &'r Composition,
    fields: BTreeMap<String, Fields>,
}

impl<'r> Read<'r> {
    fn by(composition: &'r Composition) -> Self {
        let mut fields: BTreeMap<String, Fields> = BTreeMap::new();
        for reference in composition.references() {
            let read = match reference.path.is_empty() {
                true => Fields::All,
                false => Fields::These([pointer(&reference.path)].into()),
            };
            fields.entry(reference.name).or_insert_with(|| Fields::These(BTreeSet::new())).add(read);
        }
        Self { composition, fields }
    }

    fn of(&self, name: &str) -> Fields {
        self.fields.get(name).cloned().unwrap_or_else(|| Fields::These(BTreeSet::new()))
    }

    /// The kinds of children, in the order in which they are first named, with what is read of them.
    fn children(&self) -> Vec<(&'r KindRef, Fields)> {
        let mut children: Vec<(&KindRef, Fields)> = Vec::new();
        for (name, node) in self.composition.names.iter().zip(&self.composition.nodes) {
            let Node::Resource(resource) = node else { continue };
            let mut fields = match resource.for_each.is_empty() {
                true => self.of(name),
                // What is read of an element of a list is not known by its path.
                false if self.fields.contains_key(name) || self.fields.contains_key(EACH) => Fields::All,
                false => Fields::These(BTreeSet::new()),
            };
            fields.add(Fields::These([UID.to_owned()].into()));
            match children.iter_mut().find(|(kind, _)| **kind == resource.kind) {
                Some((_, known)) => known.add(fields),
                None => children.push((&resource.kind, fields)),
            }
        }
        children
    }
}

fn pointer(path: &[String]) -> String {
    let escaped = path.iter().take(DEEPEST).map(|field| field.replace('~', "~0").replace('/', "~1"));
    escaped.fold(String::new(), |pointer, field| format!("{pointer}/{field}"))
}

/// The kinds that are looked up: each as narrow as all lookups of it allow.
fn lookups(composition: &Composition, read: &Read<'_>) -> Value {
    let all = composition.names.iter().zip(&composition.nodes).filter_map(|(name, node)| match node {
        Node::Lookup(lookup) => Some((name, lookup)),
        _ => None,
    });
    let mut kinds: Vec<(&KindRef, Vec<(&String, &Lookup)>)> = Vec::new();
    for (name, lookup) in all {
        match kinds.iter_mut().find(|(kind, _)| **kind == lookup.kind) {
            Some((_, known)) => known.push((name, lookup)),
            None => kinds.push((&lookup.kind, vec![(name, lookup)])),
        }
    }
    kinds.into_iter().map(|(kind, of_kind)| lookup_of_kind(kind, &of_kind, read)).collect()
}

fn lookup_of_kind(kind: &KindRef, of_kind: &[(&String, &Lookup)], read: &Read<'_>) -> Value {
    let leaves_namespace = |lookup: &Lookup| {
        lookup.namespace.is_some() || matches!(lookup.which, Which::Selected { is_everywhere: true, .. })
    };
    let mut declared =
        Map::from_iter([("apiVersion".to_owned(), json!(kind.api_version)), ("kind".to_owned(), json!(kind.kind))]);
    if of_kind.iter().any(|(_, lookup)| leaves_namespace(lookup)) {
        declared.insert("allNamespaces".to_owned(), json!(true));
    }
    // One selector that is known confines what the host keeps. Of two lookups, either one could be of what the other leaves out.
    if let [(_, Lookup { which: Which::Selected { selector, .. }, .. })] = of_kind
        && let Some(text) = selector.plain_text().filter(|text| !text.is_empty())
    {
        declared.insert("labelSelector".to_owned(), json!(text));
    }
    let is_of_metadata = |name: &str| match read.of(name) {
        Fields::All => false,
        Fields::These(fields) => fields.iter().all(|field| field.starts_with("/metadata/")),
    };
    // What is read of the elements of a list is not known.
    let is_named = |lookup: &Lookup| matches!(lookup.which, Which::Named(_));
    if of_kind.iter().all(|(name, lookup)| is_named(lookup) && is_of_metadata(name)) {
        declared.insert("metadataOnly".to_owned(), json!(true));
    }
    Value::Object(declared)
}
