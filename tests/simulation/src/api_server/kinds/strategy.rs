//! What is special about a kind, as a table of small functions. A kind that says nothing gets what most kinds do.

use serde_json::Value;

use super::Kind;
use crate::api_server::{allocator::Allocator, causes::Causes, names::NameRule};

/// What a kind does with its objects.
#[derive(Debug)]
pub struct Strategy {
    /// What the names must be.
    pub names: NameRule,
    /// Whether an update may come without a resource version.
    pub unconditional_update: bool,
    /// Whether an update may create.
    pub create_on_update: bool,
    /// Whether objects have a generation.
    pub has_generation: bool,
    /// Whether a delete that says nothing of dependents leaves them without an owner.
    pub orphans_dependents: bool,
    /// Whether finalizers without a domain must be those that the server knows.
    pub knows_finalizers: bool,
    /// Whether metadata is checked only where everything else is right.
    pub checks_metadata_last: bool,
    /// What a delete answers once the object is gone.
    pub gone: Gone,
    /// The seconds that an object is given to end; none if it goes at once. Zero and none differ: the former has the field.
    pub grace: fn(&Value, Option<i64>) -> Option<i64>,
    /// Fills in defaults after a body was read.
    pub default: fn(&mut Value),
    /// Whether a new object, as a request describes it, is kept with less than what a read of it shows. Then its next write is kept although
    /// it changes nothing.
    pub is_completed_by_reads: fn(&Value) -> bool,
    /// Changes a new object before it is checked.
    pub prepare_create: fn(&mut Value, &Kind, &mut Allocator),
    /// Changes an object before it is checked; the old one is the second.
    pub prepare_update: fn(&mut Value, &Value, &Kind, &mut Allocator),
    /// Changes a status before it is checked; the old object is the second.
    pub prepare_status: fn(&mut Value, &Value),
    /// Checks a new object, apart from what is checked of a changed one as well.
    pub validate_new: fn(&Value, &Kind, &mut Causes),
    /// Checks a new or changed object.
    pub validate: fn(&Value, &Kind, &mut Causes),
    /// Checks a change; the old object is the second.
    pub validate_update: fn(&Value, &Value, &Kind, &mut Causes),
    /// Checks a change of the status; the old object is the second.
    pub validate_status: fn(&Value, &Value, &Kind, &mut Causes),
}

/// What a delete answers once the object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// A Status.
    Status,
    /// The last state of the object.
    Object,
}

impl Strategy {
    /// What most built-in kinds do.
    pub const USUAL: Self = Self {
        names: NameRule::Subdomain,
        unconditional_update: true,
        create_on_update: false,
        has_generation: false,
        orphans_dependents: false,
        knows_finalizers: true,
        checks_metadata_last: false,
        gone: Gone::Status,
        grace: |_, _| None,
        default: |_| {},
        is_completed_by_reads: |_| false,
        prepare_create: |_, _, _| {},
        prepare_update: |_, _, _, _| {},
        prepare_status: |_, _| {},
        validate_new: |_, _, _| {},
        validate: |_, _, _| {},
        validate_update: |_, _, _, _| {},
        validate_status: |_, _, _, _| {},
    };
}
