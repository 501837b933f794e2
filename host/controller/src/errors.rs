//! Formats errors for messages, in one line, and tells the two kinds of 404 apart. Decides nothing about them.

use std::error::Error;

use kube::runtime::watcher;

/// An error and its causes. A cause that the text contains already is left out. Of an answer of the API server, only its message and
/// code are shown, not the structure around them.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut cause) = words(error);
    while let Some(error) = cause {
        let next;
        (next, cause) = words(error);
        // Many errors print their cause as well as return it.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
    }
    text
}

/// The words of an error itself, and its cause. An answer of the API server has none.
fn words<'e>(error: &'e (dyn Error + 'static)) -> (String, Option<&'e (dyn Error + 'static)>) {
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { return (error.to_string(), error.source()) };
    let words = if status.message.is_empty() { &status.reason } else { &status.message };
    (format!("{words} ({})", status.code), None)
}

/// Whether the API server has no such object. Where it does not serve the version of the kind at the moment, or a proxy answers, there
/// is a 404 as well, but it names no object: the object may exist.
pub(crate) fn is_object_missing(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// The same of a watch, whose errors repeat their causes.
pub(crate) fn watch_error(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(cause) => format!("failed to list: {}", chain(cause)),
        watcher::Error::WatchStartFailed(cause) => format!("failed to start: {}", chain(cause)),
        watcher::Error::WatchFailed(cause) => format!("failed to go on: {}", chain(cause)),
        watcher::Error::WatchError(status) => format!("the API server ended it: {} ({})", status.message, status.code),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// The HTTP status with which the API server refused to list or watch; none of an error that came while it went on.
pub(crate) fn watch_code(error: &watcher::Error) -> Option<u16> {
    let (watcher::Error::InitialListFailed(error)
    | watcher::Error::WatchStartFailed(error)
    | watcher::Error::WatchFailed(error)) = error
    else {
        return None;
    };
    code(error)
}

/// The HTTP status of an answer of the API server; none of an error that came without one.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

/// Whether an error with this HTTP status may pass by itself. One without an answer may.
pub(crate) fn may_pass(code: Option<u16>) -> bool {
    code.is_none_or(|code| code == 429 || code >= 500)
}

/// Whether a watch failed because its resource version has expired, which happens to every watch that is cut for long.
pub(crate) fn is_expired(error: &watcher::Error) -> bool {
    let while_watching = matches!(error, watcher::Error::WatchError(status) if status.code == 410);
    while_watching || watch_code(error) == Some(410)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_404_is_about_an_object_only_if_it_names_one() -> Result<(), serde_json::Error> {
        for (text, expected) in [
            (r#"{"code": 404, "details": {"name": "a", "kind": "widgets"}}"#, true),
            (r#"{"code": 404, "details": {}}"#, false),
            (r#"{"code": 404}"#, false),
            (r#"{"code": 409, "details": {"name": "a"}}"#, false),
        ] {
            let error = kube::Error::Api(serde_json::from_str(text)?);
            assert_eq!(is_object_missing(&error), expected, "{text}");
        }
        Ok(())
    }

    #[test]
    fn the_api_servers_words_stand_alone() {
        let status =
            Status { code: 403, message: "no way".to_owned(), reason: "Forbidden".to_owned(), ..Status::default() };
        let error = kube::Error::Api(status.into());
        assert_eq!(chain(&error), "no way (403)");
        assert_eq!(watch_error(&watcher::Error::InitialListFailed(error)), "failed to list: no way (403)");
    }
}
