//! A custom resource in its usual shape: metadata, spec, status. It checks nothing beyond the types.

use crate::{Kind, Metadata};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A custom resource with a spec of type `Spec`. Its status is skipped unless `Status` is given.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Object<Spec, Status = IgnoredAny> {
    /// Name, namespace, labels, generation and so on, as the API serves them.
    pub metadata: Metadata,
    /// What the user asks for.
    pub spec: Spec,
    /// The status as it was last written, if there is one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

impl<Spec, Status> Object<Spec, Status> {
    /// The object's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The object's namespace; empty for a cluster-scoped kind.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }
}

/// An object is of the kind that its spec stands for.
impl<Spec: Kind, Status> Kind for Object<Spec, Status> {
    const API_VERSION: &'static str = Spec::API_VERSION;
    const KIND: &'static str = Spec::KIND;
    const FIELDS: &'static [&'static str] = Spec::FIELDS;
}
