//! Builds the manifest at compile time, for [`crate::plugin!`]. None of this code is in the plugin when it runs.

/// The manifest's text as the bytes of a custom section.
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut section = [0; N];
    let mut i = 0;
    while i < N {
        section[i] = bytes[i];
        i += 1;
    }
    section
}

/// Refuses, at compile time, a text that JSON would have to escape: the macros join texts and escape nothing.
pub const fn check(texts: &[&str]) {
    let mut i = 0;
    while i < texts.len() {
        let bytes = texts[i].as_bytes();
        let mut j = 0;
        while j < bytes.len() {
            let plain = bytes[j] != b'"' && bytes[j] != b'\\' && bytes[j] >= b' ';
            assert!(plain, "texts of a plugin's manifest hold no quotes, backslashes or control characters");
            j += 1;
        }
        i += 1;
    }
}

/// A JSON list of kinds.
#[doc(hidden)]
#[macro_export]
macro_rules! __kinds {
    () => { "[]" };
    ($version:literal $kind:literal $(, $more_version:literal $more_kind:literal)*) => {
        concat!(
            "[{\"apiVersion\":\"", $version, "\",\"kind\":\"", $kind, "\"}",
            $(",{\"apiVersion\":\"", $more_version, "\",\"kind\":\"", $more_kind, "\"}",)*
            "]"
        )
    };
}

/// A JSON list of kinds to look up.
#[doc(hidden)]
#[macro_export]
macro_rules! __lookups {
    () => { "[]" };
    ($version:literal $kind:literal [$($word:ident $($text:literal)?),*]
        $(, $more_version:literal $more_kind:literal [$($more_word:ident $($more_text:literal)?),*])*) => {
        concat!(
            "[", $crate::__lookup!($version $kind $($word $($text)?),*),
            $(",", $crate::__lookup!($more_version $more_kind $($more_word $($more_text)?),*),)*
            "]"
        )
    };
}

/// One kind to look up as JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! __lookup {
    ($version:literal $kind:literal $($word:ident $($text:literal)?),*) => {
        concat!(
            "{\"apiVersion\":\"", $version, "\",\"kind\":\"", $kind, "\"",
            $($crate::__lookup_word!($word $($text)?),)* "}"
        )
    };
}

/// What a lookup is allowed or confined to, as JSON; any other word does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! __lookup_word {
    (all_namespaces) => {
        ",\"allNamespaces\":true"
    };
    (metadata_only) => {
        ",\"metadataOnly\":true"
    };
    (label_selector $text:literal) => {
        concat!(",\"labelSelector\":\"", $text, "\"")
    };
}

/// A JSON list of the fields read, for those child kinds that name them: `[finished items] remaining tokens`.
#[doc(hidden)]
#[macro_export]
macro_rules! __child_reads {
    ([$($done:expr),*]) => { concat!("[", $($done,)* "]") };
    ([] $version:literal $kind:literal reads [$($field:literal),*], $($rest:tt)*) => {
        $crate::__child_reads!([$crate::__child_read!($version $kind $($field),*)] $($rest)*)
    };
    ([$($done:expr),+] $version:literal $kind:literal reads [$($field:literal),*], $($rest:tt)*) => {
        $crate::__child_reads!([$($done,)+ ",", $crate::__child_read!($version $kind $($field),*)] $($rest)*)
    };
    ([$($done:expr),*] $version:literal $kind:literal, $($rest:tt)*) => {
        $crate::__child_reads!([$($done),*] $($rest)*)
    };
}

/// The fields read of one child kind, as JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! __child_read {
    ($version:literal $kind:literal $($field:literal),*) => {
        concat!(
            "{\"apiVersion\":\"", $version, "\",\"kind\":\"", $kind,
            "\",\"fields\":", $crate::__strings!($($field),*), "}"
        )
    };
}

/// A JSON list of what says how far children are.
#[doc(hidden)]
#[macro_export]
macro_rules! __child_readiness {
    () => { "[]" };
    ($version:literal $kind:literal $current:literal [$($failed:literal)?] [$($message:literal)?] $(, $($more:tt)+)?) => {
        concat!(
            "[", $crate::__readiness_of_kind!($version $kind $current [$($failed)?] [$($message)?])
            $(, $crate::__more_child_readiness!($($more)+))?, "]"
        )
    };
}

/// The others, each after a comma.
#[doc(hidden)]
#[macro_export]
macro_rules! __more_child_readiness {
    ($($version:literal $kind:literal $current:literal [$($failed:literal)?] [$($message:literal)?]),+) => {
        concat!($(",", $crate::__readiness_of_kind!($version $kind $current [$($failed)?] [$($message)?])),+)
    };
}

/// How far children of one kind are, as JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! __readiness_of_kind {
    ($version:literal $kind:literal $current:literal [$($failed:literal)?] [$($message:literal)?]) => {
        concat!(
            "{\"apiVersion\":\"", $version, "\",\"kind\":\"", $kind, "\",\"current\":\"", $current, "\""
            $(, ",\"failed\":\"", $failed, "\"")? $(, ",\"message\":\"", $message, "\"")?, "}"
        )
    };
}

/// A JSON list of strings.
#[doc(hidden)]
#[macro_export]
macro_rules! __strings {
    () => { "[]" };
    ($first:literal $(, $more:literal)*) => {
        concat!("[\"", $first, "\"", $(",\"", $more, "\"",)* "]")
    };
}

/// The kind of a measurement as the manifest names it; any other word does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! __measurement_kind {
    (counter) => {
        "counter"
    };
    (gauge) => {
        "gauge"
    };
    (histogram) => {
        "histogram"
    };
}

/// A JSON list of measurements.
#[doc(hidden)]
#[macro_export]
macro_rules! __measurements {
    () => { "[]" };
    ($kind:ident $name:literal $help:literal [$($label:literal),*] $([$($bucket:literal),*])?
        $(, $more_kind:ident $more_name:literal $more_help:literal [$($more_label:literal),*]
            $([$($more_bucket:literal),*])?)*) => {
        concat!(
            "[", $crate::__measurement!($kind $name $help [$($label),*] [$($($bucket),*)?]),
            $(",", $crate::__measurement!($more_kind $more_name $more_help [$($more_label),*] [$($($more_bucket),*)?]),)*
            "]"
        )
    };
}

/// One measurement as JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! __measurement {
    ($kind:ident $name:literal $help:literal [$($label:literal),*] [$($bucket:literal),*]) => {
        concat!(
            "{\"name\":\"", $name, "\",\"kind\":\"", $crate::__measurement_kind!($kind),
            "\",\"help\":\"", $help, "\",\"labels\":", $crate::__strings!($($label),*),
            ",\"buckets\":", $crate::__numbers!($($bucket),*), "}"
        )
    };
}

/// A JSON list of numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! __numbers {
    () => { "[]" };
    ($first:literal $(, $more:literal)*) => {
        concat!("[", $first, $(",", $more,)* "]")
    };
}

/// The version given, or the crate's.
#[doc(hidden)]
#[macro_export]
macro_rules! __version {
    () => {
        env!("CARGO_PKG_VERSION")
    };
    ($version:literal) => {
        $version
    };
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn what_lookups_are_confined_to_is_json() -> Result<(), serde_json::Error> {
        let text = crate::__lookups!(
            "v1" "Node" [], "v1" "Pod" [all_namespaces, metadata_only], "v1" "Secret" [label_selector "app in (web, db)"]
        );
        let expected = json!([
            {"apiVersion": "v1", "kind": "Node"},
            {"apiVersion": "v1", "kind": "Pod", "allNamespaces": true, "metadataOnly": true},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": "app in (web, db)"},
        ]);
        assert_eq!(serde_json::from_str::<Value>(text)?, expected);
        Ok(())
    }

    #[test]
    fn the_readiness_of_children_is_json() -> Result<(), serde_json::Error> {
        let text = crate::__child_readiness!(
            "v1" "Queue" "self.data.open == 'yes'" [] [], "v1" "Mine" "true" ["self.data.shut == 'yes'"] [],
            "apps/v1" "Deployment" "true" ["false"] ["'who knows'"]
        );
        let expected = json!([
            {"apiVersion": "v1", "kind": "Queue", "current": "self.data.open == 'yes'"},
            {"apiVersion": "v1", "kind": "Mine", "current": "true", "failed": "self.data.shut == 'yes'"},
            {"apiVersion": "apps/v1", "kind": "Deployment", "current": "true", "failed": "false", "message": "'who knows'"},
        ]);
        assert_eq!(serde_json::from_str::<Value>(text)?, expected);
        assert_eq!(crate::__child_readiness!(), "[]");
        Ok(())
    }
}
