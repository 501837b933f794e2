//! `pilothouse render`: prints what a plugin returns for an object, without a cluster. The response passes the same pure stages as in
//! the host.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, bail, ensure};
use clap::Args;
use kube::api::ApiResource;
use pilothouse_controller::{
    object::{Incoming, Object, describe},
    pipeline::{
        check::{self, Children, Desired, DesiredChild, KnownKinds, Owner},
        conditions::status_word,
        observe::{LiveChild, Observed},
        plan::{
            Normalised, PlanHistory, Recreations,
            deletion_guard::{self, DeletionContext, DeletionDecision},
            diff::in_words,
            plan,
        },
    },
    plugin::NewVersionWindow,
    projection::{Projection, Projections},
    schema::Schema,
    selector::Selector,
};
use pilothouse_engine::{
    Answer, CallContext, Compiler, Engine, EngineConfig, Limits, Lookups, Manifest, Outcome, Query, Reconciler, Scope,
    Target, Verb,
    contract::{KindRef, LookupError, Verdict},
};
use serde_json::{Value, json};

use crate::{cache_dir::CacheDir, logging::Logging, yaml};

/// Print the children that a plugin returns for an object, as YAML, without a cluster.
///
/// The plugin runs under the host's limits, and its response passes the host's own checks. Standard error shows
/// the verdict, the conditions, and what the host would do with the children given by --children.
#[derive(Args)]
pub struct Render {
    /// The plugin.
    plugin: PathBuf,
    /// YAML or JSON file with the object; - for standard input.
    object: PathBuf,
    /// YAML or JSON file with the object's live children.
    #[arg(long, value_name = "FILE")]
    children: Option<PathBuf>,
    /// YAML or JSON file with the objects that the plugin can look up.
    #[arg(long, value_name = "FILE")]
    lookups: Option<PathBuf>,
    /// YAML or JSON file with the plugin's configuration.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also print the status that the plugin returns, as the last document.
    #[arg(long)]
    status: bool,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Render {
    /// Runs the command.
    ///
    /// # Errors
    /// If the input is not valid, the plugin fails, or the host would refuse its response.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.render())
    }

    async fn render(&self) -> anyhow::Result<()> {
        let bytes =
            std::fs::read(&self.plugin).with_context(|| format!("failed to read '{}'", self.plugin.display()))?;
        let engine = Engine::new(EngineConfig {
            cache: self.cache_dir.path()?,
            compiler: Compiler::InProcess,
            limits: Limits::default(),
            call_memory: usize::MAX,
        })?;
        let plugin = engine.load(bytes).await.with_context(|| format!("'{}'", self.plugin.display()))?;
        let observed = self.observed(plugin.manifest())?;
        let config = self.config.as_deref().map(yaml::read_one).transpose()?.unwrap_or_default();
        let contract = plugin.manifest().series();
        let request = observed.request(contract, Vec::new(), &config.to_string());
        let lookups = FromFile(self.lookups.as_deref().map(yaml::read).transpose()?.unwrap_or_default());
        let context = CallContext { lookups: Arc::new(lookups), now: jiff::Timestamp::now() };
        let call = plugin.call(Verb::Reconcile, request, context).await;
        let response = match call.outcome {
            Outcome::Response(response) => response,
            failed => bail!("the plugin failed: {failed:?}"),
        };
        let owner = Owner {
            manifest: plugin.manifest(),
            kind: &observed.kind,
            object: &observed.object,
            schema: None,
            namespaces: None,
            kinds: &AllNamespaced,
        };
        let children = response.children.as_deref().map_or(Children::Leave, Children::Check);
        let mut desired = check::check(&owner, &response, children)?;
        let children = desired.children.take_checked();
        print_verdict(&desired);
        if let Some(children) = &children {
            print_plan(children, &desired, &observed, plugin.digest());
        }
        self.print(&desired, children.as_deref().unwrap_or_default())
    }

    /// The object and its children as the caches would hold them.
    fn observed(&self, manifest: &Manifest) -> anyhow::Result<Observed> {
        let kind = manifest.reconciles.clone();
        let documents = yaml::read(&self.object)?;
        let [object] = &documents[..] else {
            bail!("'{}' has {} objects; render takes one", self.object.display(), documents.len());
        };
        let found = kind_of(object);
        ensure!(found == kind, "'{}' is a {found}, but the plugin reconciles {kind}", self.object.display());
        let (object, projections) = (as_served(object.clone())?, Projections::declared(manifest));
        let mut children = Vec::new();
        for child in self.children.as_deref().map(yaml::read).transpose()?.unwrap_or_default() {
            let (kind, object) = (kind_of(&child), Arc::new(as_served(child)?));
            let projection = projections.of_child(&kind, &object);
            children.push(LiveChild { kind, object, projection });
        }
        Ok(Observed {
            kind,
            projection: projections.of_object(&object),
            object: Arc::new(object),
            children,
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
            namespaces: None,
        })
    }

    fn print(&self, desired: &Desired, children: &[DesiredChild]) -> anyhow::Result<()> {
        let status = desired.status.clone().filter(|_| self.status).map(|status| json!({"status": status}));
        let bodies = children.iter().map(|child| child.body.clone()).chain(status);
        for body in bodies {
            print!("---\n{}", yaml::print(&body)?);
        }
        Ok(())
    }
}

/// Prints the verdict, the conditions and the Events to standard error.
fn print_verdict(desired: &Desired) {
    match &desired.verdict {
        Verdict::Done => eprintln!("verdict: done"),
        Verdict::Wait(waiting) => {
            eprintln!("verdict: wait {} s: {}: {}", waiting.seconds, waiting.reason, waiting.message);
        }
        Verdict::Retry(why) => eprintln!("verdict: retry: {why}"),
        Verdict::Invalid(why) => eprintln!("verdict: invalid: {why}"),
    }
    for condition in &desired.conditions {
        let status = status_word(condition.status);
        eprintln!("condition: {}={status} {}: {}", condition.condition_type, condition.reason, condition.message);
    }
    for event in &desired.events {
        eprintln!("event: {}: {}", event.reason, event.message);
    }
}

/// Prints what the host would do with the live children, as far as one object shows it.
fn print_plan(children: &[DesiredChild], desired: &Desired, observed: &Observed, digest: &str) {
    let history = PlanHistory { normalised: &Normalised::default(), recreations: &Recreations::default() };
    let plan = plan(children.to_vec(), observed, history);
    for write in &plan.writes {
        let (finding, fields) = (write.cause.finding(&write.child.kind.kind), in_words(write.cause.differences()));
        eprintln!("plan: {finding} ({}) {fields}", write.cause);
    }
    let context = DeletionContext {
        version: &digest[..digest.floor_char_boundary(12)],
        on_purpose: desired.removes_many,
        // Without a cluster nothing is known of an earlier failure. The status of the object decides.
        is_pending: false,
        new_version: &NewVersionWindow::begin([]),
    };
    if let DeletionDecision::HoldBack(why) = deletion_guard::decide(&plan, observed, context) {
        return eprintln!("plan: hold back {} deletes: the plugin {why}", plan.deletes.len());
    }
    for delete in &plan.deletes {
        eprintln!("plan: delete {} ({})", describe(&delete.kind, &delete.live.name), delete.cause);
    }
}

fn kind_of(object: &Value) -> KindRef {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    KindRef::new(field("apiVersion"), field("kind"))
}

/// Adds the fields that the API server sets on every object, and converts the object as the caches do.
fn as_served(mut object: Value) -> anyhow::Result<Object> {
    ensure!(object.get("metadata").is_some_and(Value::is_object), "an object without metadata: {object}");
    let kind = kind_of(&object);
    let metadata = &mut object["metadata"];
    for (field, value) in [
        ("namespace", json!("default")),
        ("uid", json!("00000000-0000-0000-0000-000000000000")),
        ("generation", json!(1)),
    ] {
        if metadata.get(field).is_none() {
            metadata[field] = value;
        }
    }
    ensure!(metadata.get("name").is_some_and(Value::is_string), "an object of kind {kind} without metadata.name");
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        plural: String::new(),
        api_version: kind.api_version,
        kind: kind.kind,
    };
    let incoming: Incoming = serde_json::from_str(&object.to_string())?;
    Ok(incoming.into_object(&resource))
}

/// Without a cluster, scopes are unknown. Children count as namespaced, because nearly all are.
struct AllNamespaced;

impl KnownKinds for AllNamespaced {
    fn is_namespaced(&self, _: &KindRef) -> Option<bool> {
        Some(true)
    }

    fn schema(&self, _: &KindRef) -> Option<&Schema> {
        None
    }
}

/// Answers lookups from the objects of a file.
struct FromFile(Vec<Value>);

impl FromFile {
    fn in_scope<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Value> {
        let in_namespace = move |object: &&Value| {
            let found = object.pointer("/metadata/namespace").and_then(Value::as_str);
            match &query.scope {
                Scope::Namespace(namespace) => found.is_none_or(|found| found == namespace),
                // The namespace of the object is that of the file.
                Scope::OwnNamespace | Scope::OwnNamespaceIfAny | Scope::AllNamespaces => true,
            }
        };
        self.0.iter().filter(|object| kind_of(object) == query.kind).filter(in_namespace)
    }
}

impl Lookups for FromFile {
    fn answer(&self, query: &Query, _: usize) -> Result<Answer, LookupError> {
        let found: Vec<_> = match &query.target {
            Target::Name(name) => {
                let named = |object: &&Value| object.pointer("/metadata/name").and_then(Value::as_str) == Some(name);
                self.in_scope(query).find(named).into_iter().collect()
            }
            Target::Labels(selector) => {
                let selector = Selector::parse(selector).map_err(|error| LookupError::Denied(error.to_string()))?;
                self.in_scope(query).filter(|object| selector.matches(&labels(object))).collect()
            }
        };
        let projection = (!query.fields.is_empty()).then(|| Projection::showing(&query.fields));
        let text = |object: &Value| {
            let whole = object.to_string();
            projection.as_ref().map_or_else(|| whole.clone(), |projection| projection.of(&whole).0)
        };
        Ok(Answer::of_texts(found.into_iter().map(text).collect()))
    }
}

fn labels(object: &Value) -> BTreeMap<Box<str>, Box<str>> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
}
