//! A sample owner with its plugin and its cluster, for tests.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Manifest,
    contract::{Child, KindRef, Response, Verdict},
};

use super::{Children, DesiredChild, DesiredChildren, Owner, Refusal, check};
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
    let (manifest, kind, object, kinds) =
        (manifest(), KindRef::new("example.com/v1", "Web"), object(namespace), kinds());
    let owner =
        Owner { manifest: &manifest, kind: &kind, object: &object, schema: None, kinds: &kinds, namespaces: None };
    let desired = check(&owner, &Response::verdict(Verdict::Done), Children::Check(&children))?;
    Ok(match desired.children {
        DesiredChildren::These(children) => children,
        DesiredChildren::Leave | DesiredChildren::InSync => Vec::new(),
    })
}
