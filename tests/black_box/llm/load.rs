//! Clients of the servers of a model: each asks again as soon as it has its answer, through a balancer that leads it to the ready server
//! with the fewest requests.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
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
        let (answered, balancer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Balancer::new(node.clone())));
        let begin = |_| tokio::spawn(client(balancer.clone(), answered.clone(), model)).abort_handle();
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

/// Knows how many requests each server has. Clients that take one server after the other would end up in one queue: all of them wait at the
/// server that is the slowest by a hair, however many there are.
struct Balancer {
    node: Arc<Node>,
    requests: Mutex<BTreeMap<SocketAddr, usize>>,
}

/// A request at a server.
struct Place<'b> {
    balancer: &'b Balancer,
    server: SocketAddr,
}

impl Balancer {
    fn new(node: Arc<Node>) -> Self {
        Self { node, requests: Mutex::default() }
    }

    /// A place at the ready server with the fewest requests.
    fn place(&self) -> Option<Place<'_>> {
        let mut requests = self.requests();
        let server = self.node.ready().into_iter().min_by_key(|server| requests.get(server).copied())?;
        *requests.entry(server).or_default() += 1;
        Some(Place { balancer: self, server })
    }

    fn requests(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, usize>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(requests) = self.balancer.requests().get_mut(&self.server) {
            *requests -= 1;
        }
    }
}

async fn client(balancer: Arc<Balancer>, answered: Arc<AtomicUsize>, model: &str) {
    loop {
        let is_answered = match balancer.place() {
            Some(place) => complete(&place.server, model).await.is_ok(),
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

/// Sends a request for a completion of one word.
pub async fn request(server: &SocketAddr, model: &str) -> Result<Answer> {
    request_of(server, model, 1).await
}

/// Sends a request for a completion of so many words.
pub async fn request_of(server: &SocketAddr, model: &str, words: u64) -> Result<Answer> {
    let body = json!({"model": model, "prompt": "once upon a time", "max_tokens": words}).to_string();
    ask(server, "POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\n", &body).await
}
