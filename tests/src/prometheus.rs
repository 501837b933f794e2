//! A Prometheus as far as one is asked for values: it answers queries by what a test sets for words in them. It reads no metrics and
//! computes nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use axum::{
    Router,
    extract::{RawQuery, State},
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};

/// A running Prometheus. Stops when it is dropped.
pub struct Prometheus {
    values: Arc<Values>,
    port: u16,
    server: AbortHandle,
}

/// The values by a word of their queries.
#[derive(Default)]
struct Values(Mutex<BTreeMap<String, f64>>);

impl Prometheus {
    /// Starts one that has no values.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let values = Arc::new(Values::default());
        let router = Router::new().route("/api/v1/query", get(query)).with_state(values.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Ok(Self { values, port, server })
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Answers queries with this word by a value from now on.
    pub fn set(&self, word: &str, value: f64) {
        self.values.lock().insert(word.to_owned(), value);
    }

    /// Answers queries with this word by no series from now on.
    pub fn remove(&self, word: &str) {
        self.values.lock().remove(word);
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Values {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers by the value of the longest word that the query has. Words are of letters and `_`, which no address escapes.
async fn query(State(values): State<Arc<Values>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let values = values.lock().clone();
    let found = values.iter().filter(|(word, _)| query.contains(word.as_str())).max_by_key(|(word, _)| word.len());
    let series = found.map(|(_, value)| json!({"metric": {}, "value": [0, value.to_string()]}));
    let result: Vec<_> = series.into_iter().collect();
    let body = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
