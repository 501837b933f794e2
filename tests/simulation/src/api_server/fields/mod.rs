//! Sets of fields, and what server-side apply does with them: which fields an object has, how two objects differ, how one is merged
//! into another, and how fields are removed. Follows structured-merge-diff. Knows no managers.

mod compare;
mod element;
mod items;
mod merge;
mod remove;
mod set;
mod set_of;
mod typed;

pub use self::{
    compare::{Comparison, compare},
    element::Element,
    merge::merge,
    remove::remove,
    set::Set,
    set_of::set_of,
    typed::check_type,
};
