//! Projections: the parts of its object and children that a plugin receives if its manifest names the fields that it reads. A
//! projection has those fields and the identity of the object. The plugin is not called for a change of anything else, nor for a
//! child without any of the fields. Pure; an object that cannot be parsed is passed on unchanged.

use std::collections::BTreeMap;

use pilothouse_engine::{Manifest, contract::KindRef};

use crate::{
    object::Object,
    object_text::ObjectText,
    raw_json::{push_key, raw_fields},
    schema::pointer_keys,
};

/// Values that count as absent, following the Kubernetes API conventions on optional fields. A new Deployment, for example, has an
/// empty status until its controller has observed it.
const EMPTY: [&str; 4] = ["{}", "[]", "null", "\"\""];

/// The fields in every projection: the object's identity, generation, and times of creation and deletion.
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

/// The projection of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projected {
    /// The whole child.
    All,
    /// The fields that the plugin reads, and the identity.
    Part(String),
    /// Nothing: the child has none of the fields that the plugin reads, or they are empty.
    Nothing,
}

/// The text of a projection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedText {
    /// The text.
    pub text: String,
    /// Whether it has any of the fields that are read, beside the identity.
    pub has_read_fields: bool,
}

/// A tree of fields to keep.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// Whether the whole value is kept, not only some of its fields.
    whole: bool,
    /// Whether the plugin declares that it reads the value; the identity is kept without that.
    is_read: bool,
    fields: BTreeMap<String, Projection>,
}

impl Projection {
    /// Keeps these fields and the identity.
    pub fn showing(fields: &[String]) -> Self {
        let mut all = Self::default();
        IDENTITY.into_iter().for_each(|pointer| all.at(pointer).whole = true);
        for pointer in fields {
            let part = all.at(pointer);
            (part.whole, part.is_read) = (true, true);
        }
        all
    }

    /// The node at a JSON pointer (RFC 6901).
    fn at(&mut self, pointer: &str) -> &mut Self {
        pointer_keys(pointer).fold(self, |part, key| part.fields.entry(key).or_default())
    }

    /// The projection of an object's text. A field that is no object is kept whole even if only parts of it are selected.
    pub fn of(&self, text: &ObjectText) -> ProjectedText {
        let mut projection = String::with_capacity(text.len());
        let fields = if self.whole { None } else { text.fields() };
        let has_read_fields = match fields {
            Some(fields) => self.write_fields(fields.iter().map(|(key, value)| (&**key, &**value)), &mut projection),
            None => self.write_whole(&text.read(), &mut projection),
        };
        ProjectedText { text: projection, has_read_fields }
    }

    /// Writes the projection of a value, and says whether it has any of the fields that are read.
    fn write(&self, text: &str, projection: &mut String) -> bool {
        match (!self.whole).then(|| raw_fields(text)).flatten() {
            Some(fields) => self.write_fields(fields.iter().map(|(key, value)| (&**key, value.get())), projection),
            None => self.write_whole(text, projection),
        }
    }

    fn write_fields<'t>(&self, fields: impl Iterator<Item = (&'t str, &'t str)>, projection: &mut String) -> bool {
        let mut has_read_fields = false;
        projection.push('{');
        for (key, value) in fields {
            if let Some(part) = self.fields.get(key) {
                push_key(projection, key);
                has_read_fields |= part.write(value, projection);
            }
        }
        projection.push('}');
        has_read_fields
    }

    fn write_whole(&self, text: &str, projection: &mut String) -> bool {
        projection.push_str(text);
        // The second case: the plugin reads fields of this value, but it is no object. So it counts as read, whatever it is.
        self.is_read && !EMPTY.contains(&text) || !self.whole
    }
}

/// The projections that a manifest declares. Without a declaration, the whole object is passed on.
#[derive(Clone, Debug, Default)]
pub struct Projections {
    object: Option<Projection>,
    children: BTreeMap<KindRef, Projection>,
}

impl Projections {
    /// The projections of a manifest.
    pub fn declared(manifest: &Manifest) -> Self {
        let children =
            manifest.child_reads.iter().map(|reads| (reads.kind.clone(), Projection::showing(&reads.fields)));
        Self { object: manifest.reads.as_deref().map(Projection::showing), children: children.collect() }
    }

    /// The projection of the object; none means the whole object.
    pub fn of_object(&self, object: &Object) -> Option<String> {
        self.object.as_ref().map(|projection| projection.of(&object.text).text)
    }

    /// The projection of a child of this kind.
    pub fn of_child(&self, kind: &KindRef, child: &Object) -> Projected {
        self.children.get(kind).map_or(Projected::All, |projection| match projection.of(&child.text) {
            ProjectedText { text, has_read_fields: true } => Projected::Part(text),
            ProjectedText { has_read_fields: false, .. } => Projected::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::ChildReads;

    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"e/v1","kind":"Web","metadata":{"annotations":{"a/b":"1","~c":"2","d":"3"},
        "generation":2,"name":"web","resourceVersion":"9"},"spec":{"list":[1,{"x":2}],"od\"d":1},"status":{"phase":"Up"}}"#;

    fn owned(fields: &[&str]) -> Vec<String> {
        fields.iter().copied().map(str::to_owned).collect()
    }

    fn projection(reads: &[&str]) -> Projection {
        Projection::showing(&owned(reads))
    }

    fn manifest() -> Manifest {
        Manifest::new("web", "1", KindRef::new("e/v1", "Web"))
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
            assert_eq!(projection(reads).of(&OBJECT.into()).text, expected, "{reads:?}");
        }
    }

    #[test]
    fn there_is_something_to_read_where_a_field_that_is_read_has_a_value() {
        for (reads, text, expected) in [
            (&[][..], r#"{"kind":"Pod","status":{"a":1}}"#, false),
            (&["/status"], r#"{"kind":"Pod","status":{"a":1}}"#, true),
            (&["/status"], r#"{"kind":"Pod","status":{}}"#, false),
            (&["/status"], r#"{"kind":"Pod","spec":{"a":1}}"#, false),
            (&["/spec/list", "/status/phase"], r#"{"spec":{"list":[]},"status":{"phase":""}}"#, false),
            (&["/spec/list", "/status/phase"], r#"{"spec":{"list":null},"status":{"phase":"Up"}}"#, true),
            (&["/metadata/uid"], r#"{"metadata":{"uid":"u"}}"#, true),
            (&["/spec/count", "/spec/off"], r#"{"spec":{"count":0}}"#, true),
            (&["/spec/off"], r#"{"spec":{"off":false}}"#, true),
        ] {
            assert_eq!(projection(reads).of(&text.into()).has_read_fields, expected, "{reads:?} of {text}");
        }
    }

    #[test]
    fn everything_is_shown_where_nothing_is_declared_and_of_what_is_odd() {
        let (object, open) = (Object::sample("ns", "a"), Projections::declared(&manifest()));
        assert_eq!(open.of_object(&object), None);
        assert_eq!(open.of_child(&KindRef::new("v1", "Pod"), &object), Projected::All);
        for odd in ["", "[1]", "{\"metadata\":", "7", r#"{"metadata":7,"spec":null}"#] {
            let whole = ProjectedText { text: odd.to_owned(), has_read_fields: true };
            assert_eq!(projection(&["/spec/a"]).of(&odd.into()), whole);
        }
    }

    #[test]
    fn each_kind_of_children_has_its_own() {
        let (pod, secret) = (KindRef::new("v1", "Pod"), KindRef::new("v1", "Secret"));
        let child_reads = vec![ChildReads { kind: pod.clone(), fields: owned(&["/status"]) }];
        let projections = Projections::declared(&Manifest { child_reads, ..manifest() });
        let child = Object { text: r#"{"kind":"Any","spec":1,"status":2}"#.into(), ..Object::sample("ns", "a") };
        let part = Projected::Part(r#"{"kind":"Any","status":2}"#.to_owned());
        assert_eq!(projections.of_child(&pod, &child), part);
        assert_eq!(projections.of_child(&secret, &child), Projected::All);
        let bare = Object { text: r#"{"kind":"Any","status":{}}"#.into(), ..Object::sample("ns", "a") };
        assert_eq!(projections.of_child(&pod, &bare), Projected::Nothing);
        assert_eq!(projections.of_object(&child), None);
    }
}
