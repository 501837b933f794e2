//! Adds the metadata that ties a child to its owner: namespace, labels, owner reference, identity and mark. Pure.

use pilothouse_engine::contract::{KindRef, RemovalPolicy};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{outline::outline, owner::Owner};
use crate::{labels, object::ObjectRef, pipeline::applied_mark::mark};

/// Adds the metadata to a child's body and returns the body's mark: its digest, and the outline of its fields.
pub(super) fn add_metadata(
    owner: &Owner<'_>,
    body: &mut Value,
    kind: &KindRef,
    name: &ObjectRef,
    on_removal: RemovalPolicy,
) -> String {
    let metadata = &mut body["metadata"];
    if !name.namespace.is_empty() {
        metadata["namespace"] = json!(&*name.namespace);
    }
    for (label, value) in [(labels::PLUGIN, &*owner.manifest.name), (labels::OWNER_UID, &*owner.object.uid)] {
        metadata["labels"][label] = json!(value);
    }
    if owner.manifest.decorates.is_some() {
        metadata["labels"][labels::DECORATOR] = json!(&*owner.manifest.name);
    }
    if metadata["labels"].get(labels::MANAGED_BY).is_none() {
        metadata["labels"][labels::MANAGED_BY] = json!(labels::HOST);
    }
    metadata["annotations"][labels::IDENTITY] = json!(labels::identity(&kind.kind, kind.group(), name));
    match on_removal {
        RemovalPolicy::Delete => metadata["ownerReferences"] = json!([owner_reference(owner)]),
        RemovalPolicy::Keep => metadata["annotations"][labels::ON_REMOVAL] = json!(labels::KEEP),
    }
    // Objects in `serde_json` are sorted by key, so the digest does not depend on the order in the plugin's answer.
    let hash = Sha256::digest(body.to_string().as_bytes());
    // Eight bytes tell the bodies of one child apart, and every child has to carry them.
    let digest = format!("{:016x}", u64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()));
    let mark = mark(&digest, &outline(body));
    body["metadata"]["annotations"][labels::APPLIED] = json!(mark);
    mark
}

fn owner_reference(owner: &Owner<'_>) -> Value {
    json!({
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.kind,
        "name": &*owner.object.name.name,
        "uid": &*owner.object.uid,
        "controller": true,
        // As controller-runtime sets it: a foreground deletion of the owner waits for the child.
        "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{Child, RemovalPolicy};
    use serde_json::json;

    use super::{
        super::{Refusal, sample::*},
        *,
    };

    #[test]
    fn adds_namespace_labels_and_owner_reference() -> Result<(), Refusal> {
        let mut given = child(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app":"x"}},
                "data":{"kept":"1","none":null,"others":"2"},"status":{"a":1}}"#,
        );
        given.unmanaged_fields.push("/data/others".to_owned());
        let children = checked("ns", vec![given])?;
        let body = &children[0].body;
        assert_eq!(body["metadata"]["namespace"], "ns");
        assert_eq!(
            body["metadata"]["labels"],
            json!({
                "app": "x", "app.kubernetes.io/managed-by": "pilothouse", "pilothouse.dev/plugin": "web",
                "pilothouse.dev/owner-uid": "u-1",
            })
        );
        assert_eq!(
            body["metadata"]["ownerReferences"],
            json!([{
                "apiVersion": "example.com/v1", "kind": "Web", "name": "shop", "uid": "u-1", "controller": true,
                "blockOwnerDeletion": true,
            }])
        );
        assert_eq!(body["metadata"]["annotations"][labels::APPLIED], children[0].digest);
        assert_eq!(body["data"], json!({"kept": "1"}), "nulls and others' fields are not applied");
        assert_eq!(body.get("status"), None, "a child's status is its own controller's");
        Ok(())
    }

    #[test]
    fn the_digest_depends_on_the_content_but_not_on_its_order() -> Result<(), Refusal> {
        let digest = |body: &str| Ok(checked("ns", vec![child(body)])?[0].digest.clone());
        let one = digest(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}"#)?;
        let same =
            digest(r#"{"data":{"y":"2","x":"1"},"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#)?;
        let other = digest(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}"#)?;
        assert_eq!(one, same);
        assert_ne!(one, other);
        Ok(())
    }

    #[test]
    fn a_child_to_keep_has_no_owner_reference() -> Result<(), Refusal> {
        let kept = Child { on_removal: RemovalPolicy::Keep, ..child(&config_map("")) };
        let children = checked("ns", vec![kept])?;
        assert_eq!(children[0].body["metadata"].get("ownerReferences"), None);
        assert_eq!(children[0].body["metadata"]["annotations"][labels::ON_REMOVAL], labels::KEEP);
        Ok(())
    }
}
