//! Stage 4: what the plugin may do, and what it need not say. Refuses undeclared kinds, foreign namespaces, duplicates,
//! broken JSON; completes namespace, owner reference and labels. Pure: takes no client and writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use pilothouse_engine::{
    Manifest,
    contract::{Child, Condition, Event, ImmutablePolicy, KindRef, Measurement, RemovalPolicy, Response, Verdict},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    cache::Object,
    labels,
    pipeline::{pointer, samples::check_samples, status::THROTTLED},
};

/// The most children one object may have.
const MAX_CHILDREN: usize = 1_000;

/// What a plugin returned, checked and completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How it went, in the plugin's words.
    pub verdict: Verdict,
    /// The children that shall exist; none leaves them as they are.
    pub children: Option<Vec<DesiredChild>>,
    /// Whether most children are removed on purpose.
    pub removes_many: bool,
    /// The status fields; none leaves them as they are.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions.
    pub conditions: Vec<Condition>,
    /// The plugin's events.
    pub events: Vec<Event>,
    /// The plugin's measurements.
    pub measurements: Vec<Measurement>,
    /// Ask again after so many seconds.
    pub requeue_after: Option<u32>,
}

/// A child as it shall be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    /// Its kind.
    pub kind: KindRef,
    /// Its name.
    pub name: String,
    /// Its namespace, empty for a cluster-scoped kind.
    pub namespace: String,
    /// The complete body to apply, with owner reference, labels and fingerprint.
    pub body: Value,
    /// Fingerprint of the body, also in its annotation [`labels::APPLIED`].
    pub fingerprint: String,
    /// What to do when a field cannot change.
    pub on_immutable: ImmutablePolicy,
    /// JSON pointers of the fields that are left to others; they are not in the body.
    pub unmanaged: Vec<String>,
}

/// Why a response is refused as a whole. Nothing of it is applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Text that should be JSON is not, or is JSON of another shape.
    #[error("the plugin returned {what} that is not valid: {why}")]
    Malformed {
        /// What it is.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// A kind that the manifest does not declare.
    #[error("the plugin returned a child of kind {0}, which its manifest does not declare")]
    UndeclaredKind(KindRef),
    /// A kind that the cluster does not have.
    #[error("the plugin returned a child of kind {0}, which is not installed in this cluster")]
    KindNotInstalled(KindRef),
    /// A child outside of the object's namespace.
    #[error("the plugin returned {child} in namespace '{namespace}', but children live in their object's namespace")]
    ForeignNamespace {
        /// The child.
        child: String,
        /// Where it would be.
        namespace: String,
    },
    /// A cluster-scoped child of an object in a namespace: owner references cannot cross that way.
    #[error("the plugin returned {0}, which is cluster-scoped and cannot be owned by an object in a namespace")]
    ClusterScoped(String),
    /// The same child twice.
    #[error("the plugin returned {0} twice")]
    Duplicate(String),
    /// More children than an object may have.
    #[error("the plugin returned {0} children; an object has at most {MAX_CHILDREN}")]
    TooMany(usize),
    /// A sample of no metric that the manifest declares.
    #[error("the plugin returned {0}")]
    Measurement(String),
    /// A condition that is the host's or has no name or reason.
    #[error("the plugin returned a condition that is not allowed: {0}")]
    Condition(String),
}

impl Refusal {
    /// One CamelCase word for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } | Self::Measurement(_) | Self::Condition(_) => "PluginContractViolated",
            Self::UndeclaredKind(_) => "ChildKindNotDeclared",
            Self::KindNotInstalled(_) => "ChildKindNotInstalled",
            Self::ForeignNamespace { .. } | Self::ClusterScoped(_) => "ChildScopeNotAllowed",
            Self::Duplicate(_) => "DuplicateChild",
            Self::TooMany(_) => "TooManyChildren",
        }
    }
}

/// What the check needs to know of the cluster.
pub trait Scopes {
    /// Whether objects of a kind live in namespaces; none if the kind is not installed.
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool>;
}

/// Checks and completes a response for an object of `kind`.
///
/// # Errors
/// [`Refusal`] for the first thing that is not allowed.
pub fn check(
    manifest: &Manifest,
    kind: &KindRef,
    object: &Object,
    scopes: &dyn Scopes,
    response: Response,
) -> Result<Desired, Refusal> {
    let Response { verdict, children, removes_many, status, conditions, events, measurements, requeue_after } =
        response;
    let owner = Owner { manifest, kind, object, scopes };
    conditions.iter().try_for_each(check_condition)?;
    check_samples(manifest, &measurements).map_err(Refusal::Measurement)?;
    Ok(Desired {
        verdict,
        removes_many,
        children: children.map(|children| owner.complete_all(children)).transpose()?,
        status: status.map(|status| parse_object("a status", &status)).transpose()?.map(without_host_fields),
        conditions,
        events,
        measurements,
        requeue_after,
    })
}

struct Owner<'a> {
    manifest: &'a Manifest,
    kind: &'a KindRef,
    object: &'a Object,
    scopes: &'a dyn Scopes,
}

impl Owner<'_> {
    fn complete_all(&self, children: Vec<Child>) -> Result<Vec<DesiredChild>, Refusal> {
        if children.len() > MAX_CHILDREN {
            return Err(Refusal::TooMany(children.len()));
        }
        let mut seen = BTreeSet::new();
        let mut completed = Vec::with_capacity(children.len());
        for child in children {
            let child = self.complete(child)?;
            if !seen.insert((child.kind.clone(), child.name.clone())) {
                return Err(Refusal::Duplicate(describe(&child.kind, &child.name)));
            }
            completed.push(child);
        }
        Ok(completed)
    }

    fn complete(&self, child: Child) -> Result<DesiredChild, Refusal> {
        let Child { object, on_immutable, on_removal, unmanaged_fields } = child;
        let mut body = parse_object("a child", &object)?;
        let kind = self.declared_kind(&body)?;
        let name = text(&body, &["metadata", "name"]).filter(|name| !name.is_empty()).ok_or_else(|| {
            Refusal::Malformed { what: format!("a {kind}"), why: "it has no metadata.name".to_owned() }
        })?;
        let namespace = self.namespace(&body, &kind, &name)?;
        drop_nulls(&mut body);
        body.remove("status");
        let mut body = Value::Object(body);
        for field in &unmanaged_fields {
            pointer::remove(&mut body, field)
                .map_err(|why| Refusal::Malformed { what: format!("the unmanaged field '{field}' of {name}"), why })?;
        }
        if !unmanaged_fields.is_empty() {
            body["metadata"]["annotations"][labels::UNMANAGED] = json!(unmanaged_fields.join(" "));
        }
        let fingerprint = self.own(&mut body, &namespace, on_removal);
        Ok(DesiredChild { kind, name, namespace, body, fingerprint, on_immutable, unmanaged: unmanaged_fields })
    }

    fn declared_kind(&self, body: &Map<String, Value>) -> Result<KindRef, Refusal> {
        let field = |name| text(body, &[name]).unwrap_or_default();
        let kind = KindRef { api_version: field("apiVersion"), kind: field("kind") };
        if self.manifest.children.contains(&kind) { Ok(kind) } else { Err(Refusal::UndeclaredKind(kind)) }
    }

    fn namespace(&self, body: &Map<String, Value>, kind: &KindRef, name: &str) -> Result<String, Refusal> {
        let own = &*self.object.name.namespace;
        let namespaced = self.scopes.is_namespaced(kind).ok_or_else(|| Refusal::KindNotInstalled(kind.clone()))?;
        if !namespaced {
            let allowed = own.is_empty();
            return if allowed { Ok(String::new()) } else { Err(Refusal::ClusterScoped(describe(kind, name))) };
        }
        let asked = text(body, &["metadata", "namespace"]);
        match asked.as_deref() {
            // A cluster-scoped object says where its children live.
            Some(namespace) if own.is_empty() => Ok(namespace.to_owned()),
            None if own.is_empty() => {
                let why = "its object is cluster-scoped, so it needs a metadata.namespace".to_owned();
                Err(Refusal::Malformed { what: describe(kind, name), why })
            }
            Some(namespace) if namespace != own => {
                Err(Refusal::ForeignNamespace { child: describe(kind, name), namespace: namespace.to_owned() })
            }
            _ => Ok(own.to_owned()),
        }
    }

    /// Adds namespace, owner reference, labels and fingerprint.
    fn own(&self, body: &mut Value, namespace: &str, on_removal: RemovalPolicy) -> String {
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

/// A child in a message: `Deployment 'web'`.
pub fn describe(kind: &KindRef, name: &str) -> String {
    format!("{} '{name}'", kind.kind)
}

fn parse_object(what: &str, text: &str) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refusal::Malformed { what: what.to_owned(), why: "it is not a JSON object".to_owned() }),
        Err(error) => Err(Refusal::Malformed { what: what.to_owned(), why: error.to_string() }),
    }
}

fn text(body: &Map<String, Value>, path: &[&str]) -> Option<String> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(body, |at, key| at.get(*key)?.as_object())?;
    parent.get(*last)?.as_str().map(str::to_owned)
}

/// The host's own fields of a status are not the plugin's to write.
fn without_host_fields(mut status: Map<String, Value>) -> Map<String, Value> {
    status.remove("conditions");
    status.remove("observedGeneration");
    drop_nulls(&mut status);
    status
}

/// Server-side apply has no use for nulls: a field that is not there is not applied.
fn drop_nulls(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        match value {
            Value::Object(object) => drop_nulls(object),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_nulls),
            _ => {}
        }
    }
}

fn check_condition(condition: &Condition) -> Result<(), Refusal> {
    let Condition { condition_type, reason, .. } = condition;
    if matches!(condition_type.as_str(), "Reconciling" | "Stalled" | THROTTLED) {
        return Err(Refusal::Condition(format!("'{condition_type}' belongs to the host")));
    }
    // The API conventions' pattern for a reason; types are checked by the API server where the schema says so.
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,:.-/".contains(&b))
    };
    if !word(condition_type) || !word(reason) {
        return Err(Refusal::Condition(format!(
            "type '{condition_type}' and reason '{reason}' must be CamelCase words"
        )));
    }
    Ok(())
}

impl Scopes for BTreeMap<KindRef, crate::kinds::Installed> {
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool> {
        self.get(kind).map(|installed| installed.namespaced)
    }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::{CONTRACT_VERSION, contract::ConditionStatus};

    use super::*;
    use crate::kinds::Installed;

    fn manifest() -> Manifest {
        Manifest {
            name: "web".into(),
            version: "1.0.0".into(),
            contract: CONTRACT_VERSION.into(),
            reconciles: KindRef::new("example.com/v1", "Web"),
            children: vec![
                KindRef::new("v1", "ConfigMap"),
                KindRef::new("v1", "Namespace"),
                KindRef::new("example.com/v1", "Absent"),
            ],
            lookups: Vec::new(),
            measurements: Vec::new(),
            finalizer: None,
            finalizes: false,
        }
    }

    fn scopes() -> BTreeMap<KindRef, Installed> {
        [("ConfigMap", true), ("Namespace", false)]
            .map(|(kind, namespaced)| {
                let resource = kube::api::ApiResource {
                    group: String::new(),
                    version: "v1".into(),
                    api_version: "v1".into(),
                    kind: kind.into(),
                    plural: kind.to_lowercase(),
                };
                (KindRef::new("v1", kind), Installed { resource, namespaced, has_status: false })
            })
            .into()
    }

    fn object(namespace: &str) -> Object {
        Object { uid: "u-1".into(), ..Object::sample(namespace, "shop") }
    }

    fn child(body: &str) -> Child {
        Child {
            object: body.to_owned(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged_fields: Vec::new(),
        }
    }

    fn config_map(extra: &str) -> String {
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"{extra}}}}}"#)
    }

    fn checked(namespace: &str, children: Vec<Child>) -> Result<Vec<DesiredChild>, Refusal> {
        let response = Response { children: Some(children), ..Response::verdict(Verdict::Done) };
        let kind = KindRef::new("example.com/v1", "Web");
        let desired = check(&manifest(), &kind, &object(namespace), &scopes(), response)?;
        Ok(desired.children.unwrap_or_default())
    }

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

    #[test]
    fn refuses_what_a_plugin_may_not_do() {
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
        assert!(checked("", vec![child(namespace)]).is_ok(), "a cluster-scoped object may own cluster-scoped children");
        assert!(checked("", vec![child(&other)]).is_ok(), "and namespaced ones that say where they live");
    }

    #[test]
    fn conditions_of_the_host_are_not_for_plugins() {
        for (condition_type, reason, allowed) in [
            ("Ready", "Available", true),
            ("Stalled", "X", false),
            ("Reconciling", "X", false),
            ("Ready", "", false),
            ("Ready", "two words", false),
            ("", "X", false),
        ] {
            let condition = Condition {
                condition_type: condition_type.to_owned(),
                status: ConditionStatus::IsTrue,
                reason: reason.to_owned(),
                message: String::new(),
            };
            assert_eq!(check_condition(&condition).is_ok(), allowed, "{condition_type} {reason}");
        }
    }
}
