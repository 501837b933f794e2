//! The imports of the contract as a call sees them, in every version: lookups, the clock, the log, explanations of traps and deletes.
//! Versions differ in types only; what an import does is in [`CallState`].

use crate::{
    contract::{KindRef, LookupError, clock, deletion, log, lookup, trap, types, v0_1},
    lookups::{Answer, Query, Scope, Target},
    state::CallState,
};

impl lookup::Host for CallState {
    fn get(
        &mut self,
        kind: types::KindRef,
        scope: lookup::Scope,
        name: String,
        fields: Vec<String>,
    ) -> Result<Option<String>, LookupError> {
        let query = Query { kind: kind.into(), scope: scope.into(), target: Target::Name(name), fields };
        self.reads.look_up(query).map(first)
    }

    fn select(
        &mut self,
        kind: types::KindRef,
        scope: lookup::Scope,
        label_selector: String,
        fields: Vec<String>,
    ) -> Result<Vec<String>, LookupError> {
        let query = Query { kind: kind.into(), scope: scope.into(), target: Target::Labels(label_selector), fields };
        self.reads.look_up(query).map(|answer| answer.objects)
    }
}

impl v0_1::lookup::Host for CallState {
    fn get(
        &mut self,
        kind: v0_1::types::KindRef,
        namespace: Option<String>,
        name: String,
    ) -> Result<Option<String>, v0_1::lookup::LookupError> {
        let query = Query::by_name(KindRef::from(kind), named(namespace), &name);
        self.reads.look_up(query).map(first).map_err(Into::into)
    }

    fn select(
        &mut self,
        kind: v0_1::types::KindRef,
        namespace: Option<String>,
        selector: String,
    ) -> Result<Vec<String>, v0_1::lookup::LookupError> {
        let query = Query::by_labels(KindRef::from(kind), named(namespace), &selector);
        self.reads.look_up(query).map(|answer| answer.objects).map_err(Into::into)
    }
}

fn first(answer: Answer) -> Option<String> {
    answer.objects.into_iter().next()
}

/// The namespace that a lookup of 0.1 names. An empty text names none: languages without optional values write none so.
fn named(namespace: Option<String>) -> Scope {
    namespace.filter(|namespace| !namespace.is_empty()).map_or(Scope::OwnNamespaceIfAny, Scope::Namespace)
}

impl From<lookup::Scope> for Scope {
    fn from(scope: lookup::Scope) -> Self {
        match scope {
            lookup::Scope::OwnNamespace => Self::OwnNamespace,
            lookup::Scope::Namespace(namespace) => Self::Namespace(namespace),
            lookup::Scope::AllNamespaces => Self::AllNamespaces,
        }
    }
}

impl clock::Host for CallState {
    fn now(&mut self) -> String {
        self.reads.read_clock()
    }
}

impl v0_1::clock::Host for CallState {
    fn now(&mut self) -> String {
        self.reads.read_clock()
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) {
        self.logs.write(level, &message);
    }
}

impl v0_1::log::Host for CallState {
    fn write(&mut self, level: v0_1::log::Level, message: String) {
        self.logs.write(level.into(), &message);
    }
}

impl trap::Host for CallState {
    fn explain(&mut self, a: u64, b: u64, c: u64, d: u64) {
        self.explanation.add([a, b, c, d]);
    }
}

impl v0_1::trap::Host for CallState {
    fn explain(&mut self, a: u64, b: u64, c: u64, d: u64) {
        self.explanation.add([a, b, c, d]);
    }
}

impl deletion::Host for CallState {
    fn force(&mut self, child: u32) {
        self.reads.recorded.force_deletion(child);
    }
}

impl types::Host for CallState {}

impl v0_1::types::Host for CallState {}
