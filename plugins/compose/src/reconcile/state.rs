//! What is known of each node in a round, and what an expression without a value means: that something is to come, or that something is wrong.

use std::collections::BTreeSet;

use pilothouse_expression::EvaluationError;
use serde_json::Value;

use super::live::Live;
use crate::parts::{Composition, Node, SCHEMA};
use crate::template::{NoValue, ValueError};

/// What is known of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Its value.
    Known(Value),
    /// It has no value, and that may be: an optional one that is not there.
    Absent,
    /// It will have one. Why it has none yet.
    Waits(String),
    /// An object that is looked up does not exist.
    Missing,
    /// It shall not be there.
    Excluded,
    /// It has none. Why.
    Wrong(String),
}

/// Why an expression has no value now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// Something is to come.
    Waits(String),
    /// It reads something that shall not be there.
    Excluded,
    /// It will not have one.
    Wrong(String),
}

/// One round.
pub struct Round<'r> {
    /// What it is about.
    pub composition: &'r Composition,
    /// What lives of it.
    pub live: &'r [Live],
    object: Value,
    states: Vec<State>,
    ready: BTreeSet<usize>,
}

impl<'r> Round<'r> {
    /// A round in which nothing is known but the object and what lives.
    pub fn new(composition: &'r Composition, object: Value, live: &'r [Live]) -> Self {
        let states = composition.names.iter().map(|name| State::Waits(format!("`{name}` is not there yet"))).collect();
        Self { composition, live, object, states, ready: BTreeSet::new() }
    }

    /// Takes down what is known of a node.
    pub fn set(&mut self, place: usize, state: State) {
        if let Some(known) = self.states.get_mut(place) {
            *known = state;
        }
    }

    /// Takes down whether a resource is ready.
    pub fn set_ready(&mut self, place: usize, is_ready: bool) {
        if is_ready {
            self.ready.insert(place);
        }
    }

    /// Whether a resource is ready.
    pub fn is_ready(&self, place: usize) -> bool {
        self.ready.contains(&place)
    }

    /// What is known of a node.
    pub fn state(&self, place: usize) -> Option<&State> {
        self.states.get(place)
    }

    /// The values of all names, for what is made of them.
    pub fn values(&self) -> Vec<Option<&Value>> {
        self.values_where(None)
    }

    /// The same for what is told of them: what is not there is `null`.
    pub fn values_to_tell(&self) -> Vec<Option<&Value>> {
        self.values_where(Some(&Value::Null))
    }

    fn values_where<'v>(&'v self, not_there: Option<&'v Value>) -> Vec<Option<&'v Value>> {
        let of_state = |state: &'v State| match state {
            State::Known(value) => Some(value),
            State::Absent => Some(&Value::Null),
            State::Missing | State::Waits(_) | State::Excluded => not_there,
            State::Wrong(_) => None,
        };
        std::iter::once(Some(&self.object)).chain(self.states.iter().map(of_state)).collect()
    }

    /// What is known of a node with this value.
    pub fn of_value(&self, value: Result<Option<Value>, NoValue>, node: &Node) -> State {
        match value {
            Ok(Some(value)) => State::Known(value),
            Ok(None) => State::Absent,
            Err(error) => match self.unresolved(&error, self.reads_others(node)) {
                Unresolved::Waits(why) => State::Waits(why),
                Unresolved::Excluded => State::Excluded,
                Unresolved::Wrong(why) => State::Wrong(why),
            },
        }
    }

    /// Why an expression has no value now. What an object lacks that others write may come; what its user writes does not come by itself.
    pub fn unresolved(&self, error: &NoValue, reads: ReadsOthers) -> Unresolved {
        let may_come = match &error.error {
            ValueError::Evaluation(EvaluationError::NotThere(name)) => return self.of_name(name, error),
            ValueError::Evaluation(
                EvaluationError::NoSuchField { root, .. } | EvaluationError::NoSuchElement { root, .. },
            ) => match root {
                Some(root) => self.is_of_others(root),
                None => reads == ReadsOthers::Yes,
            },
            _ => false,
        };
        match may_come {
            true => Unresolved::Waits(error.to_string()),
            false => Unresolved::Wrong(error.to_string()),
        }
    }

    fn of_name(&self, name: &str, error: &NoValue) -> Unresolved {
        match self.composition.place(name).and_then(|place| self.state(place)) {
            Some(State::Excluded) => Unresolved::Excluded,
            _ => Unresolved::Waits(format!("{error} yet")),
        }
    }

    /// Whether others write what a name stands for: a child, an object that is looked up, or a value made of them.
    fn is_of_others(&self, name: &str) -> bool {
        let node = self.composition.place(name).and_then(|place| self.composition.nodes.get(place));
        match node {
            // An element of a list, in a child of several.
            None => name != SCHEMA && name == crate::parts::EACH,
            Some(Node::Variable { .. }) => node.is_some_and(|node| self.reads_others(node) == ReadsOthers::Yes),
            Some(Node::Lookup(_) | Node::Resource(_)) => true,
        }
    }

    /// Whether a node reads what others write.
    pub fn reads_others(&self, node: &Node) -> ReadsOthers {
        ReadsOthers::of(node.references().iter().any(|reference| self.is_of_others(&reference.name)))
    }

    /// The resources that a node reads, also through values and lookups.
    pub fn resources_read(&self, place: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for read in self.composition.reads.get(place).into_iter().flatten().copied() {
            match self.composition.nodes.get(read) {
                Some(Node::Resource(_)) => {
                    found.insert(read);
                }
                Some(_) => found.extend(self.resources_read(read)),
                None => {}
            }
        }
        found
    }
}

/// Whether something reads what others write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsOthers {
    /// It does.
    Yes,
    /// It reads only the object.
    No,
}

impl ReadsOthers {
    fn of(reads: bool) -> Self {
        if reads { Self::Yes } else { Self::No }
    }
}
