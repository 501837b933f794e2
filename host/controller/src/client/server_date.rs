//! Tells the clock what time it is for the API server: each answer has a date. Changes neither requests nor answers.

use http::{Response, header::DATE};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

use crate::clock::Clock;

/// The same answer, after the clock was told its date.
pub(super) async fn told<B, E>(
    clock: Clock,
    answer: impl Future<Output = Result<Response<B>, E>>,
) -> Result<Response<B>, E> {
    // Nothing is sent before the answer is waited for.
    let sent = clock.of_this_machine();
    let answer = answer.await?;
    if let Some(date) = date(&answer) {
        clock.compare(sent, date);
    }
    Ok(answer)
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
