//! Which node reads which, and an order in which each comes after those that it reads.

use std::collections::BTreeSet;

use crate::parts::Node;
use crate::problem::{Path, Problem};

/// The places of the nodes that a node reads before it is there. A resource may read itself once it is there.
pub fn reads(node: &Node, ids: &[String]) -> BTreeSet<usize> {
    let (made, ready) = match node {
        Node::Resource(resource) => (resource.references_to_be_made(), node.references()),
        other => (other.references(), Vec::new()),
    };
    let own = match node {
        Node::Resource(resource) => Some(resource.config.id.as_str()),
        _ => None,
    };
    let later = ready.into_iter().filter(|reference| Some(reference.name.as_str()) != own);
    made.into_iter().chain(later).filter_map(|reference| ids.iter().position(|id| *id == reference.name)).collect()
}

/// The places of the nodes in order; those that read each other in a circle are told and left out.
pub fn order(ids: &[String], reads: &[BTreeSet<usize>], problems: &mut Vec<Problem>) -> Vec<usize> {
    let (mut order, mut done) = (Vec::new(), BTreeSet::new());
    loop {
        let next = reads.iter().enumerate().find(|(place, reads)| !done.contains(place) && reads.is_subset(&done));
        match next {
            Some((place, _)) => {
                done.insert(place);
                order.push(place);
            }
            None => break,
        }
    }
    let first_left = (0..reads.len()).find(|place| !done.contains(place));
    if let Some(first) = first_left {
        problems.push(Problem::at(&Path::default(), circle(first, ids, reads, &done)));
    }
    order
}

/// The circle to which what is left over leads, in words.
fn circle(first: usize, ids: &[String], reads: &[BTreeSet<usize>], done: &BTreeSet<usize>) -> String {
    let (mut way, mut place) = (Vec::new(), first);
    while !way.contains(&place) {
        way.push(place);
        let next = reads.get(place).and_then(|reads| reads.iter().find(|read| !done.contains(read)));
        match next {
            Some(next) => place = *next,
            None => break,
        }
    }
    let begin = way.iter().position(|it| *it == place).unwrap_or_default();
    let names = way.iter().skip(begin).chain([&place]).filter_map(|it| ids.get(*it)).map(|id| format!("`{id}`"));
    let names: Vec<_> = names.collect();
    format!(
        "{}: that is a circle, in which nothing can be made first; take one of these references away",
        names.join(" reads ")
    )
}
