//! The ways in which something is written, each one request. Measures nothing.

use crate::subject::Subject;

/// How something is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Server-side apply of the whole object.
    Apply,
    /// A merge patch of what differs.
    Patch,
    /// The whole object, by POST or PUT.
    Whole,
    /// The same in protobuf, as clients in Go do it for the kinds of Kubernetes.
    WholeInProtobuf,
}

impl Way {
    /// What it is called in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Patch => "merge patch",
            Self::Whole => "whole",
            Self::WholeInProtobuf => "whole, protobuf",
        }
    }

    /// Its part of a namespace's name.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Whole => "whole",
            Self::WholeInProtobuf => "protobuf",
        }
    }

    /// The ways in which something can be changed.
    pub fn of_changes(subject: &Subject) -> Vec<Self> {
        [Self::Apply, Self::Patch].into_iter().chain(Self::of_whole(subject)).collect()
    }

    /// The ways in which something can be created.
    pub fn of_creations(subject: &Subject) -> Vec<Self> {
        [Self::Apply].into_iter().chain(Self::of_whole(subject)).collect()
    }

    fn of_whole(subject: &Subject) -> impl Iterator<Item = Self> {
        [Self::Whole].into_iter().chain(subject.has_protobuf.then_some(Self::WholeInProtobuf))
    }
}
