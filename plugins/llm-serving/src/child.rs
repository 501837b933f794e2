//! A child that a server returns, and how the host treats it.

use pilothouse_sdk::{Handling, ImmutablePolicy, Kind, Options, Response};
use serde_json::{Value, json};

/// A child.
#[derive(Clone, Debug)]
pub struct Child {
    /// The object.
    pub object: Value,
    /// How the host treats it.
    pub options: Options,
}

impl Child {
    /// A child that is treated as most children are.
    pub fn new(object: Value) -> Self {
        Self { object, options: Options::default() }
    }

    /// A child that is made anew where a change of it is refused.
    pub fn recreated(object: Value) -> Self {
        Self { object, options: Options { on_immutable: ImmutablePolicy::Recreate, ..Options::default() } }
    }

    /// A child of this kind and name that stays as it is.
    pub fn untouched<K: Kind>(name: &str) -> Self {
        let object = json!({ "apiVersion": K::API_VERSION, "kind": K::KIND, "metadata": { "name": name } });
        Self { object, options: Options { handling: Handling::Keep, ..Options::default() } }
    }

    /// A response with this child.
    pub fn add_to(self, response: Response) -> Response {
        response.child_with(self.object, self.options)
    }
}
