//! Runs a case: calls the plugin, carries out what it returns where the case has steps, and compares. Each call is made twice, and once
//! with its children in the opposite order: a plugin that answers otherwise is no function of its request.

use jiff::{SignedDuration, Timestamp};
use pilothouse_engine::{Reconciler, contract::Handling};
use serde_json::{Map, Value};

use super::{
    compare::{Difference, Match, differences},
    file::{Case, Expected, Step},
    scenario::Cluster,
    sections::sections,
    update::Rewrite,
};
use crate::{Inputs, InvalidObject, Round, lookups::undeclared, reconcile, round::reconcile_reversed, types::refused};

/// The most rounds of a step. The host gives up long before.
const MAX_ROUNDS: usize = 50;

/// How much later the clock is read to find what changes with time alone.
const LATER: SignedDuration = SignedDuration::from_hours(24);

/// A case that was run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What went wrong, in the order of the steps. Empty if the case passed.
    pub failures: Vec<StepFailure>,
    /// What is no failure but worth to know.
    pub notes: Vec<String>,
    /// The expectations to write so that the case passes. Empty if something is wrong that no expectation describes.
    pub rewrites: Vec<Rewrite>,
}

/// What went wrong in a step.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The name of the step; empty for the only one.
    pub step: String,
    /// What went wrong.
    pub failure: Failure,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The answer is another one than expected.
    #[error("the answer is not as expected")]
    Differs(Vec<Difference>),
    /// The same request has two answers.
    #[error("the plugin is not pure: two calls with the same request have different answers")]
    Impure(Vec<Difference>),
    /// The order of the children matters.
    #[error("the plugin is not pure: its answer depends on the order of the children in the request")]
    Unordered(Vec<Difference>),
    /// It never comes to rest.
    #[error("the object is not at rest after {MAX_ROUNDS} rounds: each answer differs from the one before")]
    Restless(Vec<Difference>),
    /// The host would hold deletes back.
    #[error(
        "the host would hold the deletes back: the plugin {0}; an answer that removes that many on purpose says so"
    )]
    HeldBack(String),
    /// The API server would refuse children. Each is a sentence.
    #[error("the API server would refuse {}", .0.join("\nthe API server would refuse "))]
    Refused(Vec<String>),
    /// There is nothing to compare with.
    #[error("there is no `expect`; `pilothouse test --update` writes what the plugin answers now")]
    NothingExpected,
    /// The case is about what cannot be.
    #[error("{0}")]
    Invalid(String),
}

impl Failure {
    /// The differences, if there are any.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Differs(differences)
            | Self::Impure(differences)
            | Self::Unordered(differences)
            | Self::Restless(differences) => differences,
            Self::HeldBack(_) | Self::Refused(_) | Self::NothingExpected | Self::Invalid(_) => &[],
        }
    }

    /// Whether another expectation would mend it.
    fn is_mended_by_update(&self) -> bool {
        matches!(self, Self::Differs(_) | Self::NothingExpected)
    }
}

/// Runs a case.
pub async fn run(plugin: &dyn Reconciler, case: &Case) -> Ran {
    let mut ran = Ran { failures: Vec::new(), notes: Vec::new(), rewrites: Vec::new() };
    let mut cluster = Cluster::new(case.inputs.clone());
    for step in &case.steps {
        let fail = |failure| StepFailure { step: step.name.clone(), failure };
        if let Err(error) = cluster.change(&step.changes) {
            ran.failures.push(fail(Failure::Invalid(error.to_string())));
            break;
        }
        if let Some(kind) = undeclared(&plugin.manifest().lookups, &cluster.inputs.lookups) {
            let note =
                format!("the case has a {kind} to look up, which the `lookups` of the plugin's manifest do not name");
            ran.notes.push(note);
        }
        let settled = match case.is_scenario {
            true => settle(plugin, &mut cluster).await,
            false => call(plugin, &cluster.inputs).await,
        };
        match settled {
            Ok(answered) => compare(step, answered, &mut ran),
            Err(failure) => {
                ran.failures.push(fail(failure));
                break;
            }
        }
    }
    if ran.failures.iter().any(|failed| !failed.failure.is_mended_by_update()) {
        ran.rewrites.clear();
    }
    ran
}

/// The answer of a step.
struct Answered {
    sections: Map<String, Value>,
    notes: Vec<String>,
}

fn compare(step: &Step, answered: Answered, ran: &mut Ran) {
    for note in answered.notes {
        if !ran.notes.contains(&note) {
            ran.notes.push(note);
        }
    }
    let failure = match &step.expected {
        None => Failure::NothingExpected,
        Some(expected) => {
            let found = compare_sections(expected, &answered.sections);
            if found.is_empty() {
                return;
            }
            Failure::Differs(found)
        }
    };
    let rewrite = Rewrite { place: step.place.clone(), expected: step.expected.clone(), actual: answered.sections };
    ran.failures.push(StepFailure { step: step.name.clone(), failure });
    ran.rewrites.push(rewrite);
}

fn compare_sections(expected: &Expected, actual: &Map<String, Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    let nothing = Value::Array(Vec::new());
    for (name, wanted) in &expected.sections {
        match actual.get(name) {
            Some(actual) => found.extend(differences(name, wanted, actual, expected.which)),
            None if *wanted == nothing => {}
            None => {
                found.push(Difference { path: name.clone(), expected: Some(wanted.clone()), actual: None });
            }
        }
    }
    let more = actual.iter().filter(|(name, _)| {
        // An error is never what a case forgot to expect.
        (expected.which == Match::Exact || *name == "error") && !expected.sections.contains_key(*name)
    });
    found.extend(more.map(|(name, value)| Difference {
        path: name.clone(),
        expected: None,
        actual: Some(value.clone()),
    }));
    found
}

/// Rounds until nothing changes.
async fn settle(plugin: &dyn Reconciler, cluster: &mut Cluster) -> Result<Answered, Failure> {
    let mut last = Map::new();
    cluster.let_controllers_work();
    for number in 1..=MAX_ROUNDS {
        let (round, answered) = checked_round(plugin, &cluster.inputs).await?;
        if let Ok(answer) = &round.answer
            && let Some(why) = answer.held_back()
        {
            return Err(Failure::HeldBack(why.to_owned()));
        }
        if !cluster.carry_out(&round) {
            return Ok(answered);
        }
        if number == MAX_ROUNDS {
            let changed = differences("", &Value::Object(last), &Value::Object(answered.sections), Match::Exact);
            return Err(Failure::Restless(changed));
        }
        last = answered.sections;
    }
    Err(Failure::Restless(Vec::new()))
}

async fn call(plugin: &dyn Reconciler, inputs: &Inputs) -> Result<Answered, Failure> {
    Ok(checked_round(plugin, inputs).await?.1)
}

/// One round, made again in ways that must not matter.
async fn checked_round(plugin: &dyn Reconciler, inputs: &Inputs) -> Result<(Round, Answered), Failure> {
    let invalid = |error: InvalidObject| Failure::Invalid(error.to_string());
    let round = reconcile(plugin, inputs).await.map_err(invalid)?;
    let first = Value::Object(sections(&round));
    let differs = |other: &Round| differences("", &first, &Value::Object(sections(other)), Match::Exact);
    let again = differs(&reconcile(plugin, inputs).await.map_err(invalid)?);
    if !again.is_empty() {
        return Err(Failure::Impure(again));
    }
    if inputs.children.len() > 1 {
        let reversed = differs(&reconcile_reversed(plugin, inputs).await.map_err(invalid)?);
        if !reversed.is_empty() {
            return Err(Failure::Unordered(reversed));
        }
    }
    let refused = refused_children(&round);
    if !refused.is_empty() {
        return Err(Failure::Refused(refused));
    }
    let mut notes: Vec<_> =
        round.recorded.denied.iter().map(|denied| format!("a lookup is denied: {}", denied.why)).collect();
    if round.recorded.clock_read {
        let later = Inputs { now: later(inputs.now), ..inputs.clone() };
        let changed = differs(&reconcile(plugin, &later).await.map_err(invalid)?);
        if let Some(first) = changed.first() {
            notes.push(format!("the answer changes with time alone: a day later, {} is another", first.path));
        }
    }
    Ok((round, Answered { sections: sections_of(first), notes }))
}

/// What the API server would refuse of the children, each with its child.
fn refused_children(round: &Round) -> Vec<String> {
    let children = round.answer.iter().flat_map(|answer| answer.children.iter().flatten());
    // Of a child that stays as it is, nothing is sent.
    let sent = children.filter(|child| child.handling != Handling::Keep);
    sent.flat_map(|child| {
        let name = format!("{} '{}'", child.kind.kind, child.name.name);
        refused(&child.kind, &child.body).into_iter().map(move |why| format!("{name}: {why}"))
    })
    .collect()
}

fn later(now: Timestamp) -> Timestamp {
    now.checked_add(LATER).unwrap_or(now)
}

fn sections_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(sections) => sections,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{FutureExt, future::BoxFuture};
    use pilothouse_engine::{
        Call, CallContext, Manifest, Outcome, Query, Recorded, Scope, Usage, Verb,
        contract::{Child, KindRef, Request, Response, Verdict},
    };
    use serde_json::json;

    use super::*;

    /// A plugin that is a function of its request, of the time, and of how often it was called before.
    struct Native {
        manifest: Manifest,
        answer: fn(&Request, &CallContext, usize) -> Response,
        calls: AtomicUsize,
    }

    impl Native {
        fn new(answer: fn(&Request, &CallContext, usize) -> Response) -> Self {
            let mut manifest = Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web"));
            manifest.children = vec![KindRef::new("v1", "ConfigMap")];
            manifest.lookups = vec![KindRef::new("v1", "Secret").into()];
            Self { manifest, answer, calls: AtomicUsize::new(0) }
        }
    }

    impl Reconciler for Native {
        fn manifest(&self) -> &Manifest {
            &self.manifest
        }

        fn digest(&self) -> &str {
            "0123456789abcdef"
        }

        fn call(&self, _: Verb, request: Request, context: CallContext) -> BoxFuture<'_, Call> {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let outcome = Outcome::Response((self.answer)(&request, &context, number));
            let recorded = Recorded { clock_read: true, ..Recorded::default() };
            futures::future::ready(Call { outcome, usage: Usage::default(), recorded }).boxed()
        }
    }

    /// Nothing in here waits for anything.
    fn ran(plugin: &Native, case: &Case) -> Ran {
        let never = || Ran { failures: Vec::new(), notes: vec!["it waits".to_owned()], rewrites: Vec::new() };
        run(plugin, case).now_or_never().unwrap_or_else(never)
    }

    fn config_map(name: &str, data: &str) -> Child {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data}});
        Child::applied(body.to_string())
    }

    fn of_children(children: Vec<Child>) -> Response {
        Response { children: Some(children), ..Response::verdict(Verdict::Done) }
    }

    fn case(text: &str) -> Vec<Case> {
        let head = "object: {apiVersion: example.com/v1, kind: Web, metadata: {name: a}, spec: {n: 1}}\n";
        super::super::file::parse("case.yaml".as_ref(), &format!("{head}{text}")).unwrap_or_default()
    }

    fn failures(plugin: &Native, text: &str) -> Vec<Failure> {
        let cases = case(text);
        assert_eq!(cases.len(), 1, "{text}");
        cases.iter().flat_map(|case| ran(plugin, case).failures).map(|failed| failed.failure).collect()
    }

    #[test]
    fn a_pure_plugin_passes() {
        let plugin = Native::new(|_, _, _| of_children(vec![config_map("b", "x")]));
        let expected = "expect:\n  children: [{kind: ConfigMap, metadata: {name: b}}]\n";
        assert_eq!(failures(&plugin, expected), []);
        let steps = format!("steps:\n- {}", expected.replace("\n", "\n  "));
        assert_eq!(failures(&plugin, &steps), []);
    }

    #[test]
    fn a_plugin_that_counts_its_calls_is_not_pure() {
        let plugin = Native::new(|_, _, number| of_children(vec![config_map("b", &number.to_string())]));
        let found = failures(&plugin, "expect: {verdict: done}\n");
        assert!(
            matches!(&found[..], [Failure::Impure(differs)] if differs[0].path == "children[ConfigMap/b].data.a"),
            "{found:?}"
        );
    }

    #[test]
    fn a_plugin_that_takes_the_first_child_depends_on_their_order() {
        let plugin = Native::new(|request, _, _| {
            let first = request.children.first().map(|child| child.object.clone()).unwrap_or_default();
            of_children(vec![config_map("a", &first)])
        });
        let child = |name| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n");
        let found = failures(&plugin, &format!("children:\n{}{}expect: {{verdict: done}}\n", child("a"), child("b")));
        assert!(matches!(&found[..], [Failure::Unordered(_)]), "{found:?}");
    }

    #[test]
    fn a_plugin_that_never_rests_is_found() {
        let plugin = Native::new(|request, _, _| {
            let count = request.children.iter().map(|child| child.object.matches('x').count()).sum::<usize>();
            of_children(vec![config_map("a", &"x".repeat(count + 1))])
        });
        let found = failures(&plugin, "steps:\n- expect: {verdict: done}\n");
        assert!(matches!(&found[..], [Failure::Restless(_)]), "{found:?}");
    }

    #[test]
    fn removing_everything_by_mistake_is_found() {
        let plugin = Native::new(|request, _, _| {
            let is_first = request.children.is_empty() && request.object.contains("\"generation\":1");
            let children = (0..12).map(|number| config_map(&format!("n{number}"), "x")).collect();
            of_children(if is_first || !request.config.contains("mistake") { children } else { Vec::new() })
        });
        let found =
            failures(&plugin, "steps:\n- expect: {verdict: done}\n- config: mistake\n  expect: {verdict: done}\n");
        assert!(matches!(&found[..], [Failure::HeldBack(why)] if why.contains("12 of 12")), "{found:?}");
    }

    #[test]
    fn what_changes_with_time_alone_and_what_cannot_be_looked_up_is_noted() {
        let plugin = Native::new(|_, context, _| {
            let query = Query::by_name(KindRef::new("v1", "Secret"), Scope::Namespace("other".to_owned()), "s");
            let found = context.lookups.answer(&query, 1_000);
            Response {
                status: Some(json!({"at": context.now.to_string(), "found": format!("{found:?}")}).to_string()),
                ..of_children(Vec::new())
            }
        });
        let lookups = "lookups:\n- {apiVersion: v1, kind: Node, metadata: {name: node}}\nexpect: {verdict: done}\n";
        let ran: Vec<_> = case(lookups).iter().map(|case| ran(&plugin, case)).collect();
        assert_eq!(ran[0].failures.len(), 0, "{ran:?}");
        let notes = ran[0].notes.join("\n");
        assert!(notes.contains("v1 Node to look up") && notes.contains("a day later, status.at is another"), "{notes}");
        let status = failures(&plugin, "expect: {status: {found: x}}\n");
        assert!(format!("{status:?}").contains("needs `allNamespaces`"), "{status:?}");
    }

    /// It gives its object the label that the spec names, and says in an annotation which ones it has.
    #[test]
    fn what_a_decorator_sets_on_its_object_counts_and_is_there_in_the_next_round() {
        let mut plugin = Native::new(|request, _, _| {
            let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
            let (label, seen) = (object["spec"]["label"].as_str().unwrap_or_default(), &object["metadata"]["labels"]);
            let metadata = json!({"name": "a", "labels": {label: "x"}, "annotations": {"seen": seen.to_string()}});
            let body = json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": metadata});
            of_children(vec![Child::applied(body.to_string())])
        });
        plugin.manifest.decorates = Some(Default::default());
        let step = |label: &str, expected: &str| {
            format!(
                "- patch: {{metadata: {{labels: {{theirs: kept}}}}, spec: {{label: {label}}}}}\n  expect: {{onObject: {expected}}}\n"
            )
        };
        let right = |label: &str, no: &str| {
            format!(
                "{{labels: {{{label}: x, {no}: null}}, annotations: {{seen: '{{\"{label}\":\"x\",\"theirs\":\"kept\"}}'}}}}"
            )
        };
        let steps = format!("steps:\n{}{}", step("one", &right("one", "two")), step("other", &right("other", "one")));
        assert_eq!(failures(&plugin, &steps), []);
        let found = failures(&plugin, &format!("steps:\n{}", step("one", "{labels: {one: y}}")));
        let paths = |failure: &Failure| failure.differences().iter().map(|it| it.path.clone()).collect::<Vec<_>>();
        assert_eq!(found.iter().flat_map(paths).collect::<Vec<_>>(), ["onObject.labels.one"]);
    }

    #[test]
    fn a_label_that_a_decorator_wants_and_somebody_else_has_set_stays_theirs() {
        let mut plugin = Native::new(|request, _, _| {
            let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
            let label = object["spec"]["label"].as_str().unwrap_or_default();
            let metadata = json!({"name": "a", "labels": {label: "mine"}, "annotations": {"seen": object["metadata"]["labels"].to_string()}});
            of_children(vec![Child::applied(
                json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": metadata}).to_string(),
            )])
        });
        plugin.manifest.decorates = Some(Default::default());
        let step = |label: &str, labels: &str| {
            format!(
                "- patch: {{metadata: {{labels: {{both: theirs}}}}, spec: {{label: {label}}}}}\n  expect: {{onObject: {{annotations: {{seen: '{labels}'}}}}}}\n"
            )
        };
        let both = r#"{"both":"theirs"}"#;
        let with_another = r#"{"both":"theirs","other":"mine"}"#;
        let steps = format!("steps:\n{}{}{}", step("both", both), step("both", both), step("other", with_another));
        assert_eq!(failures(&plugin, &steps), []);
    }

    #[test]
    fn a_step_about_a_child_that_is_not_there_says_so() {
        let plugin = Native::new(|_, _, _| of_children(vec![config_map("b", "x")]));
        let found = failures(&plugin, "steps:\n- expect: {verdict: done}\n- delete: [ConfigMap/c]\n");
        assert_eq!(found, [Failure::Invalid("there is no live child 'ConfigMap/c'; there are ConfigMap/b".to_owned())]);
    }
}
