//! Runs scripts against both servers and finds the first answer that differs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, Catalog, Limit, User, Watch};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use super::{
    STEPS, Writer,
    kinds::Kind,
    same::{Tokens, differences},
    script::{Beginning, Step, put},
    shrink::shrink,
    side::{Real, Server, Side, Simulated},
    watches::{SELECTORS, Watches},
};

/// What all scripts share.
pub struct Arena {
    /// The real server.
    pub client: Client,
    /// What simulated servers share.
    pub catalog: Arc<Catalog>,
    /// The kinds.
    pub kinds: Vec<Kind>,
    /// The watches of the real server.
    pub watches: Watches,
    /// The CRDs.
    pub definitions: Vec<Value>,
    /// Whether a mismatch is shrunk before it is shown.
    pub shrinks: bool,
}

/// An answer that differs.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// After which request, or which watch.
    pub step: usize,
    /// What differs.
    pub lines: Vec<String>,
    /// Where it was seen.
    pub looks: Looks,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// The answers.
    AtAnswers,
    /// The events on watches as well.
    AtEvents,
}

/// A watch of the simulated server.
type Watched = ((String, String, usize), Watch);

/// The number of the next namespace. Every run of a script has one of its own.
static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

/// Reads a CRD.
///
/// # Errors
/// If there is none.
pub fn definition(path: &str) -> Result<Value> {
    let text = std::fs::read_to_string(artifacts::repository().join(path)).context(path.to_owned())?;
    Ok(serde_saphyr::from_str(&text)?)
}

impl Arena {
    /// Runs one script. Returns what differs, in words.
    ///
    /// # Errors
    /// If a server does not answer.
    pub async fn check(&self, seed: u64, index: usize) -> Result<Option<String>> {
        let mut writer = Writer::new(seed.wrapping_mul(1_000_003) + index as u64, &self.kinds, "NAMESPACE");
        let steps: Vec<_> = (0..STEPS).map(|_| writer.next_step()).collect();
        let Some(mismatch) = self.run(&steps, Looks::AtEvents).await? else { return Ok(None) };
        if !self.shrinks {
            let last = steps.get(mismatch.step).map(|step| step.object.clone()).unwrap_or_default();
            let steps =
                steps.into_iter().take(mismatch.step + 1).filter(|step| step.object == last).collect::<Vec<_>>();
            return Ok(Some(describe((seed, index), &steps, &mismatch)));
        }
        let (steps, mismatch) = shrink(self, steps, mismatch).await?;
        Ok(Some(describe((seed, index), &steps, &mismatch)))
    }

    /// Runs requests in a new namespace, until an answer differs.
    ///
    /// # Errors
    /// If a server does not answer.
    pub async fn run(&self, steps: &[Step], looks: Looks) -> Result<Option<Mismatch>> {
        let namespace = format!("diff-{}", NAMESPACES.fetch_add(1, Ordering::Relaxed));
        let mut real = Side::new(Real(self.client.clone()));
        let mut simulated = Side::new(self.simulated().await?);
        let first = create_namespace(&namespace);
        real.take(&first).await?;
        simulated.take(&first).await?;
        let watched = self.watch(&mut simulated.server)?;
        let (mut real_tokens, mut simulated_tokens) = (Tokens::default(), Tokens::default());
        for (index, step) in steps.iter().enumerate() {
            let step = step.in_namespace(&namespace);
            let mut answers = (real.take(&step).await?, simulated.take(&step).await?);
            if answers.0.code == 0 {
                continue;
            }
            [&mut answers.0, &mut answers.1].into_iter().for_each(|answer| level(&step, &mut answer.body));
            let lines = differences(&real_tokens.of_answer(&answers.0), &simulated_tokens.of_answer(&answers.1));
            if !lines.is_empty() {
                let messages = format!("real: {}\nsimulated: {}", answers.0.body["message"], answers.1.body["message"]);
                let lines = lines.into_iter().chain([messages]).collect();
                return Ok(Some(Mismatch { step: index, lines, looks: Looks::AtAnswers }));
            }
        }
        for (key, mut watch) in watched.into_iter().filter(|_| looks == Looks::AtEvents) {
            let lines = simulated.server.server.events(&mut watch, Limit::default());
            let expected = lines.iter().map(|line| Ok(simulated_tokens.of(&serde_json::from_slice(line)?)));
            let expected: Vec<Value> = expected.collect::<Result<_>>()?;
            let found = self.watches.events(&namespace, &key, expected.len()).await;
            let found: Vec<Value> = found.iter().map(|event| real_tokens.of(event)).collect();
            let lines = differences(&json!(found), &json!(expected));
            if !lines.is_empty() {
                let head = format!("events on the watch {key:?}");
                let (step, lines) = (steps.len().saturating_sub(1), [vec![head], lines].concat());
                return Ok(Some(Mismatch { step, lines, looks }));
            }
        }
        Ok(None)
    }

    /// A simulated server with the CRDs.
    async fn simulated(&self) -> Result<Simulated> {
        let user = User::admin("admin");
        let mut simulated = Simulated { server: ApiServer::new(self.catalog.clone()), user };
        for definition in &self.definitions {
            let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
            let answer = simulated.send(request.body(Bytes::from(definition.to_string()))?).await?;
            anyhow::ensure!(answer.code == 201, "{answer:?}");
        }
        Ok(simulated)
    }

    fn watch(&self, simulated: &mut Simulated) -> Result<Vec<Watched>> {
        let version = simulated.server.revision();
        let mut watched = Vec::new();
        for kind in &self.kinds {
            for (index, selector) in SELECTORS.iter().enumerate() {
                let path = kind.path("any").replace("/namespaces/any", "");
                let uri = format!("{path}?watch=true&resourceVersion={version}{selector}");
                let request = Request::get(uri).body(Bytes::new())?;
                let watch = simulated.server.watch(Timestamp::now(), &simulated.user, &request);
                let watch = watch.map_err(|response| anyhow::anyhow!("{response:?}"))?;
                watched.push(((kind.plural.clone(), kind.api_version.clone(), index), watch));
            }
        }
        Ok(watched)
    }
}

/// Takes from an answer what means nothing.
fn level(step: &Step, body: &mut Value) {
    if step.uri.contains("dryRun") {
        // A dry run shows the resource version that it was given, whatever that is.
        put(body, "/metadata/resourceVersion", Value::Null);
        // Nor does it keep an address.
        if body["spec"]["clusterIP"].is_string() {
            put(body, "/spec/clusterIP", Value::Null);
            put(body, "/spec/clusterIPs", Value::Null);
        }
    }
    // What a dry run of a delete shows of an object that would not be gone is an object that never was.
    if step.method == "DELETE" && !step.body["dryRun"].is_null() {
        *body = Value::Null;
    }
    // A list from the cache has no order.
    let is_cached = step.uri.contains("resourceVersion=0");
    if let Some(items) = body.get_mut("items").and_then(Value::as_array_mut).filter(|_| is_cached) {
        items.sort_by_key(|item| item["metadata"]["name"].to_string());
    }
}

fn create_namespace(name: &str) -> Step {
    Step::with("POST", "/api/v1/namespaces", json!({"metadata": {"name": name}})).about("namespaces", name)
}

fn describe((seed, index): (u64, usize), steps: &[Step], mismatch: &Mismatch) -> String {
    let steps = steps.iter().map(|step| {
        let begins =
            if step.begins_as == Beginning::Nothing { String::new() } else { format!(" {:?} with", step.begins_as) };
        let content_type = step.content_type.trim_start_matches("application/");
        format!("  {} {} ({content_type}){begins} {}", step.method, step.uri, step.body)
    });
    let steps = steps.collect::<Vec<_>>().join("\n");
    let lines = mismatch.lines.iter().take(12).cloned().collect::<Vec<_>>().join("\n    ");
    format!("seed {seed}, script {index}, request {}:\n{steps}\n    {lines}", mismatch.step)
}
