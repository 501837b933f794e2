//! Which fields the charts' schemas know of what Kubernetes defines: to the letter those of the API server. Renders nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use http::Request;
use pilothouse_tests::helm;
use serde_json::Value;

use super::CHARTS;
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The documents of the API server that have the types.
const DOCUMENTS: [&str; 2] = ["/openapi/v3/api/v1", "/openapi/v3/apis/networking.k8s.io/v1"];

/// The sources of a volume that nothing can be written to, or that are empty in each Pod, and the name of the volume.
const NO_CACHE: [&str; 7] = ["name", "configMap", "secret", "downwardAPI", "projected", "image", "gitRepo"];

/// The sources of a volume that has no files from elsewhere, or that has no room for components.
const NO_FILES: [&str; 7] = ["name", "emptyDir", "ephemeral", "secret", "downwardAPI", "projected", "gitRepo"];

/// Of the metadata of a template, a claim takes these only.
const OF_TEMPLATES: [&str; 2] = ["annotations", "labels"];

pub fn register(suite: &mut Suite) {
    tests!(suite, the_charts_know_each_field_of_kubernetes);
}

async fn the_charts_know_each_field_of_kubernetes(env: &mut TestEnv) -> Result<()> {
    let mut types = BTreeMap::new();
    for document in DOCUMENTS {
        let request = Request::get(document).body(Vec::new())?;
        let document: Value = env.namespace.client().request(request).await?;
        let schemas = document["components"]["schemas"].as_object().context("no schemas")?;
        types.extend(schemas.iter().map(|(name, schema)| (last(name, '.').to_owned(), schema.clone())));
    }
    for chart in CHARTS {
        let schema = std::fs::read_to_string(helm::chart(chart)?.join("values.schema.json"))?;
        let schema: Value = serde_json::from_str(&schema)?;
        let definitions = schema["definitions"].as_object().context("no definitions")?;
        for (name, definition) in definitions {
            let of_kubernetes = types.get(name).with_context(|| format!("the API server has no {name}"))?;
            ensure!(definition["additionalProperties"] == false, "{chart}: {name} takes any field");
            let (own, theirs) = (fields(definition), fields(of_kubernetes));
            ensure!(own == theirs, "{chart}: {name} has {own:#?}, and in Kubernetes {theirs:#?}");
            let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
            ensure!(required(definition) == required(of_kubernetes), "{chart}: {name} needs others");
        }
    }
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(helm::chart("pilothouse")?.join("values.schema.json"))?)?;
    for (value, others) in [("cache", NO_CACHE), ("pluginFiles", NO_FILES)] {
        let own = fields(&schema["properties"][value]);
        let mut theirs = fields(types.get("Volume").context("the API server has no Volume")?);
        theirs.retain(|(name, _)| !others.contains(&name.as_str()));
        ensure!(own == theirs, "{value} can be {own:#?}, and in Kubernetes {theirs:#?}");
    }
    Ok(())
}

/// The fields of a type, each with the type that it has, where that has a name.
fn fields(schema: &Value) -> BTreeSet<(String, String)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), named_type(property))).collect()
}

/// The type of a field or of its elements; empty where it is a plain value.
fn named_type(property: &Value) -> String {
    let places = [property, &property["allOf"][0], &property["items"], &property["items"]["allOf"][0]];
    let reference = places.into_iter().find_map(|place| place["$ref"].as_str()).unwrap_or_default();
    let name = last(last(reference, '/'), '.');
    let is_template = property["properties"].as_object().is_some_and(|own| own.keys().eq(OF_TEMPLATES));
    match name {
        // Plain values in JSON.
        "Quantity" | "IntOrString" => String::new(),
        "" if is_template => "ObjectMeta".to_owned(),
        name => name.to_owned(),
    }
}

fn last(name: &str, separator: char) -> &str {
    name.rsplit(separator).next().unwrap_or(name)
}
