//! An object, its plugin and their cluster, for tests.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Manifest,
    contract::{Child, ImmutablePolicy, KindRef, RemovalPolicy, Response, Verdict},
};

use super::{DesiredChild, Refusal, check};
use crate::{cache::Object, kinds::Installed};

/// A plugin that may have ConfigMaps, Namespaces and a kind that is not installed.
fn manifest() -> Manifest {
    let children = [("v1", "ConfigMap"), ("v1", "Namespace"), ("example.com/v1", "Absent")];
    let children = children.map(|(version, kind)| KindRef::new(version, kind)).into();
    Manifest { children, ..Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web")) }
}

fn scopes() -> BTreeMap<KindRef, Arc<Installed>> {
    [("ConfigMap", true), ("Namespace", false)]
        .map(|(kind, namespaced)| {
            let resource = kube::api::ApiResource {
                group: String::new(),
                version: "v1".into(),
                api_version: "v1".into(),
                kind: kind.into(),
                plural: kind.to_lowercase(),
            };
            (KindRef::new("v1", kind), Arc::new(Installed { resource, namespaced, has_status: false }))
        })
        .into()
}

fn object(namespace: &str) -> Object {
    Object { uid: "u-1".into(), ..Object::sample(namespace, "shop") }
}

/// A child with nothing said about it.
pub(super) fn child(body: &str) -> Child {
    Child {
        object: body.to_owned(),
        on_immutable: ImmutablePolicy::Fail,
        on_removal: RemovalPolicy::Delete,
        unmanaged_fields: Vec::new(),
    }
}

/// A ConfigMap with more metadata.
pub(super) fn config_map(extra: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"{extra}}}}}"#)
}

/// The children of an object of that namespace, checked.
pub(super) fn checked(namespace: &str, children: Vec<Child>) -> Result<Vec<DesiredChild>, Refusal> {
    let response = Response { children: Some(children), ..Response::verdict(Verdict::Done) };
    let kind = KindRef::new("example.com/v1", "Web");
    let desired = check(&manifest(), &kind, &object(namespace), &scopes(), response)?;
    Ok(desired.children.unwrap_or_default())
}
