//! Checks and completes the children of an answer. Does not validate their specs.

use std::collections::BTreeSet;

use pilothouse_engine::contract::{Child, KindRef};
use serde_json::{Map, Value, json};

use super::{
    desired::DesiredChild,
    json::{drop_nulls, parse_object, text},
    names::{check_metadata, check_name, check_namespace},
    order,
    owner::Owner,
    ownership, pointer,
    refusal::{MAX_CHILDREN, Refusal, malformed},
    secret,
};
use crate::{
    labels,
    object::{ObjectRef, describe},
    schema::{Cursor, Schema},
};

/// Checks and completes all children of an answer.
pub(super) fn complete_all(owner: &Owner<'_>, children: &[&Child]) -> Result<Vec<DesiredChild>, Refusal> {
    if children.len() > MAX_CHILDREN {
        return Err(Refusal::TooMany(children.len()));
    }
    let mut completed: Vec<DesiredChild> = Vec::with_capacity(children.len());
    for (index, child) in children.iter().enumerate() {
        let after = order::places(owner, child, completed.len())?;
        let order = order::place(&after, &completed);
        completed.push(DesiredChild { after, order, ..complete(owner, child, index, order)? });
    }
    let mut seen = BTreeSet::new();
    match completed.iter().find(|child| !seen.insert((&child.kind, &child.name))) {
        Some(child) => Err(Refusal::Duplicate(describe(&child.kind, &child.name))),
        None => Ok(completed),
    }
}

fn complete(owner: &Owner<'_>, child: &Child, index: usize, order: u32) -> Result<DesiredChild, Refusal> {
    let Child { object, handling, after: _, on_immutable, on_removal, unmanaged_fields } = child;
    let mut body = parse_object(format_args!("child number {index}"), object)?;
    let kind = declared_kind(owner, &body)?;
    let name = text(&body, &["metadata", "name"]).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| malformed(format!("a {kind}"), "it has no metadata.name"))?;
    check_name(&kind, &name)?;
    let name = ObjectRef::new(&namespace(owner, &body, &kind, &name)?, &name);
    check_metadata(&body, &describe(&kind, &name))?;
    let schema = owner.kinds.schema(&kind);
    drop_nulls(&mut body, schema.map_or_else(Cursor::unknown, Schema::root));
    // A plugin that returns a child as it was shown returns its status, too. That belongs to the child's own controller.
    body.remove("status");
    remove_server_fields(&mut body);
    secret::encode_string_data(&kind, &mut body);
    let mut body = Value::Object(body);
    // After `stringData` has become `data`, so that a pointer finds the field under the name that is applied.
    if let Some(field) = unmanaged_fields.iter().find(|field| IDENTITY_FIELDS.contains(&field.as_str())) {
        let what = format!("the unmanaged field '{field}' of {}", describe(&kind, &name));
        return Err(malformed(what, "it says which object it is, and is nobody else's to set"));
    }
    for field in unmanaged_fields {
        pointer::remove(&mut body, field).map_err(|error| {
            malformed(format!("the unmanaged field '{field}' of {}", describe(&kind, &name)), &error.to_string())
        })?;
    }
    if !unmanaged_fields.is_empty() {
        body["metadata"]["annotations"][labels::UNMANAGED] = json!(unmanaged_fields.join(" "));
    }
    if order > 0 {
        body["metadata"]["annotations"][labels::ORDER] = json!(order.to_string());
    }
    // Last, because the digest covers the whole body.
    let digest = ownership::add_metadata(owner, &mut body, &kind, &name, *on_removal);
    Ok(DesiredChild {
        kind,
        name,
        body,
        digest,
        handling: *handling,
        after: Vec::new(),
        order,
        on_immutable: *on_immutable,
        unmanaged: unmanaged_fields.clone(),
    })
}

/// The fields that say which object a child is.
const IDENTITY_FIELDS: [&str; 5] = ["/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"];

/// Fields of the metadata that the API server sets, or the host: a plugin that returns what it was shown may have them.
const SERVER_FIELDS: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

fn remove_server_fields(body: &mut Map<String, Value>) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
}

fn declared_kind(owner: &Owner<'_>, body: &Map<String, Value>) -> Result<KindRef, Refusal> {
    let field = |name| text(body, &[name]).unwrap_or_default();
    let kind = KindRef { api_version: field("apiVersion"), kind: field("kind") };
    if owner.manifest.children.contains(&kind) { Ok(kind) } else { Err(Refusal::UndeclaredKind(kind)) }
}

/// The namespace of a child; empty for a cluster-scoped kind.
fn namespace(owner: &Owner<'_>, body: &Map<String, Value>, kind: &KindRef, name: &str) -> Result<String, Refusal> {
    let own = &*owner.object.name.namespace;
    let child = || format!("{} '{name}'", kind.kind);
    let is_namespaced = owner.kinds.is_namespaced(kind).ok_or_else(|| Refusal::KindNotInstalled(kind.clone()))?;
    if !is_namespaced {
        return if own.is_empty() { Ok(String::new()) } else { Err(Refusal::ClusterScoped(child())) };
    }
    let asked = body.get("metadata").and_then(|metadata| metadata.get("namespace")).filter(|asked| !asked.is_null());
    if asked.is_some_and(|asked| !asked.is_string()) {
        return Err(malformed(child(), "metadata.namespace is not a text"));
    }
    match text(body, &["metadata", "namespace"]).filter(|asked| !asked.is_empty()) {
        Some(asked) if own.is_empty() && owner.namespaces.is_some_and(|served| !served.contains(&*asked)) => {
            Err(Refusal::NamespaceNotServed { child: child(), namespace: asked })
        }
        // A cluster-scoped owner may have children in any of them, so each child must name its own.
        Some(asked) if own.is_empty() => check_namespace(&child(), &asked).map(|()| asked),
        None if own.is_empty() => {
            Err(malformed(child(), "its object is cluster-scoped, so it needs a metadata.namespace"))
        }
        Some(asked) if asked != own => Err(Refusal::ForeignNamespace { child: child(), namespace: asked }),
        _ => Ok(own.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sample::*, *};

    #[test]
    fn children_that_break_a_rule_are_refused_with_its_reason() {
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
            ("ns", vec![child(&config_map(r#","labels":"x""#))], "PluginContractViolated"),
            (
                "ns",
                vec![child(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a?dryRun=All"}}"#)],
                "PluginContractViolated",
            ),
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
        for field in IDENTITY_FIELDS.into_iter().chain(["spec/replicas", "/data/~2"]) {
            let unmanaged = Child { unmanaged_fields: vec![field.to_owned()], ..child(&config_map("")) };
            let refusal = checked("ns", vec![unmanaged]).err();
            assert_eq!(refusal.as_ref().map(Refusal::reason), Some("PluginContractViolated"), "{field}");
        }
        for (after, expected) in [(vec![0], true), (vec![1], false), (vec![2], false), (vec![u32::MAX], false)] {
            let second = Child { after: after.clone(), ..child(&config_map("").replace("\"a\"", "\"b\"")) };
            let children = checked("ns", vec![child(&config_map("")), second]);
            assert_eq!(children.is_ok(), expected, "{after:?}: {children:?}");
        }
        assert!(checked("", vec![child(namespace)]).is_ok(), "a cluster-scoped object may own cluster-scoped children");
        assert!(checked("", vec![child(&other)]).is_ok(), "and namespaced ones that say where they live");
        let elsewhere = config_map(r#","namespace":"elsewhere""#);
        let both = checked("", vec![child(&other), child(&elsewhere)]);
        assert!(both.is_ok(), "one name in two namespaces is two children: {both:?}");
    }
}
