//! The alerts and the dashboard: every expression parses, and is about series that a host serves, with labels that they have. Every alert has
//! a page that says what to do.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pilothouse_tests::{
    artifacts,
    helm::{Helm, Release},
    metrics::{Family, Samples},
};
use promql_parser::{
    parser::{self, Expr, MatrixSelector, VectorSelector},
    util::{ExprVisitor, walk_expr},
};
use serde_json::Value;

use super::ALL;
use crate::{
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The labels that Prometheus gives to all series of a target.
const OF_TARGETS: [&str; 3] = ["namespace", "job", "pod"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_alert_is_about_what_the_host_serves,
        every_panel_is_about_what_the_host_serves,
        every_alert_has_a_page,
        every_alert_is_one_with_each_selector_that_is_taken,
        a_wrong_expression_is_noticed,
    );
}

async fn every_alert_is_about_what_the_host_serves(env: &mut TestEnv) -> Result<()> {
    let served = served(env).await?;
    let rules = alerts().await?;
    ensure!(rules.len() > 10, "{} alerts", rules.len());
    for rule in &rules {
        let uses = used(text(&rule["expr"]), &served).with_context(|| format!("in {}", rule["alert"]))?;
        ensure!(uses > 0, "{} is about nothing", rule["alert"]);
    }
    Ok(())
}

async fn every_panel_is_about_what_the_host_serves(env: &mut TestEnv) -> Result<()> {
    let served = served(env).await?;
    let objects = rendered().await?;
    let map = objects.iter().find(|object| !object["data"]["pilothouse.json"].is_null()).context("no dashboard")?;
    let dashboard: Value = serde_json::from_str(text(&map["data"]["pilothouse.json"]))?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let mut seen = 0;
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().filter(|targets| !targets.is_empty());
        for target in targets.with_context(|| format!("{} shows nothing", panel["title"]))? {
            // Grafana puts a duration there.
            let expression = text(&target["expr"]).replace("$__rate_interval", "5m");
            seen += used(&expression, &served).with_context(|| format!("in {}", panel["title"]))?;
        }
    }
    ensure!(seen > 20, "the dashboard shows {seen} series");
    for variable in dashboard["templating"]["list"].as_array().context("no variables")? {
        let query = text(&variable["query"]["query"]);
        let Some(inside) = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')) else {
            continue;
        };
        let (series, label) = inside.rsplit_once(", ").context("a query without a label")?;
        let uses = used(&format!("count by ({label}) ({series})"), &served);
        uses.with_context(|| format!("in the variable {}", variable["name"]))?;
    }
    Ok(())
}

async fn every_alert_has_a_page(_: &mut TestEnv) -> Result<()> {
    let page = std::fs::read_to_string(artifacts::repository().join("docs/alerts.md"))?;
    let described: BTreeSet<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let mut named = BTreeSet::new();
    for rule in alerts().await? {
        let (name, url) = (text(&rule["alert"]).to_owned(), text(&rule["annotations"]["runbook_url"]).to_owned());
        ensure!(url.ends_with(&format!("/docs/alerts.md#{}", name.to_lowercase())), "{name} links to {url}");
        ensure!(!text(&rule["annotations"]["summary"]).is_empty(), "{name} does not say what happens");
        named.insert(name);
    }
    ensure!(named == described, "the alerts are {named:?}, the page has {described:?}");
    Ok(())
}

/// One that is none, in one rule, and Prometheus loads no rule of the file.
async fn every_alert_is_one_with_each_selector_that_is_taken(_: &mut TestEnv) -> Result<()> {
    for (selector, refused) in [
        (r#"job="a: b #c""#, None),
        (r#"job="a",namespace=~"b|c""#, None),
        (r#" job = "a" , namespace !~ "b.*" "#, None),
        (r#"job=~"a\\.b""#, None),
        (r#"job="}{,\"""#, None),
        ("job=~'it\\'s'", None),
        ("job=`a`", None),
        ("}", Some("label matchers are expected")),
        ("a\"b", Some("label matchers are expected")),
        (r#"job="a","#, Some("label matchers are expected")),
        (r#"job="a" or vector(1)"#, Some("label matchers are expected")),
        (r#"job=~"a\.b""#, Some("label matchers are expected")),
        (r#"job=a"#, Some("label matchers are expected")),
        (r#"job=~"(""#, Some("missing closing")),
        (r#"__name__="a""#, Some("__name__")),
    ] {
        let value = format!("prometheusRule={}", serde_json::json!({"enabled": true, "selector": selector}));
        let values = ["--set-json", &*value];
        let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &values };
        match (Helm::get().await?.objects(release).await, refused) {
            (Ok(objects), None) => {
                for rule in rules_of(&objects)? {
                    let expression = text(&rule["expr"]);
                    parser::parse(expression).map_err(|error| anyhow!("{selector}: {error}: {expression}"))?;
                }
            }
            (Err(said), Some(words)) => ensure!(said.to_string().contains(words), "{selector}: {said}"),
            (Ok(_), Some(_)) => bail!("{selector} is taken"),
            (Err(said), None) => bail!("{selector} is refused: {said}"),
        }
    }
    Ok(())
}

/// What the tests above rely on.
async fn a_wrong_expression_is_noticed(env: &mut TestEnv) -> Result<()> {
    let served = served(env).await?;
    for (expression, words) in [
        ("sum(rate(workqueue_adds_total[5m])", "unclosed"),
        ("sum(workqueue_additions_total)", "no host serves"),
        ("workqueue_depth{plugin=\"web\"}", "has no label plugin"),
        ("sum by (plugin) (workqueue_depth)", "no series has"),
        ("rate(workqueue_queue_duration_seconds[5m])", "no host serves"),
        ("1 + 1", "no series"),
    ] {
        let refused = used(expression, &served).err().with_context(|| format!("{expression} is taken"))?;
        ensure!(format!("{refused:#}").contains(words), "{expression}: {refused:#}");
    }
    Ok(())
}

async fn rendered() -> Result<Vec<Value>> {
    let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &ALL };
    Helm::get().await?.objects(release).await
}

async fn alerts() -> Result<Vec<Value>> {
    rules_of(&rendered().await?)
}

fn rules_of(objects: &[Value]) -> Result<Vec<Value>> {
    let rules = objects.iter().find(|object| object["kind"] == "PrometheusRule").context("no alerts")?;
    Ok(rules["spec"]["groups"][0]["rules"].as_array().context("no rules")?.clone())
}

/// What a host with a plugin, an election and a `Plugin` serves.
async fn served(env: &mut TestEnv) -> Result<Samples> {
    env.start_measured().await?;
    env.metrics_at_rest().await
}

/// How many series an expression is about. All of them are served, with the labels that it selects and groups by.
fn used(expression: &str, served: &Samples) -> Result<usize> {
    let parsed = parser::parse(expression).map_err(|error| anyhow!("{error}: {expression}"))?;
    let mut found = Found::default();
    walk_expr(&mut found, &parsed)?;
    ensure!(!found.selectors.is_empty(), "no series in {expression}");
    let mut labels: BTreeSet<_> = OF_TARGETS.map(str::to_owned).into();
    for selector in &found.selectors {
        let name = selector.name.as_deref().with_context(|| format!("a series without a name in {expression}"))?;
        let family = family(name, served).with_context(|| format!("no host serves {name}: {expression}"))?;
        let mut own = family.labels.clone();
        own.extend(OF_TARGETS.map(str::to_owned));
        own.extend((family.kind == "histogram").then(|| "le".to_owned()));
        for matcher in &selector.matchers.matchers {
            ensure!(own.contains(&matcher.name), "{name} has no label {}: {expression}", matcher.name);
        }
        labels.extend(own);
    }
    let unknown: Vec<_> = found.groups.iter().filter(|label| !labels.contains(*label)).collect();
    ensure!(unknown.is_empty(), "no series has {unknown:?}: {expression}");
    Ok(found.selectors.len())
}

fn family<'a>(name: &str, served: &'a Samples) -> Option<&'a Family> {
    let of_histogram = ["_bucket", "_count", "_sum"].iter().filter_map(|part| name.strip_suffix(part));
    let histogram = of_histogram.filter_map(|name| served.families.get(name)).find(|it| it.kind == "histogram");
    served.families.get(name).filter(|family| family.kind != "histogram").or(histogram)
}

/// The series and the labels for groups of an expression.
#[derive(Default)]
struct Found {
    selectors: Vec<VectorSelector>,
    groups: BTreeSet<String>,
}

impl ExprVisitor for Found {
    type Error = anyhow::Error;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool> {
        match expression {
            Expr::VectorSelector(selector) => self.selectors.push(selector.clone()),
            Expr::MatrixSelector(MatrixSelector { vs, .. }) => self.selectors.push(vs.clone()),
            Expr::Aggregate(aggregate) => {
                let modifier = aggregate.modifier.as_ref();
                self.groups.extend(modifier.into_iter().flat_map(|it| it.labels().labels.clone()));
            }
            _ => {}
        }
        Ok(true)
    }
}
