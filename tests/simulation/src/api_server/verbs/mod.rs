//! The verbs: what a server does for each kind of request.

mod create;
mod definitions;
mod delete;
mod dispatch;
mod draft;
mod patch;
mod patches;
mod read;
mod review;
mod scale;
mod update;
mod watch;

pub(super) use self::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub use self::watch::{Limit, Watch};
