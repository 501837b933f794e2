//! A component that was built for contract 0.1.0 is loaded and called by this host as it was by the first. The component is a file
//! that nothing builds anew: `tests/fixtures/contract-0.1`. Where one of these tests fails, the host has broken its promise to
//! plugins that exist, and the host is what must change.

use std::{error::Error, path::Path, sync::Arc};

use jiff::Timestamp;
use pilothouse_engine::{
    Answer, Call, CallContext, Compiler, Engine, EngineConfig, Limits, Lookups, Outcome, Plugin, Query, Reconciler,
    Scope, Target, Verb,
    contract::{
        Child, Condition, ConditionStatus, Event, EventType, ImmutablePolicy, KindRef, Label, LiveChild, LookupError,
        Measurement, Readiness, RemovalPolicy, Request, Response, Verdict, Waiting,
    },
};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// What the plugin reads in each reconcile, as it says in its status.
const READ: &str = r#"{"children":["plain"],"config":{"colour":"green"},"denied":"not declared","found":"there","missing":null,"notInstalled":"no Secrets here","now":"2026-11-23T12:00:00Z","selected":["a","b"]}"#;

#[tokio::test]
async fn its_manifest_is_read() -> Result {
    let plugin = plugin().await?;
    let manifest = plugin.manifest();
    assert_eq!((&*manifest.name, &*manifest.contract), ("contract-0-1", "0.1.0"));
    assert_eq!(manifest.reconciles, KindRef::new("test.pilothouse.dev/v1", "Everything"));
    assert!(manifest.finalizes);
    assert_eq!(manifest.measurements.len(), 1);
    Ok(())
}

#[tokio::test]
async fn every_field_of_its_answer_arrives() -> Result {
    let call = call(&plugin().await?, Verb::Reconcile, "done").await?;
    let expected = Response {
        verdict: Verdict::Done,
        children: Some(vec![child("plain"), kept()]),
        removes_many: true,
        status: Some(READ.to_owned()),
        conditions: vec![
            condition("Ready", ConditionStatus::IsTrue, "Up", "it is up"),
            condition("Slow", ConditionStatus::IsFalse, "Quick", ""),
            condition("Known", ConditionStatus::Unknown, "Unseen", ""),
        ],
        events: vec![
            event(EventType::Normal, "Asked", "somebody asked"),
            event(EventType::Warning, "Warned", "nothing is wrong"),
        ],
        measurements: vec![Measurement {
            name: "everything_total".to_owned(),
            value: 1.0,
            labels: vec![Label { key: "verdict".to_owned(), value: "done".to_owned() }],
        }],
        requeue_after: Some(60),
    };
    assert_eq!(call.outcome, Outcome::Response(expected));
    Ok(())
}

#[tokio::test]
async fn what_it_reads_is_recorded() -> Result {
    let recorded = call(&plugin().await?, Verb::Reconcile, "done").await?.recorded;
    let asked: Vec<_> = recorded.lookups.iter().map(|lookup| lookup.query.clone()).collect();
    let scope = |namespace: Option<&str>| {
        namespace.map_or(Scope::OwnNamespaceIfAny, |namespace| Scope::Namespace(namespace.to_owned()))
    };
    let get = |kind: &str, namespace, name: &str| Query::by_name(KindRef::new("v1", kind), scope(namespace), name);
    let select = Query::by_labels(KindRef::new("v1", "ConfigMap"), scope(None), "app=web");
    let expected = [
        get("ConfigMap", None, "there"),
        get("ConfigMap", Some("other"), "gone"),
        select,
        get("Pod", None, "any"),
        get("Secret", None, "any"),
    ];
    assert_eq!(asked, expected);
    assert!(recorded.clock_read);
    Ok(())
}

#[tokio::test]
async fn every_verdict_arrives() -> Result {
    let plugin = plugin().await?;
    let waiting = Waiting { reason: "Waiting".to_owned(), message: "for nothing".to_owned(), seconds: 30 };
    for (word, verdict) in [
        ("wait", Verdict::Wait(waiting)),
        ("retry", Verdict::Retry("once more".to_owned())),
        ("invalid", Verdict::Invalid("never".to_owned())),
    ] {
        let call = call(&plugin, Verb::Reconcile, word).await?;
        assert!(matches!(&call.outcome, Outcome::Response(response) if response.verdict == verdict), "{call:?}");
    }
    Ok(())
}

#[tokio::test]
async fn its_finalizer_is_called() -> Result {
    let call = call(&plugin().await?, Verb::Finalize, "done").await?;
    let expected = Response { children: Some(Vec::new()), ..Response::verdict(Verdict::Done) };
    assert_eq!(call.outcome, Outcome::Response(expected));
    Ok(())
}

#[tokio::test]
async fn its_panic_is_told_in_its_own_words() -> Result {
    let call = call(&plugin().await?, Verb::Reconcile, "trap").await?;
    assert!(matches!(&call.outcome, Outcome::Trap(why) if why.contains("it was asked to")), "{call:?}");
    Ok(())
}

async fn plugin() -> Result<Plugin> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/contract-0.1/contract-0-1.wasm");
    let cache = tempfile::tempdir()?;
    let config = EngineConfig {
        cache: cache.path().to_owned(),
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        call_memory: usize::MAX,
    };
    Ok(Engine::new(config)?.load(std::fs::read(file)?).await?)
}

async fn call(plugin: &Plugin, verb: Verb, verdict: &str) -> Result<Call> {
    let metadata = r#""metadata":{"name":"it","namespace":"here"}"#;
    let request = Request {
        object: format!(
            r#"{{"apiVersion":"test.pilothouse.dev/v1","kind":"Everything",{metadata},"spec":{{"verdict":"{verdict}"}}}}"#
        ),
        children: vec![LiveChild { object: config_map("plain"), readiness: Readiness::current() }],
        refused: Vec::new(),
        config: r#"{"colour":"green"}"#.to_owned(),
    };
    let context = CallContext { lookups: Arc::new(Cluster), now: "2026-11-23T12:00:00Z".parse::<Timestamp>()? };
    Ok(plugin.call(verb, request, context).await)
}

/// ConfigMaps can be looked up, Secrets are not installed, nothing else is declared.
struct Cluster;

impl Lookups for Cluster {
    fn answer(&self, query: &Query, _: usize) -> std::result::Result<Answer, LookupError> {
        let found = match (&*query.kind.kind, &query.target) {
            ("ConfigMap", Target::Name(name)) => (name == "there").then(|| config_map(name)).into_iter().collect(),
            ("ConfigMap", Target::Labels(_)) => ["a", "b"].map(config_map).to_vec(),
            ("Secret", _) => return Err(LookupError::NotInstalled("no Secrets here".to_owned())),
            _ => return Err(LookupError::Denied("not declared".to_owned())),
        };
        Ok(Answer::of_texts(found))
    }
}

fn config_map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#)
}

fn child(name: &str) -> Child {
    Child::applied(config_map(name))
}

fn kept() -> Child {
    Child {
        on_immutable: ImmutablePolicy::Recreate,
        on_removal: RemovalPolicy::Keep,
        unmanaged_fields: vec!["/data/left".to_owned()],
        ..child("kept")
    }
}

fn condition(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> Condition {
    Condition { condition_type: kind.to_owned(), status, reason: reason.to_owned(), message: message.to_owned() }
}

fn event(event_type: EventType, reason: &str, message: &str) -> Event {
    Event { event_type, reason: reason.to_owned(), message: message.to_owned() }
}
