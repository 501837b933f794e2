//! The children that a plugin returned: which it may have, and where they live.

use std::collections::BTreeSet;

use pilothouse_engine::{
    Manifest,
    contract::{Child, ImmutablePolicy, KindRef},
};
use serde_json::{Map, Value, json};

use super::{
    Refusal, Scopes,
    json::{drop_nulls, parse_object, text},
};
use crate::{cache::Object, labels, pipeline::pointer};

/// The most children one object may have.
pub(super) const MAX_CHILDREN: usize = 1_000;

/// A child as it shall be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    /// Its kind.
    pub kind: KindRef,
    /// Its name.
    pub name: String,
    /// Its namespace, empty for a cluster-scoped kind.
    pub namespace: String,
    /// The complete body to apply, with owner reference, labels and fingerprint.
    pub body: Value,
    /// Fingerprint of the body, also in its annotation [`labels::APPLIED`].
    pub fingerprint: String,
    /// What to do when a field cannot change.
    pub on_immutable: ImmutablePolicy,
    /// JSON pointers of the fields that are left to others; they are not in the body.
    pub unmanaged: Vec<String>,
}

/// The object that the children belong to, and what its plugin declares.
pub(super) struct Owner<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) kind: &'a KindRef,
    pub(super) object: &'a Object,
    pub(super) scopes: &'a dyn Scopes,
}

impl Owner<'_> {
    /// Checks and completes all children of an answer.
    pub(super) fn complete_all(&self, children: Vec<Child>) -> Result<Vec<DesiredChild>, Refusal> {
        if children.len() > MAX_CHILDREN {
            return Err(Refusal::TooMany(children.len()));
        }
        let mut seen = BTreeSet::new();
        let mut completed = Vec::with_capacity(children.len());
        for child in children {
            let child = self.complete(child)?;
            if !seen.insert((child.kind.clone(), child.name.clone())) {
                return Err(Refusal::Duplicate(describe(&child.kind, &child.name)));
            }
            completed.push(child);
        }
        Ok(completed)
    }

    fn complete(&self, child: Child) -> Result<DesiredChild, Refusal> {
        let Child { object, on_immutable, on_removal, unmanaged_fields } = child;
        let mut body = parse_object("a child", &object)?;
        let kind = self.declared_kind(&body)?;
        let name = text(&body, &["metadata", "name"]).filter(|name| !name.is_empty()).ok_or_else(|| {
            Refusal::Malformed { what: format!("a {kind}"), why: "it has no metadata.name".to_owned() }
        })?;
        let namespace = self.namespace(&body, &kind, &name)?;
        drop_nulls(&mut body);
        body.remove("status");
        let mut body = Value::Object(body);
        for field in &unmanaged_fields {
            pointer::remove(&mut body, field)
                .map_err(|why| Refusal::Malformed { what: format!("the unmanaged field '{field}' of {name}"), why })?;
        }
        if !unmanaged_fields.is_empty() {
            body["metadata"]["annotations"][labels::UNMANAGED] = json!(unmanaged_fields.join(" "));
        }
        let fingerprint = self.own(&mut body, &namespace, on_removal);
        Ok(DesiredChild { kind, name, namespace, body, fingerprint, on_immutable, unmanaged: unmanaged_fields })
    }

    fn declared_kind(&self, body: &Map<String, Value>) -> Result<KindRef, Refusal> {
        let field = |name| text(body, &[name]).unwrap_or_default();
        let kind = KindRef { api_version: field("apiVersion"), kind: field("kind") };
        if self.manifest.children.contains(&kind) { Ok(kind) } else { Err(Refusal::UndeclaredKind(kind)) }
    }

    fn namespace(&self, body: &Map<String, Value>, kind: &KindRef, name: &str) -> Result<String, Refusal> {
        let own = &*self.object.name.namespace;
        let namespaced = self.scopes.is_namespaced(kind).ok_or_else(|| Refusal::KindNotInstalled(kind.clone()))?;
        if !namespaced {
            let allowed = own.is_empty();
            return if allowed { Ok(String::new()) } else { Err(Refusal::ClusterScoped(describe(kind, name))) };
        }
        let asked = text(body, &["metadata", "namespace"]);
        match asked.as_deref() {
            // A cluster-scoped object says where its children live.
            Some(namespace) if own.is_empty() => Ok(namespace.to_owned()),
            None if own.is_empty() => {
                let why = "its object is cluster-scoped, so it needs a metadata.namespace".to_owned();
                Err(Refusal::Malformed { what: describe(kind, name), why })
            }
            Some(namespace) if namespace != own => {
                Err(Refusal::ForeignNamespace { child: describe(kind, name), namespace: namespace.to_owned() })
            }
            _ => Ok(own.to_owned()),
        }
    }
}

/// A child in a message: `Deployment 'web'`.
pub fn describe(kind: &KindRef, name: &str) -> String {
    format!("{} '{name}'", kind.kind)
}

#[cfg(test)]
mod tests {
    use super::{super::sample::*, *};

    #[test]
    fn refuses_what_a_plugin_may_not_do() {
        let secret = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#;
        let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}"#;
        let absent = r#"{"apiVersion":"example.com/v1","kind":"Absent","metadata":{"name":"a"}}"#;
        let other = config_map(r#","namespace":"other""#);
        let cases = [
            ("ns", vec![child("not json")], "PluginContractViolated"),
            ("ns", vec![child("[]")], "PluginContractViolated"),
            ("ns", vec![child("{}")], "ChildKindNotDeclared"),
            ("ns", vec![child(r#"{"apiVersion":"v1","kind":"ConfigMap"}"#)], "PluginContractViolated"),
            (
                "ns",
                vec![child(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":""}}"#)],
                "PluginContractViolated",
            ),
            ("ns", vec![child(secret)], "ChildKindNotDeclared"),
            ("ns", vec![child(absent)], "ChildKindNotInstalled"),
            ("ns", vec![child(namespace)], "ChildScopeNotAllowed"),
            ("ns", vec![child(&other)], "ChildScopeNotAllowed"),
            ("", vec![child(&config_map(""))], "PluginContractViolated"),
            ("ns", vec![child(&config_map("")), child(&config_map(""))], "DuplicateChild"),
            ("ns", vec![child(&config_map("")); MAX_CHILDREN + 1], "TooManyChildren"),
        ];
        for (namespace, children, expected) in cases {
            let refusal = checked(namespace, children).err();
            assert_eq!(refusal.as_ref().map(Refusal::reason), Some(expected), "{refusal:?}");
        }
        assert!(checked("", vec![child(namespace)]).is_ok(), "a cluster-scoped object may own cluster-scoped children");
        assert!(checked("", vec![child(&other)]).is_ok(), "and namespaced ones that say where they live");
    }
}
