//! Schemas for tests: excerpts from the OpenAPI of API server v1.34.4 for core kinds and a custom kind, `Gadget`. Also random
//! values.

use serde_json::{Map, Value, json};

use super::Schema;

/// The excerpts, as one document.
pub(crate) const DOCUMENT: &str = include_str!("samples.json");

/// The schema of a kind of the excerpts.
pub(crate) fn schema(api_version: &str, kind: &str) -> Schema {
    let parsed = Schema::parse(DOCUMENT, api_version, kind);
    assert!(matches!(parsed, Ok(Some(_))), "{kind} is not in the excerpts: {parsed:?}");
    parsed.ok().flatten().unwrap_or_else(|| Schema::built_in("", "").clone())
}

pub(crate) fn gadget() -> Schema {
    schema("example.com/v1", "Gadget")
}

/// Random values, the same for the same seed.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    /// A random value. Some of its keys occur in the excerpts, some do not.
    pub(crate) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => json!(self.below(3)),
            1 => json!(["", "a", "1000m", "1"][self.below(4)]),
            2 => json!(self.0.bool()),
            3 => Value::Null,
            4 | 5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        const KEYS: [&str; 16] = [
            "phase",
            "raw",
            "counts",
            "members",
            "name",
            "spec",
            "metadata",
            "labels",
            "template",
            "containers",
            "env",
            "limits",
            "ports",
            "finalizers",
            "values",
            "x/~",
        ];
        (0..self.below(6)).map(|_| (KEYS[self.below(KEYS.len())].to_owned(), self.value(depth - 1))).collect()
    }
}
