//! Which version of a `Plugin` answers an object, and why. Pure: it follows from spec and status.

use super::{pins, rollout};
use crate::{api::Plugin, object::Object};

/// A version that answers an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweringVersion {
    /// Its digest, hexadecimal digits; for a pin to a number that nobody knows, that number.
    pub digest: String,
    /// Its number, if the status says it.
    pub version: Option<String>,
    /// Why it is this one.
    pub because: AnswersBecause,
}

/// Why a version answers an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswersBecause {
    /// It answers whatever no other one does.
    AtWork,
    /// The object belongs to its canary.
    Canary,
    /// The object is pinned to it.
    Pin,
}

/// The version that answers an object of a `Plugin`, by its spec and status; none before its first version.
pub fn answering(plugin: &Plugin, object: &Object) -> Option<AnsweringVersion> {
    let stable = rollout::stable_of(plugin)?;
    let going_on = plugin.status.as_ref().and_then(|status| status.rollout.as_ref());
    let division = rollout::division(plugin, stable, going_on);
    let digest = division.as_ref().map_or(stable, |division| division.digest_for(object));
    let because = match &division {
        Some(division) if division.pins.contains_key(&object.name) => AnswersBecause::Pin,
        _ if digest == stable => AnswersBecause::AtWork,
        _ => AnswersBecause::Canary,
    };
    let mut known = plugin.status.iter().flat_map(pins::numbered);
    let version = known.find(|(_, known)| *known == digest).map(|(version, _)| version.to_owned());
    Some(AnsweringVersion { digest: digest.to_owned(), version, because })
}
