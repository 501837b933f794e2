//! Finds the differences between a desired and a live object. Compares desired fields only, because fields that others add are
//! theirs. The exception are values that are owned as a whole, such as atomic lists. The kind's schema tells the list types and
//! the fields with quantities, which the API server normalises. Normalisation that no schema tells shows up as a difference.
//! Pure.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::schema::{Cursor, Keys, ListType, Schema, plain, pointer};

/// A field in which the live object differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The field, as a JSON pointer.
    pub path: String,
    /// The desired value; null if the field should not exist.
    pub desired: Value,
    /// The live value; null if the field does not exist.
    pub live: Value,
}

/// The most bytes of a value in a message.
const MAX_VALUE_BYTES: usize = 60;

impl std::fmt::Display for Difference {
    /// `/spec/replicas is 1, shall be 3`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |value: &Value| {
            let text = value.to_string();
            if text.len() <= MAX_VALUE_BYTES {
                text
            } else {
                format!("{}…", &text[..text.floor_char_boundary(MAX_VALUE_BYTES)])
            }
        };
        match (&self.live, &self.desired) {
            (Value::Null, desired) => write!(f, "{} is missing, shall be {}", self.path, short(desired)),
            (live, Value::Null) => write!(f, "{} is {}, shall not be there", self.path, short(live)),
            (live, _) => write!(f, "{} is {}, shall be {}", self.path, short(live), short(&self.desired)),
        }
    }
}

/// Finds all differences. Without a schema, the built-in one is used, which knows the core kinds.
pub fn differences(desired: &Value, live: &Value, schema: Option<&Schema>) -> Vec<Difference> {
    let schema = Schema::known_or_built_in(schema, desired);
    let is_pod = desired["apiVersion"] == "v1" && desired["kind"] == "Pod";
    let mut comparison = Comparison {
        path: Vec::new(),
        found: Vec::new(),
        goes_through_types: schema.goes_through_types(),
        additions: if is_pod { Additions::Stay } else { Additions::Differ },
    };
    comparison.value(desired, Some(live), Place { at: schema.root(), owned: Owned::Fields });
    comparison.found
}

/// The most differences in a message.
const MAX_SHOWN: usize = 10;

/// A message in one line: `/spec/replicas is 1, shall be 3; /spec/paused is missing, shall be true`.
pub fn in_words(differences: &[Difference]) -> String {
    let mut words: Vec<_> = differences.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if let Some(more) = differences.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        words.push(format!("and {more} more"));
    }
    words.join("; ")
}

struct Comparison<'a> {
    path: Vec<Cow<'a, str>>,
    found: Vec<Difference>,
    goes_through_types: bool,
    additions: Additions,
}

/// How to treat an addition of somebody else to a value that is owned as a whole.
#[derive(Clone, Copy, PartialEq)]
enum Additions {
    /// As a difference, which an apply removes.
    Differ,
    /// As theirs. Admission plugins complete the selectors and affinities of Pods, which are immutable afterwards.
    Stay,
}

/// Defaults that the API server adds to elements of atomic lists of the core kinds, with the value, or none for any value. The schemas
/// do not have them (`SetDefaults_*` in `k8s.io/kubernetes/pkg/apis`).
const SERVER_DEFAULTS: [(&str, Option<&str>); 11] = [
    ("apiVersion", None),
    ("creationTimestamp", None),
    ("divisor", None),
    ("expirationSeconds", Some("3600")),
    ("kind", None),
    ("mode", Some("420")),
    ("protocol", Some("TCP")),
    ("resources", Some("{}")),
    ("scheme", Some("HTTP")),
    ("status", None),
    ("volumeMode", Some("Filesystem")),
];

/// The place of a value during a comparison.
#[derive(Clone, Copy)]
struct Place<'s> {
    at: Cursor<'s>,
    owned: Owned,
}

/// Which part of a value the plugin owns.
#[derive(Clone, Copy, PartialEq)]
enum Owned {
    /// The desired fields.
    Fields,
    /// All of it, because it is in an atomic list or map.
    Whole,
}

impl<'s> Place<'s> {
    /// A place below this one.
    fn below(self, at: Cursor<'s>) -> Self {
        Self { at, owned: if at.is_atomic() { Owned::Whole } else { self.owned } }
    }
}

impl<'a> Comparison<'a> {
    fn value(&mut self, desired: &'a Value, live: Option<&'a Value>, place: Place<'_>) {
        match (desired, live) {
            // Before anything is looked up in the schema: most values are as they should be.
            (desired, Some(live)) if desired == live => {}
            (Value::Object(desired), Some(Value::Object(live))) => self.object(desired, live, place),
            (Value::Array(desired), Some(Value::Array(live))) => self.list(desired, live, place),
            (Value::Object(desired), None) if desired.is_empty() && self.omits_empty(place.at) => {}
            (Value::Array(desired), None) if desired.is_empty() => {}
            // After the last entry is removed, server-side apply leaves null, and no later apply turns that into an empty value.
            (Value::Object(desired), Some(Value::Null)) if desired.is_empty() => {}
            (Value::Array(desired), Some(Value::Null)) if desired.is_empty() => {}
            (Value::Null, None) => {}
            (desired, Some(live)) if self.same_quantity(desired, live, place.at) => {}
            (desired, live) => self.add(desired, live),
        }
    }

    fn object(&mut self, desired: &'a Map<String, Value>, live: &'a Map<String, Value>, place: Place<'_>) {
        for (key, value) in desired {
            self.descend(key, |this| this.value(value, live.get(key), place.below(place.at.field(key))));
        }
        if place.owned == Owned::Whole && self.additions == Additions::Differ {
            let added =
                live.iter().filter(|(key, value)| !desired.contains_key(*key) && self.is_added(key, value, place.at));
            for (key, value) in added.collect::<Vec<_>>() {
                self.descend(key, |this| this.add(&Value::Null, Some(value)));
            }
        }
    }

    /// Whether somebody added a field to an object that is owned as a whole. A known default of the API server does not count. An
    /// unknown one costs one apply that changes nothing, and is remembered then.
    fn is_added(&self, key: &str, value: &Value, at: Cursor<'_>) -> bool {
        if at.is_map() {
            // Admission plugins add entries to node selectors. They would come back after each apply.
            return !value.is_null() && self.path.last().is_none_or(|field| field != "nodeSelector");
        }
        let says_something = match value {
            Value::Array(value) => !value.is_empty(),
            Value::Null => false,
            // An empty object is a value: an empty selector selects everything.
            Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        says_something && !at.field(key).is_defaulted() && !self.is_server_default(key, value)
    }

    /// Whether the API server sets a field to this value by itself. The schema of a custom kind has its own defaults.
    fn is_server_default(&self, field: &str, value: &Value) -> bool {
        let is_it =
            |(name, with): &(&str, Option<&str>)| *name == field && with.is_none_or(|with| plain(value) == with);
        self.goes_through_types && SERVER_DEFAULTS.iter().any(is_it)
    }

    fn list(&mut self, desired: &'a [Value], live: &'a [Value], place: Place<'_>) {
        match place.at.list_type() {
            // An element without any of the keys has no counterpart to look for. Such a list is compared by position.
            ListType::Map(keys) if desired.iter().all(|item| keys.are_in(item)) => {
                self.keyed(keys, desired, live, place);
            }
            ListType::Set => self.set(desired, live, place),
            _ => self.sequence(desired, live, place),
        }
    }

    fn keyed(&mut self, keys: Keys<'_>, desired: &'a [Value], live: &'a [Value], place: Place<'_>) {
        if self.has_more(desired, live, place) {
            return self.add_as_lists(desired, live);
        }
        for item in desired {
            let same = live.iter().find(|other| keys.same(item, other));
            self.descend(keys.title(item), |this| this.value(item, same, place.below(place.at.items())));
        }
    }

    fn set(&mut self, desired: &'a [Value], live: &'a [Value], place: Place<'_>) {
        if self.has_more(desired, live, place) {
            return self.add_as_lists(desired, live);
        }
        for item in desired.iter().filter(|item| !live.contains(item)) {
            self.descend(plain(item), |this| this.add(item, None));
        }
    }

    /// Whether somebody added elements to a list that is owned as a whole.
    fn has_more(&self, desired: &[Value], live: &[Value], place: Place<'_>) -> bool {
        place.owned == Owned::Whole && self.additions == Additions::Differ && live.len() > desired.len()
    }

    fn sequence(&mut self, desired: &'a [Value], live: &'a [Value], place: Place<'_>) {
        // The positions do not correspond then, and a difference in each element would say less than the two lists.
        if desired.len() != live.len() {
            return self.add_as_lists(desired, live);
        }
        for (index, (desired, live)) in desired.iter().zip(live).enumerate() {
            let element = Place { at: place.at.items(), owned: Owned::Whole };
            self.descend(index.to_string(), |this| this.value(desired, Some(live), element));
        }
    }

    /// Compares the value below a key.
    fn descend(&mut self, key: impl Into<Cow<'a, str>>, compare: impl FnOnce(&mut Self)) {
        self.path.push(key.into());
        compare(self);
        self.path.pop();
    }

    fn add(&mut self, desired: &Value, live: Option<&Value>) {
        let live = live.cloned().unwrap_or_default();
        self.found.push(Difference { path: pointer(&self.path), desired: desired.clone(), live });
    }

    fn add_as_lists(&mut self, desired: &[Value], live: &[Value]) {
        let (desired, live) = (Value::Array(desired.to_vec()), Value::Array(live.to_vec()));
        self.found.push(Difference { path: pointer(&self.path), desired, live });
    }

    /// Whether the API server drops an empty map here.
    fn omits_empty(&self, at: Cursor<'_>) -> bool {
        let by_name = ["labels", "annotations", "matchLabels", "nodeSelector", "data"];
        self.goes_through_types && at.is_map() || self.path.last().is_some_and(|field| by_name.contains(&&**field))
    }

    /// Whether two values are the same quantity, if this is a place for quantities: the API server turns `1000m` into `1`.
    fn same_quantity(&self, desired: &Value, live: &Value, at: Cursor<'_>) -> bool {
        let holds = if at.is_known() { at.is_quantity() } else { self.is_named_as_quantity() };
        holds && quantity(desired).zip(quantity(live)).is_some_and(|(desired, live)| desired == live)
    }

    /// Whether a field has the name of a field with quantities in the core kinds. For places without a schema.
    fn is_named_as_quantity(&self) -> bool {
        const MAPS: [&str; 10] = [
            "limits",
            "requests",
            "capacity",
            "hard",
            "overhead",
            "default",
            "defaultRequest",
            "allocatable",
            "max",
            "min",
        ];
        const FIELDS: [&str; 4] = ["sizeLimit", "averageValue", "storage", "divisor"];
        let parent = self.path.len().checked_sub(2).and_then(|parent| self.path.get(parent));
        parent.is_some_and(|parent| MAPS.contains(&&**parent))
            || self.path.last().is_some_and(|field| FIELDS.contains(&&**field))
    }
}

/// Parses a quantity in the notation of `resource.Quantity`, in thousandths. None for exponents, large suffixes and fractions of a
/// thousandth: they are compared as text, which at worst costs one apply without effect.
fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let scale: i128 = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "P" => 1_000_000_000_000_000_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        "Pi" => 1_000 << 50,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Not the sign of the parsed number: `-0` in `-0.5` is parsed as 0.
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    let divisor = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
    let value = whole.parse::<i128>().ok()?.checked_mul(divisor)?.checked_add(sign * fraction)?.checked_mul(scale)?;
    (value % divisor == 0).then_some(value / divisor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::samples;

    /// Name, kind, desired spec, live spec, and the expected pointers below the spec.
    struct Case(&'static str, &'static str, Value, Value, &'static [&'static str]);

    fn object(kind: &str, spec: &Value) -> Value {
        let api_version = match kind {
            "Gadget" => "example.com/v1",
            "NetworkPolicy" => "networking.k8s.io/v1",
            "Deployment" | "StatefulSet" => "apps/v1",
            _ => "v1",
        };
        json!({"apiVersion": api_version, "kind": kind, "spec": spec})
    }

    fn paths(desired: &Value, live: &Value, schema: Option<&Schema>) -> Vec<String> {
        let found = differences(desired, live, schema).into_iter();
        found.map(|found| found.path.strip_prefix("/spec").unwrap_or(&found.path).to_owned()).collect()
    }

    fn schema_of(object: &Value) -> Schema {
        samples::schema(object["apiVersion"].as_str().unwrap_or(""), object["kind"].as_str().unwrap_or(""))
    }

    impl Case {
        fn holds_with(&self, schema: Option<&Schema>) {
            let Self(name, kind, desired, live, expected) = self;
            let (desired, live) = (object(kind, desired), object(kind, live));
            assert_eq!(paths(&desired, &live, schema), *expected, "{kind}, a schema: {}: {name}", schema.is_some());
        }

        fn schema(&self) -> Schema {
            schema_of(&object(self.1, &Value::Null))
        }
    }

    #[test]
    fn finds_drift_in_desired_fields_only() {
        let pod = |container: Value| json!({"template": {"spec": {"containers": [container]}}});
        let template = |spec: Value| json!({"template": {"spec": spec}});
        let cases = [
            Case("equal", "Deployment", json!({"replicas": 1}), json!({"replicas": 1}), &[]),
            Case("added by others", "Deployment", json!({"replicas": 1}), json!({"replicas": 1, "paused": true}), &[]),
            Case("changed", "Deployment", json!({"replicas": 3}), json!({"replicas": 1}), &["/replicas"]),
            Case("missing", "Deployment", json!({"template": {}}), json!({}), &["/template"]),
            Case(
                "labels",
                "Deployment",
                json!({"template": {"metadata": {"labels": {"a/b": "x"}}}}),
                json!({"template": {"metadata": {"labels": {"c": "y"}}}}),
                &["/template/metadata/labels/a~1b"],
            ),
            Case(
                "empty labels",
                "Deployment",
                json!({"template": {"metadata": {"labels": {}}}}),
                json!({"template": {"metadata": {}}}),
                &[],
            ),
            Case("an empty list", "Deployment", pod(json!({"name": "a", "args": []})), pod(json!({"name": "a"})), &[]),
            Case(
                "an empty struct that matters",
                "Deployment",
                template(json!({"volumes": [{"name": "a", "emptyDir": {}}]})),
                template(json!({"volumes": [{"name": "a"}]})),
                &["/template/spec/volumes/a/emptyDir"],
            ),
            Case(
                "a map whose last entry went",
                "Deployment",
                template(json!({"nodeSelector": {}})),
                template(json!({"nodeSelector": null})),
                &[],
            ),
            Case(
                "a default port protocol",
                "Deployment",
                pod(json!({"name": "a", "ports": [{"containerPort": 80}]})),
                pod(json!({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]})),
                &[],
            ),
            Case(
                "another container port",
                "Deployment",
                pod(json!({"name": "a", "ports": [{"containerPort": 80}]})),
                pod(json!({"name": "a", "ports": [{"containerPort": 81}]})),
                &["/template/spec/containers/a/ports/80"],
            ),
            Case(
                "a port that others add",
                "Deployment",
                pod(json!({"name": "a", "ports": [{"containerPort": 80}]})),
                pod(json!({"name": "a", "ports": [{"containerPort": 81}, {"containerPort": 80}]})),
                &[],
            ),
            Case(
                "an injected sidecar",
                "Deployment",
                pod(json!({"name": "a", "image": "x"})),
                template(json!({"containers": [{"name": "proxy"}, {"name": "a", "image": "x"}]})),
                &[],
            ),
            Case(
                "the order of arguments",
                "Deployment",
                pod(json!({"name": "a", "args": ["a", "b"]})),
                pod(json!({"name": "a", "args": ["b", "a"]})),
                &["/template/spec/containers/a/args/0", "/template/spec/containers/a/args/1"],
            ),
            Case(
                "fewer arguments",
                "Deployment",
                pod(json!({"name": "a", "args": ["a"]})),
                pod(json!({"name": "a", "args": ["a", "b"]})),
                &["/template/spec/containers/a/args"],
            ),
            Case(
                "a quantity in other words",
                "Deployment",
                pod(json!({"name": "a", "resources": {"limits": {"cpu": "1000m"}}})),
                pod(json!({"name": "a", "resources": {"limits": {"cpu": "1"}}})),
                &[],
            ),
            Case(
                "another quantity",
                "Deployment",
                pod(json!({"name": "a", "resources": {"limits": {"cpu": "2"}}})),
                pod(json!({"name": "a", "resources": {"limits": {"cpu": "1"}}})),
                &["/template/spec/containers/a/resources/limits/cpu"],
            ),
            Case(
                "a text that is no quantity",
                "Deployment",
                pod(json!({"name": "a", "env": [{"name": "limits", "value": "1000m"}]})),
                pod(json!({"name": "a", "env": [{"name": "limits", "value": "1"}]})),
                &["/template/spec/containers/a/env/limits/value"],
            ),
            Case(
                "a port that others add to a Service",
                "Service",
                json!({"ports": [{"port": 80}]}),
                json!({"ports": [{"port": 80, "protocol": "TCP"}, {"port": 81}]}),
                &[],
            ),
            Case(
                "the other protocol of a port",
                "Service",
                json!({"ports": [{"port": 53, "protocol": "UDP", "name": "dns"}]}),
                json!({"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "name": "dns"}]}),
                &[],
            ),
            Case(
                "a label that others add to the selector of a Service",
                "Service",
                json!({"selector": {"app": "a"}}),
                json!({"selector": {"app": "a", "none": "matches"}}),
                &["/selector/none"],
            ),
            Case(
                "a node label that an admission plugin adds",
                "Pod",
                json!({"nodeSelector": {"disk": "fast"}}),
                json!({"nodeSelector": {"disk": "fast", "zone": "a"}}),
                &[],
            ),
            Case(
                "a port that others add to a rule",
                "NetworkPolicy",
                json!({"ingress": [{"ports": [{"port": 80}]}]}),
                json!({"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}, {"port": 22}]}]}),
                &["/ingress/0/ports"],
            ),
            Case(
                "a default in a rule",
                "NetworkPolicy",
                json!({"ingress": [{"ports": [{"port": 80}]}]}),
                json!({"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}),
                &[],
            ),
            Case(
                "a label that others add to the selector of a policy for all Pods",
                "NetworkPolicy",
                json!({"podSelector": {}}),
                json!({"podSelector": {"matchLabels": {"app": "none"}}}),
                &["/podSelector/matchLabels"],
            ),
        ];
        for case in cases {
            case.holds_with(Some(&case.schema()));
            case.holds_with(None);
        }
    }

    #[test]
    fn a_schema_tells_list_types_and_quantities_of_custom_kinds() {
        let claims = |status: Value| json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": []}, "status": status}]});
        let cases = [
            Case(
                "a set in another order",
                "Gadget",
                json!({"tags": ["a", "b"]}),
                json!({"tags": ["b", "x", "a"]}),
                &[],
            ),
            Case("an element of a set", "Gadget", json!({"tags": ["a", "b"]}), json!({"tags": ["b"]}), &["/tags/a"]),
            Case("a map", "Gadget", json!({"settings": {"a": "b"}}), json!({"settings": {"a": "b", "c": "d"}}), &[]),
            Case(
                "a pin",
                "Gadget",
                json!({"pinned": {"a": "b"}}),
                json!({"pinned": {"a": "b", "c": "d"}}),
                &["/pinned/c"],
            ),
            Case(
                "an element by two keys",
                "Gadget",
                json!({"listeners": [{"port": 1, "tls": true}]}),
                json!({"listeners": [{"host": "*", "port": 2}, {"host": "*", "port": 1, "tls": false}]}),
                &["/listeners/1/tls"],
            ),
            Case("no quantity", "Gadget", json!({"cpu": "1000m"}), json!({"cpu": "1"}), &["/cpu"]),
            Case("an empty map", "Gadget", json!({"settings": {}}), json!({}), &["/settings"]),
            Case("null as a value", "Gadget", json!({"anything": null}), json!({"anything": 1}), &["/anything"]),
            Case("null as no value", "Gadget", json!({"anything": null}), json!({}), &[]),
            Case(
                "a list that others add inside an atomic one",
                "Gadget",
                json!({"routes": [{"host": "a"}]}),
                json!({"routes": [{"host": "a", "backends": ["evil"], "paths": ["/"]}]}),
                &["/routes/0/backends"],
            ),
            Case(
                "a field of a custom kind with the name and value of a default of the core kinds",
                "Gadget",
                json!({"routes": [{"host": "a"}]}),
                json!({"routes": [{"host": "a", "protocol": "TCP"}]}),
                &["/routes/0/protocol"],
            ),
            Case(
                "a number that others add inside an atomic one",
                "NetworkPolicy",
                json!({"ingress": [{"ports": [{"port": 80}]}]}),
                json!({"ingress": [{"ports": [{"port": 80, "protocol": "TCP", "endPort": 90}]}]}),
                &["/ingress/0/ports/0/endPort"],
            ),
            Case(
                "an empty selector that others add inside an atomic list",
                "NetworkPolicy",
                json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]}),
                json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}]}]}),
                &["/ingress/0/from/0/namespaceSelector"],
            ),
            Case(
                "a label that others add inside an atomic one",
                "Gadget",
                json!({"routes": [{"labels": {"a": "b"}}]}),
                json!({"routes": [{"labels": {"a": "b", "c": "d"}}]}),
                &["/routes/0/labels/c"],
            ),
            Case(
                "what the API server fills in inside an atomic list",
                "StatefulSet",
                json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": []}}]}),
                claims(json!({"phase": "Pending"})),
                &[],
            ),
            Case(
                "an empty map of a Go type",
                "Deployment",
                json!({"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {}}}]}}}),
                json!({"template": {"spec": {"containers": [{"name": "a", "resources": {}}]}}}),
                &[],
            ),
        ];
        for case in cases {
            case.holds_with(Some(&case.schema()));
        }
    }

    #[test]
    fn finds_all_differences_and_prints_the_first_ones() {
        let container = |image: &str, value: &Value| {
            let env: Vec<_> = (0..20).map(|index| json!({"name": format!("E{index}"), "value": value})).collect();
            object(
                "Deployment",
                &json!({"template": {"spec": {"containers": [{"name": "a", "env": env, "image": image}]}}}),
            )
        };
        let found = differences(&container("good", &json!("")), &container("evil", &json!("x")), None);
        assert_eq!(found.len(), 21);
        assert!(found.iter().any(|found| found.path.ends_with("/image")));
        let words = in_words(&found);
        assert!(words.ends_with("; and 11 more"), "{words}");
        assert_eq!(in_words(&found[20..]), r#"/spec/template/spec/containers/a/image is "evil", shall be "good""#);
    }

    #[test]
    fn an_object_does_not_differ_from_itself() {
        let (deployment, gadget) = (samples::schema("apps/v1", "Deployment"), samples::gadget());
        let mut random = samples::Random::new(3);
        for _ in 0..500 {
            let value = random.value(6);
            for schema in [Some(&deployment), Some(&gadget), None] {
                assert_eq!(differences(&value, &value, schema), [], "{value}");
            }
        }
    }

    #[test]
    fn a_change_of_any_desired_leaf_is_found() {
        let desired = [
            object(
                "Deployment",
                &json!({"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"nodeSelector": {"disk": "fast"}, "containers": [
                        {"name": "a", "image": "x", "args": ["1", "2"], "env": [{"name": "A", "value": "1"}],
                         "ports": [{"name": "http", "containerPort": 80}], "resources": {"limits": {"cpu": "1"}}},
                        {"name": "b", "image": "y"},
                    ]},
                }}),
            ),
            object(
                "Gadget",
                &json!({"size": "1", "port": 80, "note": "n", "values": {"known": "a", "deep": [{"b": 1}]},
                    "anything": [[1]], "tags": ["a", "b"], "settings": {"a": "b"}, "pinned": {"a": "b"},
                    "routes": [{"host": "a", "paths": ["/x"]}], "listeners": [{"host": "h", "port": 1, "tls": true}]}),
            ),
        ];
        for desired in desired {
            let schema = schema_of(&desired);
            for leaf in leaves(&desired, "") {
                for changed in [json!("changed"), json!(77), Value::Null] {
                    let mut live = desired.clone();
                    live.pointer_mut(&leaf).into_iter().for_each(|value| *value = changed.clone());
                    assert_ne!(differences(&desired, &live, Some(&schema)), [], "{leaf} is {changed}");
                }
            }
        }
    }

    /// The JSON pointers of all scalars.
    fn leaves(value: &Value, path: &str) -> Vec<String> {
        match value {
            Value::Object(fields) => {
                fields.iter().flat_map(|(key, value)| leaves(value, &format!("{path}/{key}"))).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().flat_map(|(index, item)| leaves(item, &format!("{path}/{index}"))).collect()
            }
            _ => vec![path.to_owned()],
        }
    }

    #[test]
    fn equal_quantities_in_different_notations_are_equal() {
        for (one, other, same) in [
            ("1", "1000m", true),
            ("0.5", "500m", true),
            ("1Gi", "1024Mi", true),
            ("1G", "1000M", true),
            ("1G", "1Gi", false),
            ("1.5Gi", "1536Mi", true),
            ("-1", "-1000m", true),
            ("-0.5", "-500m", true),
            ("1x", "1", false),
            ("", "0", false),
        ] {
            let same_now = quantity(&json!(one)).is_some() && quantity(&json!(one)) == quantity(&json!(other));
            assert_eq!(same_now, same, "{one} and {other}");
        }
        assert_eq!(quantity(&json!(2)), quantity(&json!("2")));
    }
}
