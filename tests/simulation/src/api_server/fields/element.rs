//! One step of a path to a field: a field's name, the keys of a list's element, or a value in a set.

use std::{cmp::Ordering, fmt, sync::Arc};

use serde_json::Value;

/// A field that identifies an element of a list, with its value.
type Key = (Arc<str>, Value);

/// One step of a path. The order is that of the serialized form.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field.
    Field(Arc<str>),
    /// An element of a list, by its keys in the order of their names.
    Key(Arc<[Key]>),
    /// A value in a set.
    Value(Value),
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
        }
    }

    /// The element in the serialized form of field sets: `f:spec`, `k:{"name":"a"}`, `v:"a"`.
    pub fn push_to(&self, text: &mut String) {
        match self {
            Self::Field(name) => {
                text.push_str("f:");
                text.push_str(name);
            }
            Self::Key(keys) => {
                text.push_str("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push('"');
                    text.push_str(name);
                    text.push_str("\":");
                    text.push_str(&value.to_string());
                }
                text.push('}');
            }
            Self::Value(value) => {
                text.push_str("v:");
                text.push_str(&value.to_string());
            }
        }
    }

    /// Parses the serialized form; none for what this server does not know.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.into())),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "k" => {
                let keys: serde_json::Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::Key(keys.into_iter().map(|(name, value)| (name.into(), value)).collect()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Element {
    /// The element in a message: `.spec`, `[name="a"]`, `[="a"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    write!(f, "{}{name}={value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b.iter());
                let by_pair = |(a, b): (&Key, &Key)| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1));
                pairs.map(by_pair).find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// The order of scalars: numbers, texts, booleans, and whatever is none of them.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
        },
        _ => rank(a).cmp(&rank(b)),
    }
}
