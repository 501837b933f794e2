//! A sample owner with its plugin and its cluster, for tests.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Decorates, Manifest,
    contract::{Child, KindRef, Response, Verdict},
};

use super::{Children, Decoration, Desired, DesiredChild, DesiredChildren, Owner, Refusal, check};
use crate::{
    kinds::{InstalledKind, KnownKind},
    object::Object,
};

/// The manifest of a plugin with three child kinds: ConfigMap, Namespace, and one that is not installed.
fn manifest() -> Manifest {
    let children = [("v1", "ConfigMap"), ("v1", "Namespace"), ("example.com/v1", "Absent")];
    let children = children.map(|(version, kind)| KindRef::new(version, kind)).into();
    Manifest { children, orders_children: true, ..Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web")) }
}

fn kinds() -> BTreeMap<KindRef, KnownKind> {
    [("ConfigMap", true), ("Namespace", false)]
        .map(|(kind, namespaced)| {
            let resource = kube::api::ApiResource {
                group: String::new(),
                version: "v1".into(),
                api_version: "v1".into(),
                kind: kind.into(),
                plural: kind.to_lowercase(),
            };
            let installed = Arc::new(InstalledKind { resource, namespaced, has_status: false });
            (KindRef::new("v1", kind), KnownKind { installed, schema: None })
        })
        .into()
}

fn object(namespace: &str) -> Object {
    Object { uid: "u-1".into(), ..Object::sample(namespace, "shop") }
}

/// A child with default policies.
pub(super) fn child(body: &str) -> Child {
    Child::applied(body.to_owned())
}

/// A ConfigMap with extra metadata.
pub(super) fn config_map(extra: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"{extra}}}}}"#)
}

/// Checks the children of an object in a namespace.
pub(super) fn checked(namespace: &str, children: Vec<Child>) -> Result<Vec<DesiredChild>, Refusal> {
    Ok(match desired(&manifest(), namespace, &children)?.children {
        DesiredChildren::These(children) => children,
        DesiredChildren::Leave | DesiredChildren::InSync => Vec::new(),
    })
}

/// Checks the answer of a plugin that decorates the object: what it wants on the object, and how many children.
pub(super) fn decorated(children: Vec<Child>) -> Result<(Decoration, usize), Refusal> {
    let manifest = Manifest { decorates: Some(Decorates::default()), orders_children: false, ..manifest() };
    let desired = desired(&manifest, "ns", &children)?;
    Ok((desired.decoration.unwrap_or_default(), desired.children.checked().len()))
}

fn desired(manifest: &Manifest, namespace: &str, children: &[Child]) -> Result<Desired, Refusal> {
    let (kind, object, kinds) = (KindRef::new("example.com/v1", "Web"), object(namespace), kinds());
    let owner = Owner { manifest, kind: &kind, object: &object, schema: None, kinds: &kinds, namespaces: None };
    check(&owner, &Response::verdict(Verdict::Done), Children::Check(children))
}
