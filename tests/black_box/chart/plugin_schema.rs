//! What the chart knows of a plugin's fields: the schema of its values says what the CRD of `Plugin` says, word for word, and values.yaml has an
//! example of each. Says nothing of what the fields do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use pilothouse_tests::{
    artifacts,
    helm::{Helm, Release, chart},
};
use serde_json::{Map, Value, json};

use crate::{
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// What the values say in other words than the `Plugin` does, and by which of them.
const IN_OTHER_WORDS: [(&str, &[&str]); 3] = [
    ("grants", &["reconciles", "children", "lookups"]),
    ("serviceAccountName", &["account"]),
    ("serviceAccountNamespace", &["account"]),
];

/// What only the values say: the name of the `Plugin`, and what rights its manifest asks for.
const OF_THE_CHART: [&str; 4] = ["name", "decorates", "finalizer", "expires"];

/// What both kinds of schema have, and mean alike.
const ALIKE: [&str; 8] = ["type", "enum", "pattern", "minLength", "maxLength", "maxItems", "maxProperties", "required"];

/// What says nothing of values, or is among the rules below.
const OF_CRDS: [&str; 5] =
    ["nullable", "format", "default", "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"];

/// What a CRD says by rules in CEL. They are in the chart's schema by these words, and not compared.
const RULES: [&str; 6] = ["oneOf", "anyOf", "if", "then", "else", "propertyNames"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_schema_of_plugins_is_that_of_the_crd,
        a_plugin_that_does_not_fit_is_refused,
        every_field_of_a_plugin_is_documented,
    );
}

async fn the_schema_of_plugins_is_that_of_the_crd(_: &mut TestEnv) -> Result<()> {
    let crd = std::fs::read_to_string(artifacts::repository().join("crds/plugins.pilothouse.dev.yaml"))?;
    let crd: Value = serde_saphyr::from_str(&crd)?;
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let spec = spec.as_object().context("a CRD without a spec")?;
    let schema = of_plugins()?;
    ensure!(schema["additionalProperties"] == false, "any field is taken");
    let fields = schema["properties"].as_object().context("no fields")?;
    let others: BTreeMap<_, _> = IN_OTHER_WORDS.into();
    let mut known: BTreeSet<_> = OF_THE_CHART.into();
    for (name, needed) in spec {
        if let Some(words) = others.get(name.as_str()) {
            known.extend(*words);
            continue;
        }
        known.insert(name);
        let given = fields.get(name).with_context(|| format!("values.schema.json does not have {name}"))?;
        same(&as_values(needed)?, &without_rules(given), name)?;
    }
    let given: BTreeSet<_> = fields.keys().map(String::as_str).collect();
    ensure!(given == known, "the values have {given:?}, and a Plugin {known:?}");
    for (granted, fields) in
        [("children", ["group", "kind"].as_slice()), ("lookups", &["group", "kind", "allNamespaces"])]
    {
        let of_crd = &spec["grants"]["properties"][granted]["items"]["properties"];
        ensure!(names(of_crd) == fields.iter().copied().collect(), "{granted}: {:?}", names(of_crd));
        let of_chart = names(&schema["properties"][granted]["items"]["properties"]);
        ensure!(names(of_crd).is_subset(&of_chart), "{granted}: {of_chart:?}");
    }
    Ok(())
}

/// A gate that is misspelt is no gate, and nobody would notice.
async fn a_plugin_that_does_not_fit_is_refused(_: &mut TestEnv) -> Result<()> {
    let helm = Helm::get().await?;
    for (more, words) in [
        (json!({"rolout": {}}), "rolout"),
        (json!({"rollout": {"plann": "Require"}}), "plann"),
        (json!({"rollout": {"plan": "Required"}}), "rollout/plan"),
        (json!({"rollout": {"maxFailedPercents": 5}}), "maxFailedPercents"),
        (json!({"rollout": {"maxFailedPercent": 100}}), "maxFailedPercent"),
        (json!({"rollout": {"strategy": "Canary"}}), "steps"),
        (json!({"rollout": {"steps": [{"percent": 5, "seconds": 5}]}}), "steps"),
        (json!({"rollout": {"strategy": "Canary", "steps": [{"percent": 5, "objects": 3, "seconds": 5}]}}), "steps/0"),
        (json!({"rollout": {"strategy": "Canary", "steps": [{"percent": 5}]}}), "seconds"),
        (json!({"rollout": {"pins": [{"name": "shop"}]}}), "pins/0"),
        (json!({"limits": {"memory": 5}}), "memory"),
        (json!({"verification": {}}), "keys"),
        (json!({"verification": {"keys": ["key"], "transparencyLogs": "Ignore"}}), "transparencyLogs"),
        (json!({"namespaces": {"labels": {}}}), "labels"),
        (json!({"namespaces": {"matchExpressions": [{"key": "team", "operator": "In"}]}}), "values"),
        (json!({"source": {"configMap": {"name": "web", "pieces": 3}}}), "digest"),
        (json!({"source": {"configMap": {"name": "web"}, "oci": {"image": "web"}}}), "source"),
        (json!({"source": {"directory": {"fileName": "web.wasm"}, "oci": {"image": "web"}}}), "source"),
        (json!({"source": {"directory": {"fileName": "../web.wasm"}}}), "fileName"),
        (
            json!({"lookups": [{"group": "", "kind": "Node", "resource": "nodes", "clusterscoped": true}]}),
            "clusterscoped",
        ),
    ] {
        let values = ["--set-json", &plugins(&[plugin("web", &more)])];
        let refused = helm.text(release(&values)).await.err().with_context(|| format!("it takes {more}"))?.to_string();
        ensure!(refused.contains(words) && refused.contains("schema"), "{more}: {refused}");
    }
    Ok(())
}

/// By the example in values.yaml, which Helm renders.
async fn every_field_of_a_plugin_is_documented(_: &mut TestEnv) -> Result<()> {
    let values = std::fs::read_to_string(chart("pilothouse")?.join("values.yaml"))?;
    let example = values.lines().skip_while(|line| !line.starts_with("#   - name:"));
    let example: String = example.map_while(|line| line.strip_prefix('#')).map(|line| format!("{line}\n")).collect();
    let examples: Vec<Value> = serde_saphyr::from_str(&example).context("the example in values.yaml is no YAML")?;
    let mut missing = BTreeSet::new();
    undocumented(&examples.iter().collect::<Vec<_>>(), &of_plugins()?, "plugins", &mut missing);
    ensure!(missing.is_empty(), "values.yaml has no example of {missing:?}");
    let values = ["--set-json", &plugins(&examples), "--set", "pluginFiles.image.reference=plugins"];
    let objects = Helm::get().await?.objects(release(&values)).await?;
    let made = objects.iter().filter(|object| object["kind"] == "Plugin").count();
    ensure!(made == examples.len() && made > 0, "{made} Plugins of {} examples", examples.len());
    Ok(())
}

/// The fields of a schema that none of these examples has.
fn undocumented(examples: &[&Value], schema: &Value, path: &str, missing: &mut BTreeSet<String>) {
    if schema["items"].is_object() {
        let items: Vec<_> = examples.iter().filter_map(|example| example.as_array()).flatten().collect();
        return undocumented(&items, &schema["items"], path, missing);
    }
    for (name, of_field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let values: Vec<_> = examples.iter().filter_map(|example| example.get(name)).collect();
        if values.is_empty() {
            missing.insert(path);
        } else {
            undocumented(&values, of_field, &path, missing);
        }
    }
}

/// What a schema of a CRD says, as a schema of values says it.
fn as_values(schema: &Value) -> Result<Value> {
    let mut values = Map::new();
    for (word, said) in schema.as_object().context("a schema that is no object")? {
        let said = match word.as_str() {
            "type" if schema["nullable"] == true => json!([said, "null"]),
            "description" => json!(text(said).replace('\n', " ")),
            "minimum" | "maximum" => json!(whole(said)?),
            "items" | "additionalProperties" => as_values(said)?,
            "properties" => {
                // What is not there is taken by no CRD either: it is left out without a word.
                values.insert("additionalProperties".to_owned(), json!(false));
                let fields = said.as_object().context("properties that are no object")?;
                let fields = fields.iter().map(|(name, field)| Ok((name.clone(), as_values(field)?)));
                Value::Object(fields.collect::<Result<_>>()?)
            }
            word if ALIKE.contains(&word) => said.clone(),
            word if OF_CRDS.contains(&word) => continue,
            word => bail!("the CRD says {word}, and nobody knows how values say that"),
        };
        values.insert(word.clone(), said);
    }
    Ok(Value::Object(values))
}

/// A schema of values without what a CRD says by rules in CEL.
fn without_rules(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(word, _)| !RULES.contains(&word.as_str()));
            Value::Object(kept.map(|(word, said)| (word.clone(), without_rules(said))).collect())
        }
        Value::Array(items) => items.iter().map(without_rules).collect(),
        other => other.clone(),
    }
}

/// Compares part by part, to say which one is another.
fn same(needed: &Value, given: &Value, path: &str) -> Result<()> {
    let (Some(all), Some(others)) = (needed.as_object(), given.as_object()) else {
        ensure!(needed == given, "values.schema.json: {path} is {given}, and the CRD says {needed}");
        return Ok(());
    };
    for name in all.keys().chain(others.keys()) {
        same(&needed[name], &given[name], &format!("{path}.{name}"))?;
    }
    Ok(())
}

fn whole(number: &Value) -> Result<i64> {
    let number = number.as_f64().context("a limit that is no number")?;
    ensure!(number.fract() == 0.0, "a limit of {number}");
    Ok(format!("{number:.0}").parse()?)
}

fn names(properties: &Value) -> BTreeSet<&str> {
    properties.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// The schema of one plugin of the values.
fn of_plugins() -> Result<Value> {
    let schema = std::fs::read_to_string(chart("pilothouse")?.join("values.schema.json"))?;
    let schema: Value = serde_json::from_str(&schema)?;
    Ok(schema["properties"]["plugins"]["items"].clone())
}

fn release<'a>(values: &'a [&'a str]) -> Release<'a> {
    Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values }
}

/// A plugin of the values with what every one has to have, and more.
pub fn plugin(name: &str, more: &Value) -> Value {
    let mut plugin = json!({
        "name": name,
        "source": {"configMap": {"name": name}},
        "reconciles": {"group": "test.pilothouse.dev", "kind": "Web", "resource": "webs"},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        plugin[field] = value.clone();
    }
    plugin
}

/// The value of plugins, for `--set-json`.
pub fn plugins(plugins: &[Value]) -> String {
    format!("plugins={}", json!(plugins))
}
