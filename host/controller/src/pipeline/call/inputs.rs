//! What a call is based on: a plugin is a function of its inputs, so the same inputs have the same answer. What it looks up is
//! an input too, but is known only after the call. Pure.

use std::hash::{DefaultHasher, Hash};

use pilothouse_engine::Fingerprint;

use crate::{
    labels,
    object::Object,
    pipeline::observe::Observed,
    plugin::projection::{Projected, Projections},
};

/// Names the inputs of a call, but for what the plugin looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    object: ObjectState,
    /// The plugin's version, what it is shown of the children, and which kinds there are.
    others: Fingerprint,
}

impl Inputs {
    /// The inputs of a call of the version of a plugin that has this digest, with this configuration.
    pub fn of(digest: &str, config: &str, observed: &Observed) -> Self {
        let object = ObjectState::of(&observed.object, observed.projection.as_deref());
        Self { object, others: others(digest, config, observed) }
    }

    /// The same inputs with the object in another state; none if the plugin would be shown something else.
    pub fn with_object(self, object: ObjectState) -> Option<Self> {
        (self.object.shown == object.shown).then_some(Self { object, ..self })
    }
}

/// Names one state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// What the plugin is shown.
    shown: Fingerprint,
    /// What else the host goes by.
    host: Fingerprint,
}

impl ObjectState {
    /// The state of an object for a plugin that is shown what is declared.
    pub fn shown_by(projections: &Projections, object: &Object) -> Self {
        Self::of(object, projections.of_object(object).as_deref())
    }

    /// The state of an object of which a plugin is shown this projection; none: all of it.
    fn of(object: &Object, projection: Option<&str>) -> Self {
        let Some(projection) = projection else {
            return Self { shown: object.fingerprint(), host: Fingerprint::of(&()) };
        };
        // Of an object that somebody annotated for the host, any change counts: these annotations are read elsewhere.
        let is_annotated = [labels::ALLOW_REMOVAL, labels::ADOPT].iter().any(|mark| object.text.contains(mark));
        let annotated = is_annotated.then_some(&object.resource_version);
        let host = Fingerprint::of(&(&object.uid, &object.finalizers, object.status_text(), annotated));
        Self { shown: Fingerprint::of(projection), host }
    }
}

fn others(digest: &str, config: &str, observed: &Observed) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    (digest, config).hash(&mut hasher);
    for child in &observed.children {
        let shown = match &child.projection {
            Projected::All => &*child.object.resource_version,
            Projected::Part(text) => text,
            Projected::Nothing => continue,
        };
        (&child.object.uid, shown).hash(&mut hasher);
    }
    observed.schemas().for_each(|schema| schema.hash(&mut hasher));
    // A kind that comes or goes changes what may be returned.
    observed.kinds.keys().for_each(|kind| kind.hash(&mut hasher));
    Fingerprint::of_hashed(&hasher)
}
