//! The state of a namespace without values that differ between runs, to compare two runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;
use pilothouse_tests::cluster::{Namespace, condition};
use serde_json::{Value, json};

/// The kinds of the children that the tests' plugins return.
const CHILD_KINDS: [&str; 9] = [
    "ConfigMap",
    "Secret",
    "Service",
    "ServiceAccount",
    "Deployment",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Pod",
    "PodDisruptionBudget",
];

/// Objects that the cluster creates in every namespace, and the host's record of kinds.
const OF_NO_OBJECT: [&str; 3] = ["ConfigMap/kube-root-ca.crt", "ServiceAccount/default", "ConfigMap/pilothouse-kinds"];

/// An object and everything that could be its child.
#[derive(Clone, Default, PartialEq)]
pub struct State {
    /// Its spec, status and finalizers, and whether the status is about the present spec; none if it does not exist.
    pub object: Option<Value>,
    /// All other objects of the child kinds, by kind and name, whoever created or owns them.
    pub children: BTreeMap<String, Value>,
}

/// The states of all objects of a namespace.
pub struct States {
    /// By name. Objects of different kinds have different names.
    pub of: BTreeMap<String, State>,
    /// Objects of the child kinds that belong to none of the objects.
    pub left_over: Vec<String>,
}

impl States {
    /// The states of all objects of these kinds. An object's name is replaced in its state, so that two objects that differ in
    /// nothing else have equal states.
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
                    state.children.insert(key.replace(&words.name, "NAME"), comparable(child, words)?);
                }
                None => left_over.push(key),
            }
        }
        Ok(Self { of, left_over })
    }
}

impl State {
    /// The state of a namespace with one object.
    pub async fn of(namespace: &Namespace, kind: &str, name: &str) -> Result<Self> {
        let object = namespace.get(kind, name).await?;
        // The name is the same in each run, so it is not replaced.
        let words = Words { name: String::new(), ..Words::of(&namespace.name, object.as_ref()) };
        let comparable = |(key, child)| Ok((key, comparable(child, &words)?));
        let children = children(namespace).await?.into_iter().map(comparable).collect::<Result<_>>()?;
        Ok(Self { object: object.map(|object| reported(&object, &words)).transpose()?, children })
    }

    /// The kinds and names of the children.
    pub fn names(&self) -> BTreeSet<&str> {
        self.children.keys().map(String::as_str).collect()
    }

    /// Whether the object is reported as ready in its present generation.
    pub fn is_ready(&self) -> bool {
        let said = |object: &Value| object["current"] == true && condition(object, "Ready")["status"] == "True";
        self.object.as_ref().is_some_and(said)
    }
}

impl fmt::Debug for State {
    /// As JSON, which is shorter than the debug output of a `Value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the object: {}", self.object.as_ref().unwrap_or(&Value::Null))?;
        self.children.iter().try_for_each(|(name, child)| writeln!(f, "{name}: {child}"))
    }
}

/// Words that differ between runs.
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

/// All objects of the child kinds in a namespace, by kind and name.
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

/// The comparable part of an object: its spec, status and finalizers, and whether the status is about the present spec.
fn reported(object: &Value, words: &Words) -> Result<Value> {
    let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let finalizers = &object["metadata"]["finalizers"];
    let reported =
        json!({"spec": object["spec"], "status": object["status"], "finalizers": finalizers, "current": current});
    comparable(reported, words)
}

/// A value without times and versions, and with placeholders for the words that differ between runs.
fn comparable(mut value: Value, words: &Words) -> Result<Value> {
    remove_ignored(&mut value);
    let Words { namespace, name, uid } = words;
    let words = [(uid, "UID"), (namespace, "NAMESPACE"), (name, "NAME")];
    let known = words.into_iter().filter(|(word, _)| !word.is_empty());
    let text = known.fold(value.to_string(), |text, (word, other)| text.replace(word, other));
    Ok(serde_json::from_str(&text)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Fields that the API server or a clock sets, the digest, which covers a UID, the version that wrote a child, the UID of a model, and the
/// annotation of a touch.
const IGNORED_FIELDS: [&str; 20] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "podUid",
    "observedModel",
    "startTime",
    "startingSince",
    "runningSince",
    "completionTime",
    "lastRestartTime",
    "lastFailureTime",
    "lastUpdateTime",
    "pilothouse.dev/applied",
    "pilothouse.dev/plugin-version",
    "tests.pilothouse.dev/touched",
];

fn remove_ignored(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !IGNORED_FIELDS.contains(&field.as_str()));
            fields.values_mut().for_each(remove_ignored);
            // Server-side apply does not distinguish an empty map from a missing one.
            fields.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
        }
        Value::Array(items) => items.iter_mut().for_each(remove_ignored),
        _ => {}
    }
}
