//! The body of an answer on its way to a host.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tower::BoxError;

/// The body of an answer: whole, or the events of a watch.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body that is known already.
pub(super) fn whole(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
