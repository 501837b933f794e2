//! `/log-level`: shows and changes the log level of a running host. Responds only to requests from the host's own pod, which includes
//! `kubectl port-forward`. Does not know how logs are written.

use std::sync::Arc;

use axum::{Router, extract::State, http::StatusCode, middleware, routing::get};

use super::own_pod::only_from_here;

/// The log level of the process. Implemented by whoever owns the log.
pub trait LogLevel: Send + Sync {
    /// The present filter.
    fn current(&self) -> String;

    /// Replaces the filter.
    ///
    /// # Errors
    /// [`LogLevelError`], which says how to write a filter.
    fn change(&self, filter: &str) -> Result<(), LogLevelError>;
}

/// Why the log level was not changed.
#[derive(Debug, thiserror::Error)]
pub enum LogLevelError {
    /// The filter is malformed.
    #[error(
        "the log level '{filter}' is malformed: {why}; write error, warn, info, debug or trace, or a filter such as \
             info,pilothouse_controller=debug"
    )]
    Malformed {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        why: String,
    },
    /// The log does not accept changes any more.
    #[error("the log level cannot be changed: {0}")]
    NotChangeable(String),
}

/// The routes of the log level.
pub(super) fn routes(level: Arc<dyn LogLevel>) -> Router {
    Router::new()
        .route("/log-level", get(show).put(change))
        .layer(middleware::from_fn(only_from_here))
        .with_state(level)
}

async fn show(State(level): State<Arc<dyn LogLevel>>) -> String {
    format!("{}\n", level.current())
}

async fn change(State(level): State<Arc<dyn LogLevel>>, filter: String) -> Result<String, (StatusCode, String)> {
    let before = level.current();
    level.change(filter.trim()).map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    tracing::info!(before, now = level.current(), "the log level was changed");
    Ok(format!("{}\n", level.current()))
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::{Mutex, PoisonError},
    };

    use axum::{
        body::{Body, to_bytes},
        extract::{Request, connect_info::MockConnectInfo},
    };
    use tower::ServiceExt;

    use super::*;

    struct Level(Mutex<String>);

    impl LogLevel for Level {
        fn current(&self) -> String {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }

        fn change(&self, filter: &str) -> Result<(), LogLevelError> {
            if filter == "bad" {
                return Err(LogLevelError::NotChangeable("no".to_owned()));
            }
            filter.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(())
        }
    }

    #[tokio::test]
    async fn only_the_pod_itself_sees_and_changes_the_level() -> Result<(), Box<dyn std::error::Error>> {
        let level = Arc::new(Level(Mutex::new("info".to_owned())));
        for (peer, method, body, status, answer) in [
            ("127.0.0.1:1", "GET", "", 200, "info\n"),
            ("127.0.0.1:1", "PUT", "debug\n", 200, "debug\n"),
            ("[::1]:1", "GET", "", 200, "debug\n"),
            ("[::ffff:127.0.0.1]:1", "PUT", "warn", 200, "warn\n"),
            ("127.0.0.1:1", "PUT", "bad", 400, ": no\n"),
            ("10.0.0.7:1", "GET", "", 403, "port-forward"),
            ("10.0.0.7:1", "PUT", "trace", 403, "port-forward"),
            ("[2001:db8::1]:1", "PUT", "trace", 403, "port-forward"),
            ("127.0.0.1:1", "DELETE", "", 405, ""),
            ("127.0.0.1:1", "GET", "", 200, "warn\n"),
        ] {
            let routes = routes(level.clone()).layer(MockConnectInfo(peer.parse::<SocketAddr>()?));
            let request = Request::builder().method(method).uri("/log-level").body(Body::from(body))?;
            let response = routes.oneshot(request).await?;
            assert_eq!(response.status(), status, "{method} {body} from {peer}");
            let text = String::from_utf8(to_bytes(response.into_body(), 1 << 10).await?.to_vec())?;
            assert!(text.contains(answer), "{method} {body} from {peer}: {text}");
        }
        Ok(())
    }
}
