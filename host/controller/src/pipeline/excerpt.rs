//! What a plugin is shown of its object, where its manifest names the fields that it reads: those, and what tells the object
//! from others. A change of anything else is no news to the plugin. Pure; an object that is odd is shown as it is.

use std::collections::BTreeMap;

use pilothouse_engine::Manifest;

use crate::members::{members, push_key};

/// What every plugin is shown: which object, which state of its spec, since when, and whether it is to go.
const IDENTITY: [&str; 8] = [
    "/apiVersion",
    "/kind",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/generation",
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
];

/// The fields that a plugin is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// All of the value, not only some of its fields.
    whole: bool,
    fields: BTreeMap<String, Excerpt>,
}

impl Excerpt {
    /// What the manifest says; none if it leaves that open, for then everything is shown.
    pub fn declared(manifest: &Manifest) -> Option<Self> {
        let reads = manifest.reads.as_ref()?;
        let mut all = Self::default();
        IDENTITY.into_iter().chain(reads.iter().map(String::as_str)).for_each(|pointer| all.add(pointer));
        Some(all)
    }

    /// Adds the field at a JSON pointer (RFC 6901).
    fn add(&mut self, pointer: &str) {
        let steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
        steps.fold(self, |part, step| part.fields.entry(step).or_default()).whole = true;
    }

    /// The excerpt of an object's text. A field of which only parts are shown, but which has no parts, is shown whole.
    pub fn of(&self, text: &str) -> String {
        let mut excerpt = String::with_capacity(text.len());
        self.write(text, &mut excerpt);
        excerpt
    }

    fn write(&self, text: &str, excerpt: &mut String) {
        let Some(members) = (!self.whole).then(|| members(text)).flatten() else { return excerpt.push_str(text) };
        excerpt.push('{');
        for (key, value) in members {
            if let Some(part) = self.fields.get(&*key) {
                push_key(excerpt, &key);
                part.write(value.get(), excerpt);
            }
        }
        excerpt.push('}');
    }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::KindRef;

    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"e/v1","kind":"Web","metadata":{"annotations":{"a/b":"1","~c":"2","d":"3"},
        "generation":2,"name":"web","resourceVersion":"9"},"spec":{"list":[1,{"x":2}],"od\"d":1},"status":{"phase":"Up"}}"#;

    fn excerpt(reads: &[&str]) -> Option<Excerpt> {
        let reads = Some(reads.iter().copied().map(str::to_owned).collect());
        Excerpt::declared(&Manifest { reads, ..Manifest::new("web", "1", KindRef::new("e/v1", "Web")) })
    }

    #[test]
    fn shows_the_identity_and_what_is_read() {
        let identity = r#""apiVersion":"e/v1","kind":"Web","metadata":{"generation":2,"name":"web"}"#;
        for (reads, expected) in [
            (&[][..], format!("{{{identity}}}")),
            (&["/status"], format!(r#"{{{identity},"status":{{"phase":"Up"}}}}"#)),
            (&["/spec/od\"d", "/nothing/at/all"], format!(r#"{{{identity},"spec":{{"od\"d":1}}}}"#)),
            (&["/spec/list/1"], format!(r#"{{{identity},"spec":{{"list":[1,{{"x":2}}]}}}}"#)),
            (&["/status/phase", "/status"], format!(r#"{{{identity},"status":{{"phase":"Up"}}}}"#)),
            (
                &["/metadata/annotations/a~1b", "/metadata/annotations/~0c"],
                format!("{{{identity}}}")
                    .replace(r#"{"generation""#, r#"{"annotations":{"a/b":"1","~c":"2"},"generation""#),
            ),
        ] {
            assert_eq!(excerpt(reads).map(|excerpt| excerpt.of(OBJECT)), Some(expected), "{reads:?}");
        }
    }

    #[test]
    fn everything_is_shown_where_nothing_is_declared_and_of_what_is_odd() {
        assert_eq!(Excerpt::declared(&Manifest::new("web", "1", KindRef::new("e/v1", "Web"))), None);
        for odd in ["", "[1]", "{\"metadata\":", "7"] {
            assert_eq!(excerpt(&["/spec"]).map(|excerpt| excerpt.of(odd)).as_deref(), Some(odd));
        }
        let flat = r#"{"metadata":7,"spec":null}"#;
        assert_eq!(excerpt(&["/spec/a"]).map(|excerpt| excerpt.of(flat)).as_deref(), Some(flat));
    }
}
