//! What is in a namespace, without what is different each time: the state that two ways to the same end must share.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;
use pilothouse_tests::cluster::{Namespace, condition};
use serde_json::{Value, json};

/// The kinds that the tests' plugins make children of.
const CHILD_KINDS: [&str; 5] = ["ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment"];

/// What the cluster itself puts into every namespace, and the host's record of kinds.
const OF_NO_OBJECT: [&str; 3] = ["ConfigMap/kube-root-ca.crt", "ServiceAccount/default", "ConfigMap/pilothouse-kinds"];

/// An object and everything that could be its child.
#[derive(Clone, Default, PartialEq)]
pub struct State {
    /// Its spec, status and finalizers, and whether the status is about the spec; none if it is gone.
    pub object: Option<Value>,
    /// Whatever else is there, by kind and name: whoever made it, whoever owns it.
    pub children: BTreeMap<String, Value>,
}

impl State {
    /// The state of a namespace around one object.
    pub async fn of(namespace: &Namespace, kind: &str, name: &str) -> Result<Self> {
        let object = namespace.get(kind, name).await?;
        let uid = object.as_ref().map(|object| object["metadata"]["uid"].clone()).unwrap_or_default();
        let same =
            |value: Value| alike(value, &[(&namespace.name, "NAMESPACE"), (uid.as_str().unwrap_or("no UID"), "UID")]);
        let mut children = BTreeMap::new();
        for kind in CHILD_KINDS {
            for mut child in namespace.list(kind).await? {
                child["metadata"]["uid"].take();
                let key = format!("{kind}/{}", child["metadata"]["name"].as_str().unwrap_or_default());
                if !OF_NO_OBJECT.contains(&key.as_str()) {
                    children.insert(key, same(child)?);
                }
            }
        }
        let told = |object: Value| {
            let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let finalizers = &object["metadata"]["finalizers"];
            same(json!({
                "spec": object["spec"], "status": object["status"], "finalizers": finalizers, "current": current,
            }))
        };
        Ok(Self { object: object.map(told).transpose()?, children })
    }

    /// Kinds and names of what is there.
    pub fn names(&self) -> BTreeSet<&str> {
        self.children.keys().map(String::as_str).collect()
    }

    /// Whether the host says of the object as it is now that it is ready (`True`) or not (`False`).
    pub fn is_ready(&self, status: &str) -> bool {
        let said = |object: &Value| object["current"] == true && condition(object, "Ready")["status"] == status;
        self.object.as_ref().is_some_and(said)
    }
}

impl fmt::Debug for State {
    /// As JSON, which is shorter than what serde_json makes of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the object: {}", self.object.as_ref().unwrap_or(&Value::Null))?;
        self.children.iter().try_for_each(|(name, child)| writeln!(f, "{name}: {child}"))
    }
}

/// A value without times and versions, and with words in the place of names that are different each time.
pub fn alike(mut value: Value, words: &[(&str, &str)]) -> Result<Value> {
    forget(&mut value);
    let text = words.iter().fold(value.to_string(), |text, (from, to)| text.replace(from, to));
    Ok(serde_json::from_str(&text)?)
}

/// What the API server decides, and a fingerprint that has a UID in it.
const FORGOTTEN: [&str; 9] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "pilothouse.dev/applied",
];

fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !FORGOTTEN.contains(&field.as_str()));
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}
