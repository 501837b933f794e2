//! Which Pods of a server its clients talk to. The labels that select them are in `labels.rs`.

/// Which Pods of a server clients talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// All of them.
    All,
    /// Of a group, only its leader.
    Leaders,
}
