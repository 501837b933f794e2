//! Which manager owns which fields of an object, as `metadata.managedFields` says it. The rules of apply and update are in
//! `apply.rs` and `update.rs`; nothing here knows kinds or requests.

mod apply;
mod entry;
mod scale;
mod strip;
mod update;
mod writer;

use serde_json::Value;

pub use self::{
    apply::{Conflict, How, apply},
    entry::{Entry, Operation},
    scale::Written,
    update::update,
    writer::Writer,
};

/// The most managers that wrote by updates. The oldest ones of more are joined into one.
const MAX_UPDATERS: usize = 10;

/// The owners of an object's fields, in the order in which a server shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed(Vec<Entry>);

impl Managed {
    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// Reads what a request says; none if it is malformed, or if it is to be forgotten.
    pub fn parse(value: &Value) -> Option<Self> {
        let entries = value.as_array()?.iter().map(Entry::parse).collect::<Option<Vec<_>>>()?;
        Some(Self(entries))
    }

    /// The value of `metadata.managedFields`; none if nobody owns anything.
    pub fn to_value(&self) -> Option<Value> {
        (!self.0.is_empty()).then(|| Value::Array(self.0.iter().map(Entry::to_value).collect()))
    }

    /// Whether it says the same, but perhaps with other times.
    pub fn is_same_but_for_times(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.is_same_but_for_time(b))
    }

    /// The owners as the next write reads them: of two entries of one manager the later one counts.
    fn read_back(mut self) -> Self {
        let is_last =
            |index: usize, entry: &Entry| !self.0.iter().skip(index + 1).any(|later| later.is_same_manager(entry));
        let keep: Vec<_> = self.0.iter().enumerate().map(|(index, entry)| is_last(index, entry)).collect();
        let mut keep = keep.into_iter();
        self.0.retain(|_| keep.next().unwrap_or(true));
        self
    }

    fn position(&self, writer: &Writer<'_>, operation: Operation) -> Option<usize> {
        self.0.iter().position(|entry| entry.is_of(writer, operation))
    }

    fn finish(mut self) -> Self {
        self.0.retain(|entry| !entry.set.is_empty());
        self.0.sort_by(Entry::compare);
        self
    }

    /// Joins the oldest of too many updaters.
    fn cap(&mut self) {
        let mut updaters: Vec<_> =
            self.0.iter().filter(|entry| entry.operation == Operation::Update).cloned().collect();
        if updaters.len() <= MAX_UPDATERS {
            return;
        }
        updaters.sort_by(|a, b| (a.seconds(), &a.manager).cmp(&(b.seconds(), &b.manager)));
        let mut left = updaters.len();
        let mut first: Vec<Entry> = Vec::new();
        for updater in updaters {
            if left <= MAX_UPDATERS {
                break;
            }
            let Some(before) = first.iter_mut().find(|before| before.api_version == updater.api_version) else {
                first.push(updater);
                continue;
            };
            self.0.retain(|entry| !entry.is_same_manager(before) && !entry.is_same_manager(&updater));
            *before = Entry::new(
                ("ancient-changes", Operation::Update),
                &updater.api_version,
                "",
                before.set.union(&updater.set),
            );
            before.time = updater.time;
            self.0.push(before.clone());
            left -= 1;
        }
    }
}
