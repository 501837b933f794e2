//! The names under which the controller of LeaderWorkerSets makes a Service and a StatefulSet for the groups of an object. It uses a Service
//! that is there already, whoever's it is, and tries for ever to make a StatefulSet of somebody else its own. So whose they are is looked at
//! here, and told.

use crate::live::LiveGroups;
use crate::owned::{self, Owned, StatefulSet, get};
use llm_serving::conditions::Obstacle;
use pilothouse_pods::transition::Announced;
use pilothouse_sdk::{Condition, Error, Kind};
use serde::Deserialize;

/// Whether nobody else has the names of the groups.
const GROUP_NAMES_FREE: &str = "GroupNamesFree";

/// The reason if somebody has: that of the host for the names of children.
const NAME_CONFLICT: &str = "NameConflict";

/// The Events about it.
pub const ANNOUNCED: [Announced<'_>; 1] =
    [Announced { condition_type: GROUP_NAMES_FREE, on_true: None, on_false: None }];

/// A Service, of which only matters whose it is.
#[derive(Deserialize)]
#[serde(transparent)]
struct Service(Owned);

impl Kind for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const FIELDS: &'static [&'static str] = owned::FIELDS;
}

/// What of somebody else's has the name that groups need.
///
/// # Errors
/// A lookup fails.
pub fn taken(name: &str) -> Result<Option<Obstacle>, Error> {
    let service = get::<Service>(name)?.map(|Service(it)| (Service::KIND, it));
    let stateful_set = get::<StatefulSet>(name)?.map(|StatefulSet(it)| (StatefulSet::KIND, it));
    let is_of_others = |(_, it): &(&str, Owned)| {
        let controller = it.metadata.controller();
        controller.is_none_or(|owner| owner.kind != LiveGroups::KIND || owner.name != name)
    };
    let found = service.into_iter().chain(stateful_set).find(is_of_others);
    Ok(found.map(|(kind, it)| {
        let owner = it.metadata.controller().map(|owner| format!(" but of {} '{}'", owner.kind, owner.name));
        let message = format!(
            "the {kind} '{name}' has the name that the groups of this object need, and is not theirs{}; the controller of \
             LeaderWorkerSets does not look whose it is, and the Pods of a group would not find each other; remove it, or give one of the \
             two another name",
            owner.unwrap_or_default()
        );
        Obstacle { reason: NAME_CONFLICT, message }
    }))
}

/// The condition about it; none if there is nothing to tell.
pub fn condition(taken: Option<&Obstacle>) -> Option<Condition> {
    taken.map(|taken| Condition::when(GROUP_NAMES_FREE, false, taken.reason, taken.message.as_str()))
}
