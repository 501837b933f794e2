//! A version that is needed for pins alone and does not take what its `Plugin` says now. It keeps nobody from work. Values only.

use super::{digest_text, pins};
use crate::{
    api::Plugin,
    source::{loader::NotLoaded, plugin_memory::Wanted},
};

/// Such a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedVersion {
    /// Its digest, hexadecimal digits.
    pub digest: String,
    /// The word for conditions.
    pub reason: &'static str,
    why: String,
    /// Whether that may pass by itself.
    pub is_passing: bool,
    /// What becomes of it.
    pub fate: Fate,
    /// What it would keep, if there is no memory for it.
    pub wanted: Option<Wanted>,
}

/// What becomes of a version that does not take what is said now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on with the configuration that it had.
    Keeps,
    /// Its objects stay as they are.
    LeftOut,
}

impl RefusedVersion {
    /// The version of this digest.
    pub fn new(digest: &str, why: &NotLoaded, fate: Fate) -> Self {
        let (digest, reason) = (digest.to_owned(), why.reason());
        let wanted = match why {
            NotLoaded::NoRoom(no_room) => Some(no_room.wanted),
            _ => None,
        };
        Self { digest, reason, why: why.to_string(), is_passing: why.is_passing(), fate, wanted }
    }

    /// What is told of it: the reason, and a sentence that names it by its number if the status of its `Plugin` knows that.
    pub fn told(&self, plugin: &Plugin) -> (&'static str, String) {
        let mut known = plugin.status.iter().flat_map(pins::numbered);
        let number = known.find(|(_, digest)| *digest == self.digest).map(|(number, _)| format!("{number}, "));
        let (version, why) = (digest_text::text(&self.digest), &self.why);
        let number = number.unwrap_or_default();
        let fate = match self.fate {
            Fate::Keeps => ", which goes on with the configuration that it had",
            Fate::LeftOut => ", which is not loaded, so that they stay as they are",
        };
        (self.reason, format!("objects are pinned to version {number}{version}{fate}: {why}"))
    }
}
