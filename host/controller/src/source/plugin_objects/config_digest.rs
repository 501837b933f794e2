//! The digest of a configuration: by it an approval and the status say which one they are about. Two texts of one JSON have the same.

use pilothouse_engine::digest;
use serde_json::Value;

use super::digest_text;
use crate::api::PluginSpec;

/// The digest of what a `Plugin` says now.
pub fn of_spec(spec: &PluginSpec) -> String {
    of_text(spec.config.as_ref().map(|config| config.text()))
}

/// The digest of a configuration as JSON text: that of the text with sorted keys and without white space. No configuration is the empty text.
pub fn of_text(config: Option<&str>) -> String {
    let text = config.unwrap_or_default();
    let sorted = serde_json::from_str::<Value>(text).map(|mut value| {
        value.sort_all_objects();
        value.to_string()
    });
    // What is nested too deeply for a parser is taken as it is: the API server writes it in one form, too.
    digest_text::text(&digest(sorted.as_deref().unwrap_or(text).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_configuration_have_one_digest() {
        let one = of_text(Some(r#"{"a":1,"b":{"c":[true,null],"d":"x"}}"#));
        let same = "{ \"b\": {\"d\": \"x\", \"c\": [true, null]},\n \"a\": 1 }";
        assert_eq!(of_text(Some(same)), one);
        let others =
            [None, Some("{}"), Some("null"), Some(r#"{"a":2}"#), Some(r#"{"a":1,"b":{"c":[null,true],"d":"x"}}"#)];
        for other in others {
            assert_ne!(of_text(other), one, "{other:?}");
        }
    }

    #[test]
    fn no_configuration_has_the_digest_of_the_empty_text() {
        let expected = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(of_text(None), expected);
    }

    #[test]
    fn what_is_nested_deeply_has_a_digest_too() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_ne!(of_text(Some(&deep(1000))), of_text(Some(&deep(1001))));
    }
}
