//! Whether a live object has the fields that are desired. Only fields that are desired count: what others add is theirs.
//! Knows how the API server normalises quantities and which lists are keyed; what it cannot know shows up as a
//! difference that an apply does not remove, which the plan remembers. Pure.

use serde_json::{Map, Value};

/// A field in which the live object differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, as a JSON pointer.
    pub path: String,
    /// What it shall be.
    pub desired: Value,
    /// What it is; null if it is not there.
    pub live: Value,
}

/// The longest a value is printed.
const PRINTED: usize = 60;

impl std::fmt::Display for Difference {
    /// `/spec/replicas is 1, shall be 3`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |value: &Value| {
            let text = value.to_string();
            if text.len() <= PRINTED { text } else { format!("{}…", &text[..text.floor_char_boundary(PRINTED)]) }
        };
        match &self.live {
            Value::Null => write!(f, "{} is missing, shall be {}", self.path, short(&self.desired)),
            live => write!(f, "{} is {}, shall be {}", self.path, short(live), short(&self.desired)),
        }
    }
}

/// Finds the desired fields that a live object does not have as desired, at most ten of them.
pub fn differences(desired: &Value, live: &Value) -> Vec<Difference> {
    let mut comparison = Comparison { path: Vec::new(), found: Vec::new() };
    comparison.value(desired, Some(live));
    comparison.found
}

/// As many differences as are worth showing; one is enough to write.
const ENOUGH: usize = 10;

struct Comparison<'a> {
    path: Vec<&'a str>,
    found: Vec<Difference>,
}

impl<'a> Comparison<'a> {
    fn value(&mut self, desired: &'a Value, live: Option<&'a Value>) {
        if self.found.len() >= ENOUGH {
            return;
        }
        match (desired, live) {
            (Value::Object(desired), Some(Value::Object(live))) => self.object(desired, live),
            (Value::Array(desired), Some(Value::Array(live))) => self.list(desired, live),
            (Value::Object(desired), None) if desired.is_empty() && self.omits_empty() => {}
            (Value::Array(desired), None) if desired.is_empty() => {}
            // What server-side apply leaves where the last entry went; nothing empty takes its place.
            (Value::Object(desired), Some(Value::Null)) if desired.is_empty() => {}
            (Value::Array(desired), Some(Value::Null)) if desired.is_empty() => {}
            (desired, Some(live)) if desired == live || self.same_quantity(desired, live) => {}
            (desired, live) => self.differ(desired, live),
        }
    }

    fn object(&mut self, desired: &'a Map<String, Value>, live: &'a Map<String, Value>) {
        for (key, value) in desired {
            self.path.push(key);
            self.value(value, live.get(key));
            self.path.pop();
        }
    }

    /// Keyed lists are compared element by element, others as they are.
    fn list(&mut self, desired: &'a [Value], live: &'a [Value]) {
        let Some(keys) = self.path.last().and_then(|field| Keys::of(field, desired)) else {
            return self.sequence(desired, live);
        };
        for item in desired {
            self.path.push(keys.first(item).and_then(Value::as_str).unwrap_or("?"));
            self.value(item, live.iter().find(|other| keys.same(item, other)));
            self.path.pop();
        }
    }

    fn sequence(&mut self, desired: &'a [Value], live: &'a [Value]) {
        if desired.len() != live.len() {
            return self.found.push(Difference {
                path: self.pointer(),
                desired: Value::Array(desired.to_vec()),
                live: Value::Array(live.to_vec()),
            });
        }
        for (desired, live) in desired.iter().zip(live) {
            self.path.push("-");
            self.value(desired, Some(live));
            self.path.pop();
        }
    }

    fn differ(&mut self, desired: &Value, live: Option<&Value>) {
        let live = live.cloned().unwrap_or_default();
        self.found.push(Difference { path: self.pointer(), desired: desired.clone(), live });
    }

    fn pointer(&self) -> String {
        self.path.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
    }

    /// Maps that the API server leaves out when they are empty.
    fn omits_empty(&self) -> bool {
        matches!(self.path.last(), Some(&("labels" | "annotations" | "matchLabels" | "nodeSelector" | "data")))
    }

    /// Whether two values are the same quantity in a field that holds quantities: `1000m` comes back as `1`.
    fn same_quantity(&self, desired: &Value, live: &Value) -> bool {
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
        let holds = parent.is_some_and(|parent| MAPS.contains(parent))
            || self.path.last().is_some_and(|field| FIELDS.contains(field));
        holds && quantity(desired).zip(quantity(live)).is_some_and(|(desired, live)| desired == live)
    }
}

/// The fields that key a list's elements (`x-kubernetes-list-map-keys` of the built-in kinds), by the list's own name.
fn list_keys(field: &str) -> &'static [&'static str] {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "resourceClaims" => &["name"],
        "ports" => &["containerPort", "port", "protocol"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "hostAliases" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        "ownerReferences" => &["uid"],
        "conditions" => &["type"],
        _ => &[],
    }
}

/// How the elements of one list are told apart.
#[derive(Clone, Copy)]
pub(super) struct Keys(&'static [&'static str]);

impl Keys {
    /// The keys of the list in a field; none if it is not a keyed one.
    pub(super) fn of(field: &str, items: &[Value]) -> Option<Self> {
        let keys = Self(list_keys(field));
        items.iter().all(|item| keys.first(item).is_some()).then_some(keys)
    }

    /// Whether an element's own name is one of its keys.
    pub(super) fn include_name(self) -> bool {
        self.0.contains(&"name")
    }

    /// Whether two elements are the same one: both say the same of every key, or only the server does, which fills in
    /// defaults such as `TCP`.
    pub(super) fn same(self, desired: &Value, live: &Value) -> bool {
        self.0.iter().all(|key| desired.get(key).is_none() || desired.get(key) == live.get(key))
    }

    fn first(self, item: &Value) -> Option<&Value> {
        self.0.iter().find_map(|key| item.get(*key))
    }
}

/// A quantity in thousandths (`resource.Quantity`'s notation), if it is one. Exponents beyond f64's exact range and
/// fractions of a thousandth compare as text, which at worst costs one apply that changes nothing.
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

    #[test]
    fn sees_drift_in_desired_fields_and_leaves_others_alone() {
        let container = |extra: Value| json!({"spec": {"containers": [extra]}});
        let cases = [
            ("equal", json!({"a": 1}), json!({"a": 1}), &[][..]),
            ("added by others", json!({"a": 1}), json!({"a": 1, "b": 2}), &[]),
            ("changed", json!({"spec": {"replicas": 3}}), json!({"spec": {"replicas": 1}}), &["/spec/replicas"]),
            ("missing", json!({"a": {"b": 1}}), json!({}), &["/a"]),
            ("a label", json!({"labels": {"a/b": "x"}}), json!({"labels": {"c": "y"}}), &["/labels/a~1b"]),
            ("empty labels", json!({"labels": {}}), json!({}), &[]),
            ("an empty list", json!({"args": []}), json!({}), &[]),
            ("an empty map that matters", json!({"emptyDir": {}}), json!({}), &["/emptyDir"]),
            ("a map whose last entry went", json!({"routes": {}}), json!({"routes": null}), &[]),
            (
                "a default port protocol",
                container(json!({"name": "a", "ports": [{"containerPort": 80}]})),
                container(json!({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]})),
                &[],
            ),
            (
                "another container port",
                container(json!({"name": "a", "ports": [{"containerPort": 80}]})),
                container(json!({"name": "a", "ports": [{"containerPort": 81}]})),
                &["/spec/containers/a/ports/?"],
            ),
            (
                "an injected sidecar",
                json!({"containers": [{"name": "a", "image": "x"}]}),
                json!({"containers": [{"name": "proxy"}, {"name": "a", "image": "x"}]}),
                &[],
            ),
            (
                "the order of arguments",
                json!({"args": ["a", "b"]}),
                json!({"args": ["b", "a"]}),
                &["/args/-", "/args/-"],
            ),
            ("fewer arguments", json!({"args": ["a"]}), json!({"args": ["a", "b"]}), &["/args"]),
            ("a quantity", json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}}), &[]),
            ("another quantity", json!({"limits": {"cpu": "2"}}), json!({"limits": {"cpu": "1"}}), &["/limits/cpu"]),
            ("not a quantity", json!({"value": "1000m"}), json!({"value": "1"}), &["/value"]),
        ];
        for (name, desired, live, expected) in cases {
            let found: Vec<_> = differences(&desired, &live).into_iter().map(|difference| difference.path).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn reads_quantities_as_the_api_server_does() {
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
