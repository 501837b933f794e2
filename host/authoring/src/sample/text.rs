//! A text for a schema: a word that fits, else the shortest text of its pattern. Where there is none, the marker.

use serde_json::{Value, json};

use super::{MARKER, pattern, schema::Judge};

/// Texts that fit many patterns, in the order in which they are tried.
const WORDS: &[&str] = &[
    "example",
    "Example",
    "example.com",
    "https://example.com",
    "/example",
    "example.com/example",
    "example@example.com",
    "10m",
    "1h",
    "1",
    "1Gi",
    "100%",
    "1.0.0",
    "v1",
    "10.0.0.1",
    "10.0.0.0/16",
    "2001:db8::1",
    "ExampleReason",
    "EXAMPLE",
    "*",
    "/",
];

/// The most bytes of a text that a pattern becomes.
const LONGEST: usize = 4096;

/// A text, or the marker.
pub(super) fn of(schema: &Value) -> String {
    let judge = Judge::new(&judged(schema));
    let fits = |text: &String| judge.is_met(&json!(text));
    let words = WORDS.iter().map(|word| (*word).to_owned());
    let of_format = schema["format"].as_str().and_then(of_format).map(str::to_owned);
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or_default()).unwrap_or(LONGEST).min(LONGEST);
    // In many texts a letter more is no harm: "example-example" of 15.
    let long = (least > 0).then(|| "example-".repeat(least / 8 + 1).trim_end_matches('-').to_owned());
    let exact = (least > 0).then(|| "example-".repeat(least / 8 + 1).chars().take(least.max(1)).collect());
    let of_pattern = schema["pattern"].as_str().map(|it| pattern::texts(it, LONGEST)).unwrap_or_default();
    let short = schema["maxLength"]
        .as_u64()
        .filter(|most| *most < 7)
        .map(|most| "example".chars().take(most as usize).collect());
    let all = of_format.into_iter().chain(words).chain(long).chain(exact).chain(short).chain(of_pattern);
    all.into_iter().find(fits).unwrap_or_else(|| MARKER.to_owned())
}

/// What a text can be judged by on its own.
fn judged(schema: &Value) -> Value {
    let mut judged = json!({"type": "string"});
    for word in ["pattern", "minLength", "maxLength"] {
        if let Some(value) = schema.get(word) {
            judged[word] = value.clone();
        }
    }
    judged
}

/// A text of a format that the API server looks at.
fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" | "datetime" => "2026-01-01T00:00:00Z",
        "date" => "2026-01-01",
        "duration" => "1h",
        "byte" => "ZXhhbXBsZQ==",
        "ipv4" | "ip" => "10.0.0.1",
        "ipv6" => "2001:db8::1",
        "cidr" => "10.0.0.0/16",
        "mac" => "00:00:5e:00:53:01",
        "uuid" | "uuid3" | "uuid4" | "uuid5" => "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
        "uri" | "url" => "https://example.com",
        "hostname" => "example.com",
        "email" => "me@example.com",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_its_schema() {
        for (schema, expected) in [
            (json!({}), "example"),
            (json!({"format": "date-time"}), "2026-01-01T00:00:00Z"),
            (json!({"maxLength": 3}), "10m"),
            (json!({"minLength": 20}), "example-example-example"),
            (json!({"minLength": 12, "maxLength": 12}), "example-exam"),
            (json!({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}), "example"),
            (json!({"pattern": "^([0-9]+(s|m|h))+$"}), "10m"),
            (json!({"pattern": "^ab{3}-[0-9]{2}(x|y)$"}), "abbb-00x"),
            (json!({"pattern": "^a(?=b)b$"}), MARKER),
            (json!({"pattern": "^[a-z]$", "minLength": 3}), MARKER),
        ] {
            assert_eq!(of(&schema), expected, "{schema}");
        }
    }
}
