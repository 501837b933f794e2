//! The schema of `metadata`, which all kinds share.

use std::sync::{Arc, LazyLock};

use super::{Fields, List, ListKey, Node, Scalar, Shape};

static METADATA: LazyLock<Arc<Node>> = LazyLock::new(build);

/// The schema of `metadata`.
pub(super) fn metadata() -> Arc<Node> {
    METADATA.clone()
}

fn build() -> Arc<Node> {
    let text = Node::scalar(Scalar::Text);
    let time = Node::scalar(Scalar::Time);
    let number = Node::scalar(Scalar::Int64);
    let boolean = Node::scalar(Scalar::Boolean);
    // Fields that the server always shows.
    let always = Arc::new(Node {
        shape: Shape::Scalar(Scalar::Text),
        default: Some(serde_json::Value::String(String::new())),
        ..Node::default()
    });
    let mut owner = Node::object(vec![
        ("apiVersion", always.clone()),
        ("blockOwnerDeletion", boolean.clone()),
        ("controller", boolean),
        ("kind", always.clone()),
        ("name", always.clone()),
        ("uid", always),
    ]);
    if let Shape::Object(fields) = &mut owner.shape {
        fields.atomic = true;
    }
    let managed = Node::object(vec![
        ("apiVersion", text.clone()),
        ("fieldsType", text.clone()),
        ("fieldsV1", Arc::new(Node::default())),
        ("manager", text.clone()),
        ("operation", text.clone()),
        ("subresource", text.clone()),
        ("time", time.clone()),
    ]);
    let by_uid =
        List::Map(vec![ListKey { name: "uid".into(), default: Some(serde_json::Value::String(String::new())) }]);
    let mut metadata = Node::object(vec![
        ("annotations", Node::map_of(text.clone())),
        ("creationTimestamp", time.clone()),
        ("deletionGracePeriodSeconds", number.clone()),
        ("deletionTimestamp", time),
        ("finalizers", Node::list_of(text.clone(), List::Set)),
        ("generateName", text.clone()),
        ("generation", number),
        ("labels", Node::map_of(text.clone())),
        ("managedFields", Node::list_of(Arc::new(managed), List::Atomic)),
        ("name", text.clone()),
        ("namespace", text.clone()),
        ("ownerReferences", Node::list_of(Arc::new(owner), by_uid)),
        ("resourceVersion", text.clone()),
        ("selfLink", text.clone()),
        ("uid", text),
    ]);
    metadata.default = Some(serde_json::Value::Object(serde_json::Map::new()));
    Arc::new(metadata)
}

/// Puts `apiVersion`, `kind` and `metadata` into the fields of a kind.
pub(super) fn complete(fields: &mut Fields) {
    fields.named.retain(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&&**name));
    for (name, node) in
        [("apiVersion", Node::scalar(Scalar::Text)), ("kind", Node::scalar(Scalar::Text)), ("metadata", metadata())]
    {
        fields.named.push((name.into(), node));
    }
    fields.sort();
}
