//! The inputs of a call, as fingerprints. A plugin is a function of its inputs, so a call with the same inputs can be skipped.
//! Lookups are inputs as well, but they are known only after the call; see `answer.rs`. Pure.

use std::hash::{DefaultHasher, Hash};

use pilothouse_engine::{
    Fingerprint,
    contract::{Readiness, RefusedChild},
};

use crate::{
    labels,
    object::Object,
    pipeline::observe::Observed,
    plugin::Called,
    projection::{Projected, Projections},
};

/// The fingerprint of a call's inputs, without lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    object: ObjectState,
    /// The plugin's version and configuration, the projections of the children, and the installed kinds.
    others: Fingerprint,
}

impl Inputs {
    /// The inputs of a call of this version of the plugin.
    pub fn of(called: Called<'_>, observed: &Observed, refused: &[RefusedChild]) -> Self {
        let object = ObjectState::of(&observed.object, observed.projection.as_deref());
        Self { object, others: others(called, observed, refused) }
    }

    /// The same inputs with another state of the object; none if the plugin sees a difference.
    pub fn with_object(self, object: ObjectState) -> Option<Self> {
        (self.object.shown == object.shown).then_some(Self { object, ..self })
    }
}

/// The fingerprint of one state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// The fields that the plugin reads.
    shown: Fingerprint,
    /// Other fields that the host's own decisions depend on.
    host: Fingerprint,
}

impl ObjectState {
    /// The state of an object, for a plugin with these projections.
    pub fn shown_by(projections: &Projections, object: &Object) -> Self {
        Self::of(object, projections.of_object(object).as_deref())
    }

    /// The state of an object with this projection; none if the plugin reads all of it.
    fn of(object: &Object, projection: Option<&str>) -> Self {
        let Some(projection) = projection else {
            // The fingerprint changes with every write of the object, so it covers the host's fields, too.
            return Self { shown: object.fingerprint(), host: Fingerprint::of(&()) };
        };
        // The guard against mass deletion and adoption read these annotations later. With one of them, every change counts.
        // A search in the text needs no parsing. If it finds the name elsewhere in the object, that only costs calls.
        let is_annotated = [labels::ALLOW_REMOVAL, labels::ADOPT].iter().any(|mark| object.text.contains(mark));
        let annotated = is_annotated.then_some(&object.resource_version);
        // The status is included although the host writes it: if somebody else edits it, it has to be repaired. After an own write,
        // `with_object` takes the new state over.
        let host = Fingerprint::of(&(&object.uid, &object.finalizers, object.status_text(), annotated));
        Self { shown: Fingerprint::of(projection), host }
    }
}

fn others(called: Called<'_>, observed: &Observed, refused: &[RefusedChild]) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    (called.digest, called.config).hash(&mut hasher);
    let has_readiness = called.contract.has_readiness();
    if has_readiness {
        for RefusedChild { kind, namespace, name, reason, message } in refused {
            (&kind.api_version, &kind.kind, namespace, name, reason, message).hash(&mut hasher);
        }
    }
    for child in &observed.children {
        let shown = match &child.projection {
            Projected::All => &*child.object.resource_version,
            Projected::Part(text) => {
                if has_readiness {
                    let Readiness { status, reason, message } = observed.readiness_of(child);
                    (status as u8, reason, message).hash(&mut hasher);
                }
                text
            }
            // The request does not have this child, so its creation is no new input either.
            Projected::Nothing => continue,
        };
        (&child.object.uid, shown).hash(&mut hasher);
    }
    observed.schemas().for_each(|schema| schema.hash(&mut hasher));
    // The check refuses children of kinds that are not installed, so their set is an input, too.
    observed.kinds.keys().for_each(|kind| kind.hash(&mut hasher));
    observed.namespaces.hash(&mut hasher);
    Fingerprint::of_hashed(&hasher)
}
