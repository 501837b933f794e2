//! Formats errors for messages, in one line. Decides nothing about them.

use std::error::Error;

use kube::runtime::watcher;

/// An error and its causes. A cause that the text contains already is left out. Of an answer of the API server, only its message and
/// code are shown, not the structure around them.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        let words = if status.message.is_empty() { &status.reason } else { &status.message };
        return format!("{words} ({})", status.code);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_api_servers_words_stand_alone() {
        let status =
            Status { code: 403, message: "no way".to_owned(), reason: "Forbidden".to_owned(), ..Status::default() };
        let error = kube::Error::Api(status.into());
        assert_eq!(chain(&error), "no way (403)");
        assert_eq!(watch_error(&watcher::Error::InitialListFailed(error)), "failed to list: no way (403)");
    }
}
