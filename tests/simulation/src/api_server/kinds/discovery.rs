//! The documents that tell clients what is served: the kinds of a group and version, the groups, and OpenAPI.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Catalog, Kind, Served, catalog::hash};

/// What can be done with the objects of a kind.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same for custom kinds, whose server tells it in another order.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What can be done with a subresource.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The kinds of a group and version; none if it is not served.
pub fn resources(served: &Served, group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<_> = served.of(group, version).collect();
    if kinds.is_empty() {
        return None;
    }
    let resources: Vec<_> = kinds.iter().flat_map(|kind| resources_of(kind)).collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn resources_of(kind: &Kind) -> Vec<Value> {
    let names = &kind.names;
    let mut main = json!({
        "name": &*names.plural,
        "singularName": &*names.singular,
        "namespaced": kind.namespaced,
        "kind": &*names.kind,
        "verbs": if kind.is_custom() { CUSTOM_VERBS } else { VERBS },
    });
    if !names.short_names.is_empty() {
        main["shortNames"] = names.short_names.iter().map(|name| Value::from(&**name)).collect::<Vec<_>>().into();
    }
    let mut all = vec![main];
    if kind.scale.is_some() {
        all.push(json!({
            "name": format!("{}/scale", names.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": SUBRESOURCE_VERBS,
        }));
    }
    if kind.has_status {
        all.push(json!({
            "name": format!("{}/status", names.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": &*names.kind,
            "verbs": SUBRESOURCE_VERBS,
        }));
    }
    all
}

/// All groups but the core one.
pub fn groups(served: &Served) -> Value {
    let names: BTreeSet<_> =
        served.iter().map(|kind| kind.names.group.clone()).filter(|name| !name.is_empty()).collect();
    let group = |name: &Arc<str>| {
        let versions: BTreeSet<_> =
            served.iter().filter(|kind| kind.names.group == *name).map(|kind| kind.names.version.clone()).collect();
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_by_key(|version| priority(version));
        let versions: Vec<_> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": &**version}))
            .collect();
        let preferred = versions.first().cloned().unwrap_or_default();
        json!({"name": &**name, "versions": versions, "preferredVersion": preferred})
    };
    let groups: Vec<_> = names.iter().map(group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// How stable a version is, and its numbers.
type Maturity = (u8, u32, u32);

/// The order of versions: `v2`, `v1`, `v2beta1`, `v1alpha1`, and what is no such version after that, by its name.
fn priority(version: &str) -> (Reverse<Option<Maturity>>, String) {
    let parsed = || {
        let text = version.strip_prefix('v')?;
        let stage =
            [("alpha", 0), ("beta", 1)].into_iter().find_map(|(word, stage)| Some((stage, text.split_once(word)?)));
        match stage {
            Some((stage, (major, minor))) => Some((stage, major.parse().ok()?, minor.parse().ok()?)),
            None => Some((2, text.parse().ok()?, 0)),
        }
    };
    (Reverse(parsed()), version.to_owned())
}

/// The index of the OpenAPI documents, with a hash of each.
pub fn openapi_index(catalog: &Catalog, served: &Served) -> Value {
    let entry = |path: &str, hash: &str| {
        (path.to_owned(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}))
    };
    let built_in = catalog.documents().iter().map(|(path, (_, hash))| entry(path, hash));
    let custom: BTreeSet<_> =
        served.iter().filter(|kind| kind.is_custom()).map(|kind| kind.api_version.clone()).collect();
    let custom = custom.iter().map(|api_version| {
        let document = custom_document(catalog, served, api_version).to_string();
        entry(&format!("apis/{api_version}"), &hash(&document))
    });
    json!({"paths": built_in.chain(custom).collect::<serde_json::Map<_, _>>()})
}

/// An OpenAPI document; none if there is none under this path.
pub fn openapi_document(catalog: &Catalog, served: &Served, path: &str) -> Option<Bytes> {
    if let Some((document, _)) = catalog.documents().get(path) {
        return Some(document.clone());
    }
    let api_version = path.strip_prefix("apis/")?;
    let is_served = served.iter().any(|kind| kind.is_custom() && *kind.api_version == *api_version);
    is_served.then(|| custom_document(catalog, served, api_version).to_string().into())
}

fn custom_document(catalog: &Catalog, served: &Served, api_version: &str) -> Value {
    let mut schemas = catalog.metadata().clone();
    for kind in served.iter().filter(|kind| kind.is_custom() && *kind.api_version == *api_version) {
        let names = &kind.names;
        let group: Vec<_> = names.group.split('.').rev().collect();
        schemas.insert(format!("{}.{}.{}", group.join("."), names.version, names.kind), kind.published.clone());
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": {},
        "components": {"schemas": schemas},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let mut versions = ["other", "v1alpha1", "v1", "v2beta1", "v10", "v2", "another", "v2beta2"];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "another", "other"]);
    }
}
