//! One child of a response. It does not say whether it should exist.

use pilothouse_sdk::{Handling, Options, Response, json};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A child that is to exist, and what the host does with it.
#[derive(Debug)]
pub struct DesiredChild {
    /// The object, as the text that the host gets. The trees of a hundred Pods would take a megabyte more, and a fresh instance pays for each page.
    pub object: Box<RawValue>,
    /// What the host does with it.
    pub handling: Handling,
    referent: Option<Referent>,
    /// The fields that are left as they are.
    unmanaged: Vec<String>,
}

/// What Pods refer to by name: its version, its kind and its name.
pub type Referent = (String, String, String);

/// The kinds of children to which Pods refer by name.
const REFERENTS: [&str; 3] = ["ConfigMap", "PodGroup", "Service"];

impl DesiredChild {
    /// It is created, and repaired when it differs.
    pub fn applied(object: &Value) -> Self {
        Self::of(object, Handling::Apply)
    }

    /// It is created and then left as it is: a Pod cannot change, nor can the copy of a ConfigMap.
    pub fn created(object: &Value) -> Self {
        Self::of(object, Handling::Create)
    }

    fn of(object: &Value, handling: Handling) -> Self {
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_referent = object["kind"].as_str().is_some_and(|kind| REFERENTS.contains(&kind));
        let names = [&object["apiVersion"], &object["kind"], &object["metadata"]["name"]];
        let referent = is_referent.then(|| names.map(text_of).into());
        Self { object: text(object), handling, referent, unmanaged: Vec::new() }
    }

    /// It exists and stays as it is, whatever this version of the plugin would make of the spec.
    pub fn kept(api_version: &str, kind: &str, name: &str) -> Self {
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
        Self { object, handling: Handling::Keep, referent: None, unmanaged: Vec::new() }
    }

    /// A Pod that stays as it is and has the labels and annotations of this object: its spec cannot change, and another version of the plugin
    /// might make another one.
    pub fn relabelled(mut pod: Value) -> Self {
        if let Some(fields) = pod.as_object_mut() {
            fields.remove("spec");
        }
        Self { unmanaged: vec!["/spec".to_owned()], ..Self::applied(&pod) }
    }

    /// What it is, if Pods refer to it by name, unless it is kept and so is there already.
    pub fn referent(&self) -> Option<&Referent> {
        self.referent.as_ref()
    }

    /// A response with this child, too.
    pub fn add_to(self, response: Response) -> Response {
        response.child_with(
            self.object,
            Options { handling: self.handling, unmanaged: self.unmanaged, ..Options::default() },
        )
    }
}

/// The text of a child. Every JSON value can be written. The default, `null`, is never used; the host would refuse it.
fn text(object: &Value) -> Box<RawValue> {
    to_raw_value(object).unwrap_or_default()
}
