//! Tells the clock what time it is for the API server: each answer has a date. Changes neither requests nor answers.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, header::DATE};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use tower::{Layer, Service};

use crate::clock::Clock;

/// The layer that reads the dates.
#[derive(Clone, Debug)]
pub(super) struct ServerDate(Clock);

impl ServerDate {
    /// Tells them to this clock.
    pub(super) fn new(clock: Clock) -> Self {
        Self(clock)
    }
}

impl<S> Layer<S> for ServerDate {
    type Service = WithServerDate<S>;

    fn layer(&self, inner: S) -> WithServerDate<S> {
        WithServerDate { inner, clock: self.0.clone() }
    }
}

/// A service whose answers have their dates read.
#[derive(Clone, Debug)]
pub(super) struct WithServerDate<S> {
    inner: S,
    clock: Clock,
}

impl<S, A, B> Service<Request<A>> for WithServerDate<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (clock, sent) = (self.clock.clone(), self.clock.of_this_machine());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(date) = date(&answer) {
                clock.compare(sent, date);
            }
            Ok(answer)
        })
    }
}

/// When the API server made this answer. None if it does not say.
fn date<B>(answer: &Response<B>) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(answer.headers().get(DATE)?.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_date_is_read_as_servers_write_it() {
        for (text, expected) in
            [("Sat, 28 Nov 2026 05:06:13 GMT", Some("2026-11-28T05:06:13Z")), ("soon", None), ("", None)]
        {
            let mut answer = Response::new(());
            answer.headers_mut().insert(DATE, HeaderValue::from_static(text));
            let expected = expected.and_then(|expected| expected.parse().ok());
            assert_eq!(date(&answer), expected, "{text}");
        }
        assert_eq!(date(&Response::new(())), None);
    }
}
