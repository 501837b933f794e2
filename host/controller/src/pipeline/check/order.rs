//! The order of an answer's children: which wait for which, and how many are before each. Pure.

use pilothouse_engine::contract::Child;

use super::{desired::DesiredChild, owner::Owner, refusal::Refusal};

/// The places of the children that a child waits for; it is the next after `before` children. They come before it, so that children cannot
/// wait for each other.
pub(super) fn places(owner: &Owner<'_>, child: &Child, before: usize) -> Result<Vec<usize>, Refusal> {
    let refused = |why: String| Refusal::Malformed { what: format!("child number {before}"), why };
    if !child.after.is_empty() && !owner.manifest.orders_children {
        return Err(refused("it waits for others, but the manifest has no `ordersChildren`".to_owned()));
    }
    let place = |awaited: &u32| {
        usize::try_from(*awaited)
            .ok()
            .filter(|awaited| *awaited < before)
            .ok_or_else(|| refused(format!("it waits for number {awaited} of the answer, which is not before it")))
    };
    child.after.iter().map(place).collect()
}

/// How many children have to be there before a child that waits for these, one after the other.
pub(super) fn place(after: &[usize], before: &[DesiredChild]) -> u32 {
    let places = after.iter().filter_map(|awaited| before.get(*awaited)).map(|awaited| awaited.order + 1);
    places.max().unwrap_or_default()
}
