//! The two servers, each behind the same words: send a request, get a status and JSON. Remembers what each answered, because
//! requests refer to it.

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use kube::{Client, client::Body};
use pilothouse_simulation::api_server::{ApiServer, User};
use pilothouse_tests::wait::{Look, eventually};
use serde_json::{Map, Value};

use super::script::{Beginning, Step, merge};

/// The user agent of both: the manager of fields where none is given.
const AGENT: &str = "differential/1";

/// How long the real server's cache may be behind what it stored.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: Value,
}

/// A server with what it answered.
pub struct Side<S> {
    /// The server.
    pub server: S,
    /// The states of each object that the server has shown, by plural and name, the newest last.
    shown: HashMap<(String, String), Vec<Value>>,
}

/// A server that requests can be sent to.
pub trait Server {
    /// Sends a request.
    async fn send(&mut self, request: Request<Bytes>) -> Result<Answer>;
}

/// The simulated one.
pub struct Simulated {
    /// The server.
    pub server: ApiServer,
    /// Who sends.
    pub user: User,
}

/// The real one.
pub struct Real(pub Client);

impl Server for Simulated {
    async fn send(&mut self, request: Request<Bytes>) -> Result<Answer> {
        let response = self.server.handle(Timestamp::now(), &self.user, &request);
        Ok(Answer { code: response.status().as_u16(), body: read(response.body()) })
    }
}

impl Server for Real {
    async fn send(&mut self, request: Request<Bytes>) -> Result<Answer> {
        if request.uri().query().is_some_and(|query| query.contains("resourceVersion=0")) {
            self.wait_for_cache(request.uri().path()).await?;
        }
        // A handler of the real server can panic. Its connection is closed then.
        let Ok(response) = self.0.send(request.map(|body| Body::from(body.to_vec()))).await else {
            return Ok(Answer { code: 0, body: Value::Null });
        };
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await?;
        Ok(Answer { code, body: read(&body) })
    }
}

/// A body as JSON. A path that nobody serves has an answer in plain text.
fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

impl Real {
    /// Waits until the server's own cache has what is stored now. A list from the cache may show less than was written before, which
    /// the simulated server's never does.
    async fn wait_for_cache(&self, path: &str) -> Result<()> {
        let stored: Value = self.0.request(Request::get(format!("{path}?limit=1")).body(Vec::new())?).await?;
        let version = stored["metadata"]["resourceVersion"].as_str().unwrap_or("1");
        let uri = format!("{path}?limit=1&resourceVersionMatch=NotOlderThan&resourceVersion={version}");
        let what = format!("a cache of {path} that is as new as {version}");
        eventually(PATIENCE, &what, async || {
            self.0.request::<Value>(Request::get(&uri).body(Vec::new())?).await?;
            Ok(Look::Found(()))
        })
        .await
    }
}

impl<S: Server> Side<S> {
    /// A server that has shown nothing yet.
    pub fn new(server: S) -> Self {
        Self { server, shown: HashMap::new() }
    }

    /// Sends the request of a step.
    ///
    /// # Errors
    /// If the server does not answer, or not with JSON.
    pub async fn take(&mut self, step: &Step) -> Result<Answer> {
        let body = self.body(step);
        let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder()
            .method(step.method)
            .uri(&step.uri)
            .header("content-type", step.content_type)
            .header("accept", "application/json")
            .header("user-agent", AGENT)
            .body(bytes)?;
        let answer = self.server.send(request).await?;
        if answer.code < 300 && !step.uri.contains("dryRun") && !step.uri.contains("/scale") {
            self.remember(step, &answer.body);
        }
        Ok(answer)
    }

    fn remember(&mut self, step: &Step, body: &Value) {
        if body["kind"] == "Status" || body["metadata"]["uid"].is_null() {
            return;
        }
        let shown = self.shown.entry(step.object.clone()).or_default();
        let version = |state: &Value| state["metadata"]["resourceVersion"].clone();
        if shown.last().map(version) != Some(version(body)) {
            shown.push(body.clone());
        }
    }

    fn body(&self, step: &Step) -> Value {
        let shown = self.shown.get(&step.object).map(Vec::as_slice).unwrap_or_default();
        let begins = match step.begins_as {
            Beginning::Nothing => None,
            Beginning::Last => shown.last(),
            Beginning::Earlier => shown.iter().rev().nth(1),
        };
        let mut body = match begins {
            Some(state) => {
                let mut body = state.clone();
                merge(&mut body, &step.body);
                body
            }
            None => step.body.clone(),
        };
        self.answer_questions(&mut body);
        body
    }

    /// Puts what the server has shown in the place of the questions.
    fn answer_questions(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with('$') => {
                let found = self.answer_to(text);
                *text = found;
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.answer_questions(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.answer_questions(value)),
            _ => {}
        }
    }

    fn answer_to(&self, question: &str) -> String {
        let Some((what, place)) = question[1..].split_once(':') else { return question.to_owned() };
        let (plural, name) = place.split_once('/').unwrap_or((place, ""));
        let shown = self.shown.get(&(plural.to_owned(), name.to_owned())).map(Vec::as_slice).unwrap_or_default();
        let none = Value::Object(Map::new());
        let last = shown.last().unwrap_or(&none);
        let uid = |state: &Value| {
            state["metadata"]["uid"].as_str().unwrap_or("00000000-0000-0000-0000-000000000000").to_owned()
        };
        let version = |state: &Value| state["metadata"]["resourceVersion"].as_str().unwrap_or("1").to_owned();
        match what {
            "uid" => uid(last),
            "version" => version(last),
            "earlier-uid" => uid(shown.iter().rev().find(|state| uid(state) != uid(last)).unwrap_or(&none)),
            _ => version(shown.iter().rev().nth(1).unwrap_or(&none)),
        }
    }
}
