//! A child that a server returns, how the host treats it, and what there is under its name.

use pilothouse_sdk::{Handling, ImmutablePolicy, Kind, Options, Request, Response};
use serde_json::{Value, json};

/// The reason of the host where another object has the name of a child.
const NAME_CONFLICT: &str = "NameConflict";

/// What there is under the name of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The child.
    Ours,
    /// Nothing yet, or nothing any more.
    Missing,
    /// An object of somebody else.
    Taken,
}

impl Standing {
    /// What there is, as far as the host has seen. The manifest must name `/metadata/uid` among the fields read of the kind.
    pub fn of<K: Kind>(request: &Request<impl Sized>, name: &str) -> Self {
        if request.readiness::<K>(name).is_some() {
            return Self::Ours;
        }
        let is_taken = request.refused().iter().any(|refused| {
            let is_it =
                refused.kind.kind == K::KIND && refused.kind.api_version == K::API_VERSION && refused.name == name;
            is_it && refused.reason == NAME_CONFLICT
        });
        if is_taken { Self::Taken } else { Self::Missing }
    }
}

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

    /// The child as it is fit for what leads to another one: as it should be where that one is ours, as it is until it is there, and not
    /// at all where somebody else has its name.
    pub fn leading_to(mut self, target: Standing) -> Option<Self> {
        match target {
            Standing::Ours => Some(self),
            Standing::Missing => {
                self.options.handling = Handling::Keep;
                Some(self)
            }
            Standing::Taken => None,
        }
    }

    /// A response with this child.
    pub fn add_to(self, response: Response) -> Response {
        response.child_with(self.object, self.options)
    }
}
