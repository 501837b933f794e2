//! The state of a namespace without values that differ between runs, to compare two runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;
use pilothouse_tests::cluster::{Namespace, condition};
use serde_json::{Value, json};

/// The kinds that the tests' plugins make children of.
const CHILD_KINDS: [&str; 6] = ["ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "Pod"];

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

/// The states of all objects of a namespace.
pub struct States {
    /// By name. Objects of different kinds have different names.
    pub of: BTreeMap<String, State>,
    /// Whatever could be a child, and belongs to none of the objects.
    pub left_over: Vec<String>,
}

impl States {
    /// The states of all objects of some kinds. An object's own name is left out of its state, so that objects that differ
    /// in nothing else have the same.
    pub async fn of(namespace: &Namespace, kinds: &[&str]) -> Result<Self> {
        let (mut of, mut owners) = (BTreeMap::new(), BTreeMap::new());
        for kind in kinds {
            for object in namespace.list(kind).await? {
                let words = Words::of(&namespace.name, Some(&object));
                owners.insert(words.uid.clone(), words.clone());
                of.insert(words.name.clone(), State { object: Some(reported(&object, &words)?), ..State::default() });
            }
        }
        let mut left_over = Vec::new();
        for (key, child) in children(namespace).await? {
            let owner = owners.get(text(&child["metadata"]["ownerReferences"][0]["uid"]));
            match owner.and_then(|words| Some((words, of.get_mut(&words.name)?))) {
                Some((words, state)) => {
                    state.children.insert(key.replace(&words.name, "NAME"), alike(child, words)?);
                }
                None => left_over.push(key),
            }
        }
        Ok(Self { of, left_over })
    }
}

impl State {
    /// The state of a namespace around one object.
    pub async fn of(namespace: &Namespace, kind: &str, name: &str) -> Result<Self> {
        let object = namespace.get(kind, name).await?;
        // A name that is the same each time stays as it is.
        let words = Words { name: String::new(), ..Words::of(&namespace.name, object.as_ref()) };
        let alike = |(key, child)| Ok((key, alike(child, &words)?));
        let children = children(namespace).await?.into_iter().map(alike).collect::<Result<_>>()?;
        Ok(Self { object: object.map(|object| reported(&object, &words)).transpose()?, children })
    }

    /// Kinds and names of what is there.
    pub fn names(&self) -> BTreeSet<&str> {
        self.children.keys().map(String::as_str).collect()
    }

    /// Whether the host says of the object as it is now that it is ready.
    pub fn is_ready(&self) -> bool {
        let said = |object: &Value| object["current"] == true && condition(object, "Ready")["status"] == "True";
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

/// Words that are different each time.
#[derive(Clone)]
struct Words {
    namespace: String,
    name: String,
    uid: String,
}

impl Words {
    fn of(namespace: &str, object: Option<&Value>) -> Self {
        let of = |field: &str| object.map_or("", |object| text(&object["metadata"][field])).to_owned();
        Self { namespace: namespace.to_owned(), name: of("name"), uid: of("uid") }
    }
}

/// Everything in a namespace that could be a child, by kind and name.
async fn children(namespace: &Namespace) -> Result<BTreeMap<String, Value>> {
    let mut children = BTreeMap::new();
    for kind in CHILD_KINDS {
        for mut child in namespace.list(kind).await? {
            child["metadata"]["uid"].take();
            children.insert(format!("{kind}/{}", text(&child["metadata"]["name"])), child);
        }
    }
    children.retain(|key, _| !OF_NO_OBJECT.contains(&key.as_str()));
    Ok(children)
}

/// What an object says: what is wanted, what is reported, and whether that is about what is wanted.
fn reported(object: &Value, words: &Words) -> Result<Value> {
    let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let finalizers = &object["metadata"]["finalizers"];
    let reported =
        json!({"spec": object["spec"], "status": object["status"], "finalizers": finalizers, "current": current});
    alike(reported, words)
}

/// A value without times and versions, and with other words in the place of those that are different each time.
fn alike(mut value: Value, words: &Words) -> Result<Value> {
    forget(&mut value);
    let Words { namespace, name, uid } = words;
    let words = [(uid, "UID"), (namespace, "NAMESPACE"), (name, "NAME")];
    let known = words.into_iter().filter(|(word, _)| !word.is_empty());
    let text = known.fold(value.to_string(), |text, (word, other)| text.replace(word, other));
    Ok(serde_json::from_str(&text)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the API server and clocks decide, a fingerprint that has a UID in it, and what tests touch.
const FORGOTTEN: [&str; 14] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "podUid",
    "startTime",
    "completionTime",
    "lastRestartTime",
    "pilothouse.dev/applied",
    "tests.pilothouse.dev/touched",
];

fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !FORGOTTEN.contains(&field.as_str()));
            fields.values_mut().for_each(forget);
            // To server-side apply, a map without entries and no map are the same.
            fields.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}
