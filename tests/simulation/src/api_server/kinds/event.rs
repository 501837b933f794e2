//! Events of the core group.

use super::Strategy;
use crate::api_server::names::NameRule;

/// Events.
pub(super) static EVENT: Strategy = Strategy {
    names: NameRule::PathSegment,
    knows_finalizers: false,
    checks_metadata_last: true,
    create_on_update: true,
    validate: |object, _, causes| {
        let (namespace, involved) = (&object["metadata"]["namespace"], &object["involvedObject"]["namespace"]);
        let is_default = involved.as_str().unwrap_or_default().is_empty() && namespace == "default";
        if involved != namespace && !is_default {
            causes.invalid("involvedObject.namespace", involved, "does not match event.namespace");
        }
    },
    ..Strategy::USUAL
};
