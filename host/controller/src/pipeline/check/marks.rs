//! The marks that make a child its object's: namespace, labels, owner reference, and the fingerprint of all that.

use pilothouse_engine::contract::RemovalPolicy;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::child::Owner;
use crate::labels;

impl Owner<'_> {
    /// Adds namespace, owner reference, labels and fingerprint.
    pub(super) fn own(&self, body: &mut Value, namespace: &str, on_removal: RemovalPolicy) -> String {
        if !namespace.is_empty() {
            body["metadata"]["namespace"] = json!(namespace);
        }
        let marks = [(labels::PLUGIN, self.manifest.name.as_str()), (labels::OWNER_UID, &self.object.uid)];
        for (label, value) in marks {
            body["metadata"]["labels"][label] = json!(value);
        }
        if body["metadata"]["labels"].get(labels::MANAGED_BY).is_none() {
            body["metadata"]["labels"][labels::MANAGED_BY] = json!(labels::HOST);
        }
        match on_removal {
            RemovalPolicy::Delete => body["metadata"]["ownerReferences"] = json!([self.owner_reference()]),
            RemovalPolicy::Keep => body["metadata"]["annotations"][labels::ON_REMOVAL] = json!(labels::KEEP),
        }
        let digest = Sha256::digest(body.to_string().as_bytes());
        let fingerprint: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        body["metadata"]["annotations"][labels::APPLIED] = json!(fingerprint);
        fingerprint
    }

    fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "name": &*self.object.name.name,
            "uid": &*self.object.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
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
    fn completes_what_a_plugin_need_not_say() -> Result<(), Refusal> {
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
        assert_eq!(body["metadata"]["annotations"][labels::APPLIED], children[0].fingerprint);
        assert_eq!(body["data"], json!({"kept": "1"}), "nulls and others' fields are not applied");
        assert_eq!(body.get("status"), None, "a child's status is its own controller's");
        Ok(())
    }

    #[test]
    fn the_fingerprint_follows_the_content_and_not_its_order() -> Result<(), Refusal> {
        let fingerprint = |body: &str| Ok(checked("ns", vec![child(body)])?[0].fingerprint.clone());
        let one =
            fingerprint(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}"#)?;
        let same =
            fingerprint(r#"{"data":{"y":"2","x":"1"},"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#)?;
        let other = fingerprint(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}"#)?;
        assert_eq!(one, same);
        assert_ne!(one, other);
        Ok(())
    }

    #[test]
    fn a_child_to_keep_has_no_owner_for_garbage_collection() -> Result<(), Refusal> {
        let kept = Child { on_removal: RemovalPolicy::Keep, ..child(&config_map("")) };
        let children = checked("ns", vec![kept])?;
        assert_eq!(children[0].body["metadata"].get("ownerReferences"), None);
        assert_eq!(children[0].body["metadata"]["annotations"][labels::ON_REMOVAL], labels::KEEP);
        Ok(())
    }
}
