//! How many objects and children a report is about. Values only.

use serde::Serialize;

use super::object::{Action, ObjectReport, State};

/// How many objects and children a plan is about.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Objects of which a child, or a finalizer, would change.
    pub changed: usize,
    /// Objects with which nothing would happen.
    pub unchanged: usize,
    /// Objects that the host would leave alone.
    pub left_alone: usize,
    /// Objects that are pinned to another version.
    pub pinned: usize,
    /// Objects that are being deleted.
    pub deleting: usize,
    /// Objects that would be in error.
    pub in_error: usize,
    /// Those of them that say the same today.
    pub in_error_today: usize,
    /// What would become of children.
    pub children: ChildCounts,
    /// Objects that the host would write itself: a finalizer, or what a decorator sets. Also those in error.
    #[serde(skip)]
    pub written: usize,
}

/// How many children would be created, and so on.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildCounts {
    /// Created.
    pub created: usize,
    /// Changed.
    pub changed: usize,
    /// Deleted and created anew.
    pub recreated: usize,
    /// Deleted.
    pub deleted: usize,
    /// Kept from being deleted until somebody confirms it.
    pub held_back: usize,
    /// Refused by the API server.
    pub refused: usize,
}

impl Counts {
    /// Counts objects and their children.
    pub fn of(objects: &[ObjectReport]) -> Self {
        let mut counts = Self::default();
        for object in objects {
            *match object.state {
                State::Changed => &mut counts.changed,
                State::Unchanged => &mut counts.unchanged,
                State::LeftAlone => &mut counts.left_alone,
                State::Pinned => &mut counts.pinned,
                State::Deleting => &mut counts.deleting,
                State::InError => &mut counts.in_error,
            } += 1;
            counts.in_error_today += usize::from(object.is_in_error_today);
            counts.written += usize::from(object.adds_finalizer || !object.fields.is_empty());
            for change in object.steps.iter().flatten() {
                let children = &mut counts.children;
                *match change.action {
                    Action::Create => &mut children.created,
                    Action::Update => &mut children.changed,
                    Action::Recreate => &mut children.recreated,
                    Action::Delete => &mut children.deleted,
                    Action::HoldBack => &mut children.held_back,
                } += 1;
                children.refused += usize::from(change.refused.is_some());
            }
        }
        counts
    }

    /// What it comes to.
    pub fn effect(&self) -> Effect {
        let ChildCounts { created, changed, recreated, deleted, held_back, refused } = &self.children;
        if self.in_error > self.in_error_today || *refused > 0 {
            return Effect::Trouble;
        }
        let changes = self.changed + self.written + created + changed + recreated + deleted + held_back;
        if changes > 0 { Effect::Changes } else { Effect::Nothing }
    }
}

/// What a new version comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing would change.
    Nothing,
    /// Something would.
    Changes,
    /// An object would be in error that is not today, or the API server would refuse a child.
    Trouble,
}
