//! The handover of fields that a plugin gives up, such as the replicas of a Deployment that gets an autoscaler. If the plugin
//! simply stopped applying a field, server-side apply would remove it and its default would apply. So another field manager first
//! applies the live value; whoever sets the field next takes it over from there. Pure.

use serde_json::{Value, json};

use crate::{labels, object::annotation, pipeline::check::DesiredChild, schema::pointer_keys};

/// The body to apply as the other field manager before the child itself; none if no field is given up. Fields inside of lists are
/// not handed over.
pub fn handover(child: &DesiredChild, live: &Value) -> Option<Value> {
    // The fields in the annotation of the live child were handed over by an earlier apply. To apply their cached values again could
    // undo a change of the manager that owns them.
    let left: Vec<_> = annotation(live, labels::UNMANAGED).unwrap_or_default().split(' ').collect();
    let mut fields = json!({});
    for pointer in child.unmanaged.iter().filter(|pointer| !left.contains(&pointer.as_str())) {
        put(&mut fields, pointer, live);
    }
    let any = fields.as_object().is_some_and(|fields| !fields.is_empty());
    any.then(|| {
        fields["apiVersion"] = json!(child.kind.api_version);
        fields["kind"] = json!(child.kind.kind);
        fields["metadata"]["name"] = json!(&*child.name.name);
        // As in any update: the apply fails if the child was replaced by another object of its name.
        fields["metadata"]["uid"] = live["metadata"]["uid"].clone();
        fields
    })
}

/// Copies the live value of a field to the same place in `fields`.
fn put(fields: &mut Value, pointer: &str, live: &Value) {
    let (mut from, mut to) = (live, fields);
    let keys: Vec<_> = pointer_keys(pointer).collect();
    let is_there = keys.iter().try_fold(live, |at, key| at.as_object()?.get(key)).is_some();
    if !is_there {
        return;
    }
    for key in keys {
        (from, to) = (&from[&key], &mut to[&key]);
    }
    *to = from.clone();
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{Handling, ImmutablePolicy, KindRef};

    use super::*;

    fn child(unmanaged: &[&str]) -> DesiredChild {
        DesiredChild {
            kind: KindRef::new("apps/v1", "Deployment"),
            name: crate::object::ObjectRef::new("ns", "web"),
            body: json!({}),
            digest: "f".to_owned(),
            handling: Handling::Apply,
            after: Vec::new(),
            order: 0,
            on_immutable: ImmutablePolicy::Fail,
            unmanaged: unmanaged.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn live_values_of_given_up_fields_are_handed_over() {
        let live = |left: &str| {
            json!({
                "metadata": {"uid": "u", "annotations": {labels::UNMANAGED: left}},
                "spec": {"replicas": 7, "a/b": {"c": 1}, "list": [1]},
            })
        };
        let whole = |spec: Value| {
            let metadata = json!({"name": "web", "uid": "u"});
            Some(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}))
        };
        let cases: [(&[&str], &str, Option<Value>); 6] = [
            (&["/spec/replicas"], "", whole(json!({"replicas": 7}))),
            (&["/spec/replicas"], "/spec/replicas", None),
            (&["/spec/replicas", "/spec/a~1b/c"], "/spec/replicas", whole(json!({"a/b": {"c": 1}}))),
            (&["/spec/paused"], "", None),
            (&["/spec/list/0"], "", None),
            (&[], "", None),
        ];
        for (unmanaged, left, expected) in cases {
            assert_eq!(handover(&child(unmanaged), &live(left)), expected, "{unmanaged:?}, left before: {left}");
        }
    }
}
