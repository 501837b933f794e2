//! Both servers under one word: the same request to each, answers that must be the same, and states that must become the same. The
//! real server's controllers take their time, so what they lead to is waited for.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, User};
use pilothouse_tests::wait::{Look, eventually};
use serde_json::{Value, json};

use super::{
    same::{Tokens, differences},
    script::Step,
    side::{Answer, Real, Server, Side, Simulated},
};

/// How long the controllers of the real cluster may take. That of namespaces looks again after eight seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// As a whole.
    Whole,
    /// The status code and the reason, where controllers write what is answered.
    Outcome,
}

/// Both servers.
pub struct Both {
    real: Side<Real>,
    simulated: Side<Simulated>,
    tokens: (Tokens, Tokens),
    /// What was asked, for messages.
    asked: Vec<String>,
}

impl Both {
    /// A real server, and a simulated one that begins like this.
    pub fn new(client: Client, server: ApiServer) -> Self {
        let simulated = Simulated { server, user: User::admin("admin") };
        Self {
            real: Side::new(Real(client)),
            simulated: Side::new(simulated),
            tokens: Default::default(),
            asked: Vec::new(),
        }
    }

    /// The simulated server.
    pub fn simulated(&mut self) -> &mut ApiServer {
        &mut self.simulated.server.server
    }

    /// Sends a request to both, and compares the answers.
    ///
    /// # Errors
    /// If they differ.
    pub async fn ask(&mut self, step: &Step, compared: Compared) -> Result<()> {
        self.asked.push(format!("{} {} {}", step.method, step.uri, step.body));
        let answers = (self.real.take(step).await?, self.simulated.take(step).await?);
        let lines = match compared {
            Compared::Whole => differences(&self.tokens.0.of_answer(&answers.0), &self.tokens.1.of_answer(&answers.1)),
            Compared::Outcome => differences(&outcome(&answers.0), &outcome(&answers.1)),
        };
        let messages = [&answers.0, &answers.1].map(|answer| answer.body["message"].to_string());
        ensure!(lines.is_empty(), "{}\n  {}\n  {}", self.history(), lines.join("\n  "), messages.join("\n  "));
        Ok(())
    }

    /// Lets the simulated controllers do all that there is to do, and waits until what these requests read, shown by a function, is the
    /// same on both sides.
    ///
    /// # Errors
    /// If it does not become the same in time.
    pub async fn settle(&mut self, reads: &[String], show: impl Fn(&Answer) -> Value) -> Result<()> {
        while self.simulated().collect_garbage_step(Timestamp::now()) {}
        let mut expected = Vec::new();
        for read in reads {
            expected.push(show(&self.simulated.server.send(get(read)?).await?));
        }
        let (what, real) = (format!("the same state after\n{}", self.history()), &mut self.real.server);
        eventually(PATIENCE, &what, async || {
            let mut found = Vec::new();
            for read in reads {
                found.push(show(&real.send(get(read)?).await?));
            }
            let lines = differences(&json!(found), &json!(expected));
            Ok(Look::of(lines.is_empty(), lines))
        })
        .await
    }

    fn history(&self) -> String {
        self.asked.join("\n")
    }
}

fn get(uri: &str) -> Result<Request<Bytes>> {
    Ok(Request::get(uri).header("accept", "application/json").body(Bytes::new())?)
}

fn outcome(answer: &Answer) -> Value {
    json!({"code": answer.code, "reason": answer.body["reason"]})
}
