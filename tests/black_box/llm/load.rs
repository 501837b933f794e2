//! Clients of a server of a model: each asks again as soon as it has its answer, of one ready server after the other.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::http::{Answer, ask};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::node::Node;

/// The pause of a client that finds no server, or one that has just gone.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients at work. They stop when this is dropped.
pub struct Load {
    clients: Vec<AbortHandle>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    /// Begins with so many clients.
    pub fn start(node: &Arc<Node>, model: &'static str, clients: usize) -> Self {
        let answered = Arc::new(AtomicUsize::new(0));
        let begin = |number| {
            let (node, answered) = (node.clone(), answered.clone());
            tokio::spawn(client(node, answered, model, number)).abort_handle()
        };
        Self { clients: (0..clients).map(begin).collect(), answered }
    }

    /// How many requests were answered.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.clients.iter().for_each(AbortHandle::abort);
    }
}

async fn client(node: Arc<Node>, answered: Arc<AtomicUsize>, model: &str, first: usize) {
    for turn in first.. {
        let ready = node.ready();
        let is_answered = match ready.get(turn % ready.len().max(1)) {
            Some(server) => complete(server, model).await.is_ok(),
            None => false,
        };
        if is_answered {
            answered.fetch_add(1, Ordering::Relaxed);
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Asks a server for a completion of one word, and returns the text.
pub async fn complete(server: &SocketAddr, model: &str) -> Result<String> {
    let Answer { status, body, .. } = request(server, model).await?;
    ensure!(status == 200, "{status}: {body}");
    let answer: Value = serde_json::from_str(&body)?;
    Ok(answer["choices"][0]["text"].as_str().context("an answer without a text")?.to_owned())
}

/// Sends a request for a completion.
pub async fn request(server: &SocketAddr, model: &str) -> Result<Answer> {
    let body = json!({"model": model, "prompt": "once upon a time", "max_tokens": 1}).to_string();
    ask(server, "POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\n", &body).await
}
