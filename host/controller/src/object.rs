//! Objects in the caches: the compact JSON text and the few fields that the host itself needs. Fields that nobody reads are left
//! out. Never fails on a malformed field, because any object that the API server serves must be cached.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Resource,
    api::{ApiResource, ObjectMeta},
};
use pilothouse_engine::{Fingerprint, contract::KindRef};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    field_owners::is_patched,
    label_set::LabelSet,
    labels,
    object_text::{ObjectText, TextBuilder},
    raw_json::{RawFields, RawKey, push_field, raw_fields},
    schema::pointer_keys,
};

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The namespace and name of an object. The kind is known from the context.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// A reference to an object; `namespace` is empty for a cluster-scoped one.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectRef {
    /// `namespace/name`, or `name` alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// An object in a message: `Deployment 'web'`.
pub fn describe(kind: &KindRef, name: &ObjectRef) -> String {
    format!("{} '{}'", kind.kind, name.name)
}

/// The value of an annotation of an object in JSON.
pub fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// The owner reference that has `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRef {
    /// Group and version of the owner.
    pub api_version: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner.
    pub name: Box<str>,
    /// UID of the owner.
    pub uid: Box<str>,
}

/// A cached object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its namespace and name.
    pub name: ObjectRef,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Box<str>,
    /// `metadata.generation`; 0 if the kind has none.
    pub generation: i64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Box<str>>,
    /// Its controller.
    pub controller: Option<ControllerRef>,
    /// `metadata.labels`.
    pub labels: LabelSet,
    /// Whether its annotation [`labels::IDENTITY`] identifies this object. A copy has the annotation of its original.
    pub has_own_identity: bool,
    /// Whether patches of the host own fields of it, beside those that its applies own; see `field_owners.rs`.
    pub is_patched: bool,
    /// The whole object as compact JSON, without `metadata.managedFields` and kubectl's last-applied annotation.
    pub text: ObjectText,
}

impl Object {
    /// The UID of its owner: the controller, or without one, the object that the host's label names. The label counts only together
    /// with the object's own identity, because users copy children, and controllers copy labels (of a Service to its Endpoints).
    pub fn owner_uid(&self) -> Option<&str> {
        let label = || self.labels.get(labels::OWNER_UID).filter(|_| self.has_own_identity);
        self.controller.as_ref().map_or_else(label, |owner| Some(&*owner.uid))
    }

    /// The fingerprint of this state of this object.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&(&self.uid, &self.resource_version))
    }

    /// The same object with this text, which says the same.
    pub(crate) fn with_text(&self, text: ObjectText) -> Self {
        // Not `clone`, which would copy the text that is left.
        let Self { name, uid, resource_version, generation, deleting, finalizers, controller, labels, .. } = self;
        Self {
            name: name.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            generation: *generation,
            deleting: *deleting,
            finalizers: finalizers.clone(),
            controller: controller.clone(),
            labels: labels.clone(),
            has_own_identity: self.has_own_identity,
            is_patched: self.is_patched,
            text,
        }
    }

    /// The text of its status.
    pub fn status_text(&self) -> Option<Cow<'_, str>> {
        self.text.field("status")
    }

    /// Its status; empty if there is none or it cannot be read.
    pub fn status(&self) -> Map<String, Value> {
        self.status_text().and_then(|status| serde_json::from_str(&status).ok()).unwrap_or_default()
    }

    /// Whether its status was reported for its present generation.
    pub fn is_observed(&self) -> bool {
        self.status().get("observedGeneration").and_then(Value::as_i64) == Some(self.generation)
    }

    /// Whether it stays when it is no longer wanted.
    pub fn is_kept(&self) -> bool {
        self.annotation(labels::ON_REMOVAL).is_some_and(|value| value == labels::KEEP)
    }

    /// Its place in the order of its owner's children; 0 if it waits for no other.
    pub fn order(&self) -> u32 {
        self.annotation(labels::ORDER).and_then(|place| place.parse().ok()).unwrap_or_default()
    }

    /// The string at a JSON pointer; none if there is no string.
    pub fn text_at(&self, pointer: &str) -> Option<String> {
        self.value_at(pointer)?.as_str().map(str::to_owned)
    }

    /// The number at a JSON pointer; none if there is no whole one, or a negative one.
    pub fn number_at(&self, pointer: &str) -> Option<u64> {
        self.value_at(pointer)?.as_u64()
    }

    /// The value at a JSON pointer, however deep the values beside it are: a user may nest them more deeply than a parser goes.
    fn value_at(&self, pointer: &str) -> Option<Value> {
        let whole = self.text.read();
        let mut text: &str = &whole;
        for key in pointer_keys(pointer) {
            text = match raw_fields(text) {
                Some(fields) => fields.into_iter().find(|(name, _)| *name == key)?.1.get(),
                None => serde_json::from_str::<Vec<&RawValue>>(text).ok()?.get(key.parse::<usize>().ok()?)?.get(),
            };
        }
        serde_json::from_str(text).ok()
    }

    /// Its annotations. Those that are not all strings count as none.
    pub fn annotations(&self) -> BTreeMap<Box<str>, Box<str>> {
        #[derive(Default, Deserialize)]
        struct Annotated {
            #[serde(default)]
            annotations: BTreeMap<Box<str>, Box<str>>,
        }
        self.metadata::<Annotated>().unwrap_or_default().annotations
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        // The search in the text spares most objects the parsing.
        if !self.text.contains(key) {
            return None;
        }
        self.annotations().remove(key).map(String::from)
    }

    /// Whether this is the last state of a deleted object, as the response to the delete shows it: it is terminating, has no
    /// finalizer and no grace period.
    pub fn is_over(&self) -> bool {
        self.finalizers.is_empty() && self.is_deleting_at_once()
    }

    /// Whether it is being deleted without a grace period.
    pub fn is_deleting_at_once(&self) -> bool {
        #[derive(Deserialize)]
        struct Grace {
            #[serde(rename = "deletionGracePeriodSeconds")]
            seconds: Option<i64>,
        }
        self.deleting && self.metadata::<Grace>().and_then(|grace| grace.seconds) == Some(0)
    }

    /// Some of its metadata; none if it cannot be read.
    fn metadata<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.text.field("metadata")?).ok()
    }

    /// Whether this state is newer than the resource version `other`. Versions that are not numbers cannot be compared; the state
    /// that arrives later counts as newer then.
    pub fn is_newer_than(&self, other: &str) -> bool {
        match (self.resource_version.parse::<u64>(), other.parse::<u64>()) {
            (Ok(mine), Ok(theirs)) => mine > theirs,
            _ => *self.resource_version != *other,
        }
    }
}

/// An object from the API server before it is cached.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Only the fields that [`Resource`] needs are set.
    metadata: ObjectMeta,
    fields: Fields,
    /// The JSON text after kind and version. The items of a list lack those two, so they are added later.
    rest: TextBuilder,
}

impl Incoming {
    /// The object to cache, with the kind of `resource`.
    pub fn into_object(self, resource: &ApiResource) -> Object {
        let Self { metadata, fields, rest } = self;
        let Fields { deleting, finalizers, controller, labels, identity, is_patched } = fields;
        let text = rest.finish([("apiVersion", &resource.api_version), ("kind", &resource.kind)]);
        let boxed = |text: Option<String>| text.unwrap_or_default().into_boxed_str();
        let name = ObjectRef::new(&metadata.namespace.unwrap_or_default(), &metadata.name.unwrap_or_default());
        let own = || labels::identity(&resource.kind, &resource.group, &name);
        Object {
            has_own_identity: identity.is_some_and(|identity| *identity == *own()),
            name,
            uid: boxed(metadata.uid),
            resource_version: boxed(metadata.resource_version),
            generation: metadata.generation.unwrap_or_default(),
            deleting,
            finalizers,
            controller,
            labels,
            is_patched,
            text,
        }
    }
}

impl Resource for Incoming {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        (&resource.kind).into()
    }
    fn group(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        (&resource.group).into()
    }
    fn version(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        (&resource.version).into()
    }
    fn api_version(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        (&resource.api_version).into()
    }
    fn plural(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        (&resource.plural).into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for Incoming {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Incoming;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Kubernetes object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Incoming, A::Error> {
                let (mut metadata, mut others) = (RawFields::default(), RawFields::default());
                while let Some(RawKey(key)) = map.next_key()? {
                    match &*key {
                        "apiVersion" | "kind" => drop(map.next_value::<IgnoredAny>()?),
                        "metadata" => metadata = map.next_value()?,
                        _ => others.0.push((key, map.next_value()?)),
                    }
                }
                // They are often larger than the rest of the object.
                let owners = metadata.remove("managedFields");
                let mut incoming = Incoming::of(&metadata, &others);
                incoming.fields.is_patched = owners.is_some_and(is_patched);
                Ok(incoming)
            }
        }
        deserializer.deserialize_map(Parts)
    }
}

impl Incoming {
    /// An object of which only the metadata is known.
    ///
    /// # Errors
    /// If it cannot be written as JSON and read again.
    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Result<Self, serde_json::Error> {
        let metadata = serde_json::to_string(metadata)?;
        Ok(Self::of(&serde_json::from_str(&metadata)?, &RawFields::default()))
    }

    fn of(metadata: &RawFields<'_>, others: &RawFields<'_>) -> Self {
        let length = metadata.length() + others.length() + r#","metadata":{}"#.len();
        let (mut known, mut fields) = (ObjectMeta::default(), Fields::default());
        let mut rest = TextBuilder::with_capacity(length);
        rest.push("metadata", |text| {
            text.push('{');
            for (key, value) in &metadata.0 {
                let shortened = without_last_applied(key, value);
                push_field(text, key, shortened.as_deref().unwrap_or(value.get()));
                fields.read(&mut known, key, value);
            }
            text.push('}');
        });
        others.0.iter().for_each(|(key, value)| rest.push(key, |text| text.push_str(value.get())));
        Self { metadata: known, fields, rest }
    }
}

impl Fields {
    /// Reads a field of the metadata if the host needs it. A field of an unexpected type is ignored.
    fn read(&mut self, metadata: &mut ObjectMeta, key: &str, value: &RawValue) {
        match key {
            "name" => metadata.name = read(value),
            "namespace" => metadata.namespace = read(value),
            "uid" => metadata.uid = read(value),
            "resourceVersion" => metadata.resource_version = read(value),
            "generation" => metadata.generation = read(value),
            "deletionTimestamp" => self.deleting = read::<Time>(value).is_some(),
            "labels" => self.labels = read_labels(value),
            // The search in the text spares most objects the parsing of their annotations.
            "annotations" if value.get().contains(labels::IDENTITY) => {
                self.identity = read::<Annotations>(value).and_then(|annotations| annotations.identity);
            }
            "finalizers" => self.finalizers = read(value).unwrap_or_default(),
            "ownerReferences" => {
                let owners = read::<Vec<OwnerReference>>(value).unwrap_or_default();
                self.controller = owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| {
                    let OwnerReference { api_version, kind, name, uid, controller: _ } = owner;
                    ControllerRef { api_version, kind, name, uid }
                });
            }
            _ => {}
        }
    }
}

/// The annotations without kubectl's copy of the object; none if they do not have it.
fn without_last_applied(key: &str, value: &RawValue) -> Option<String> {
    let has = key == "annotations" && value.get().contains(LAST_APPLIED);
    let mut annotations = has.then(|| read::<BTreeMap<String, String>>(value).unwrap_or_default())?;
    annotations.remove(LAST_APPLIED);
    Some(serde_json::to_string(&annotations).unwrap_or_else(|_| "{}".to_owned()))
}

/// The fields of the metadata that the host needs, besides those in [`ObjectMeta`].
#[derive(Clone, Debug, Default)]
struct Fields {
    deleting: bool,
    finalizers: Vec<Box<str>>,
    controller: Option<ControllerRef>,
    labels: LabelSet,
    identity: Option<Box<str>>,
    is_patched: bool,
}

/// The annotations that the host needs of every object.
#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "pilothouse.dev/identity")]
    identity: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    #[serde(default)]
    api_version: Box<str>,
    #[serde(default)]
    kind: Box<str>,
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    controller: Option<bool>,
}

/// Reads labels. What is no text is left out.
fn read_labels(value: &RawValue) -> LabelSet {
    let labels = raw_fields(value.get()).unwrap_or_default();
    labels.iter().filter_map(|(key, value)| Some((key, read::<RawKey<'_>>(value)?.0))).collect()
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
impl Object {
    /// An object of that name with nothing in it, for tests to change.
    pub(crate) fn sample(namespace: &str, name: &str) -> Self {
        Self {
            name: ObjectRef::new(namespace, name),
            uid: format!("uid-of-{name}").into(),
            resource_version: "1".into(),
            generation: 1,
            deleting: false,
            finalizers: Vec::new(),
            controller: None,
            labels: LabelSet::default(),
            has_own_identity: false,
            is_patched: false,
            text: "{}".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource() -> ApiResource {
        ApiResource {
            group: "apps".into(),
            version: "v1".into(),
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
        }
    }

    fn object(text: &str) -> serde_json::Result<Object> {
        Ok(serde_json::from_str::<Incoming>(text)?.into_object(&resource()))
    }

    #[test]
    fn a_field_is_read_beside_values_of_any_depth() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000));
        let text = format!(r#"{{"spec":{{"deep":{deep},"a/b":"by","list":[{deep},{{"n":7}}]}},"status":[]}}"#).into();
        let object = Object { text, ..Object::sample("ns", "a") };
        for (pointer, expected) in
            [("/spec/a~1b", Some("by")), ("/spec/none", None), ("/spec/list/1", None), ("/status/end", None)]
        {
            assert_eq!(object.text_at(pointer).as_deref(), expected, "{pointer}");
        }
        assert_eq!((object.number_at("/spec/list/1/n"), object.number_at("/spec/list/2/n")), (Some(7), None));
    }

    #[test]
    fn is_over_when_nothing_and_nobody_holds_it() -> serde_json::Result<()> {
        let deleted = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
        for (metadata, expected) in [
            (format!(r#"{deleted},"deletionGracePeriodSeconds":0"#), true),
            (format!(r#"{deleted},"deletionGracePeriodSeconds":30"#), false),
            (format!(r#"{deleted},"deletionGracePeriodSeconds":0,"finalizers":["a/b"]"#), false),
            (deleted.to_owned(), false),
            (r#""generation":1"#.to_owned(), false),
        ] {
            let object =
                object(&format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"7",{metadata}}}}}"#))?;
            assert_eq!(object.is_over(), expected, "{metadata}");
        }
        Ok(())
    }

    #[test]
    fn keeps_everything_but_what_nobody_reads() -> serde_json::Result<()> {
        let object = object(
            r#"{"metadata":{"name":"web","namespace":"shop","uid":"u1","resourceVersion":"7","generation":2,
                "labels":{"a":"b"},"managedFields":[{"manager":"m"}],
                "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","keep":"\"x\""},
                "ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1"},
                    {"apiVersion":"e/v1","kind":"B","name":"b","uid":"2","controller":true}]},
                "spec":{"replicas":3},"odd \"key\"":[1, 2]}"#,
        )?;
        let text: serde_json::Value = serde_json::from_str(&object.text.read())?;
        assert_eq!(text["apiVersion"], "apps/v1");
        assert_eq!(text["kind"], "Deployment");
        assert_eq!(text["spec"]["replicas"], 3);
        assert_eq!(text["odd \"key\""][1], 2);
        assert_eq!(text["metadata"]["annotations"], serde_json::json!({"keep": "\"x\""}));
        assert_eq!(text["metadata"].get("managedFields"), None);
        assert_eq!(object.name.to_string(), "shop/web");
        assert_eq!((object.generation, object.deleting), (2, false));
        assert_eq!(object.controller.map(|owner| owner.uid), Some("2".into()));
        assert_eq!(object.labels.get("a"), Some("b"));
        Ok(())
    }

    #[test]
    fn holds_odd_objects_without_failing() -> serde_json::Result<()> {
        for text in [
            "{}",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"name":5,"labels":"x","ownerReferences":{},"generation":"y","annotations":null}}"#,
            r#"{"kind":"Other","metadata":{"name":"a","deletionTimestamp":"not a time"}}"#,
        ] {
            let object = object(text)?;
            serde_json::from_str::<serde_json::Value>(&object.text.read())?;
        }
        Ok(())
    }

    #[test]
    fn compares_versions_as_numbers_where_they_are() -> serde_json::Result<()> {
        let nine = object(r#"{"metadata":{"resourceVersion":"9"}}"#)?;
        assert!(!nine.is_newer_than("10") && !nine.is_newer_than("9") && nine.is_newer_than("8"));
        assert!(nine.is_newer_than("abc"));
        Ok(())
    }
}
