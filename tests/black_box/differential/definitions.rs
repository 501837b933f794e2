//! CustomResourceDefinitions that come, change versions and go, and requests for their objects in between.

use std::sync::Arc;

use anyhow::Result;
use fastrand::Rng;
use pilothouse_simulation::{
    api_server::{ApiServer, Catalog},
    kinds::{self, WidgetVersions},
};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    script::Step,
    side::Answer,
};

/// The requests of one script.
const STEPS: usize = 40;

/// The path of CRDs.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// One script, in a namespace and a group of its own.
struct Script {
    rng: Rng,
    group: String,
}

/// Runs one script.
///
/// # Errors
/// If the servers answer differently.
pub async fn run(client: kube::Client, seed: u64) -> Result<()> {
    let mut both = Both::new(client, ApiServer::new(Arc::new(Catalog::new()?)));
    let mut script = Script { rng: Rng::with_seed(seed), group: format!("definitions-{seed}.example.com") };
    let body = json!({"metadata": {"name": script.group.replace('.', "-")}});
    both.ask(&Step::with("POST", "/api/v1/namespaces", body), Compared::Outcome).await?;
    both.ask(&script.install(), Compared::Outcome).await?;
    both.settle(&script.reads(), served).await?;
    for _ in 0..STEPS {
        if script.rng.u8(0..5) == 0 {
            both.ask(&script.change(), Compared::Outcome).await?;
            both.settle(&script.reads(), served).await?;
        } else {
            both.ask(&script.step(), Compared::Whole).await?;
        }
    }
    Ok(())
}

impl Script {
    /// What tells how far a change of the definition is.
    fn reads(&self) -> Vec<String> {
        let group = &self.group;
        let of_version = |version: &str| {
            [
                format!("/apis/{group}/{version}"),
                format!("/apis/{group}/{version}/widgets"),
                format!("/openapi/v3/apis/{group}/{version}"),
            ]
        };
        let definition = format!("{DEFINITIONS}/widgets.{group}");
        ["v1", "v2"].into_iter().flat_map(of_version).chain([definition]).collect()
    }

    fn install(&mut self) -> Step {
        let text = kinds::widget_crd(WidgetVersions::First).to_string().replace(kinds::GROUP, &self.group);
        Step::with("POST", DEFINITIONS, serde_json::from_str(&text).unwrap_or_default())
    }

    fn change(&mut self) -> Step {
        let name = format!("{DEFINITIONS}/widgets.{}", self.group);
        match self.rng.u8(0..7) {
            0 => self.install(),
            1 => Step::with("DELETE", &name, Value::Null),
            _ => {
                let versions = WidgetVersions::ALL[self.rng.usize(0..4)].to_value();
                let mut step = Step::with("PATCH", &name, json!({"spec": {"versions": versions}}));
                step.content_type = "application/merge-patch+json";
                step
            }
        }
    }

    fn step(&mut self) -> Step {
        let (version, name) = (["v1", "v2"][self.rng.usize(0..2)], ["a", "b"][self.rng.usize(0..2)]);
        let all = format!("/apis/{}/{version}/namespaces/{}/widgets", self.group, self.group.replace('.', "-"));
        let one = format!("{all}/{name}");
        let mut spec = json!({"size": self.rng.u8(0..9)});
        if self.rng.bool() {
            spec["weight"] = self.rng.u8(0..9).into();
        }
        let mut whole = json!({
            "apiVersion": format!("{}/{version}", self.group), "kind": "Widget", "metadata": {"name": name}, "spec": spec,
        });
        if self.rng.u8(0..6) == 0 {
            whole["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        let (method, uri, content_type, body) = match self.rng.u8(0..12) {
            0..2 => ("POST", all, "application/json", whole),
            2..5 => ("PATCH", one + "?fieldManager=one&force=true", "application/apply-patch+yaml", whole),
            5..7 => ("PATCH", one, "application/merge-patch+json", json!({"spec": spec})),
            7 => ("PATCH", one, "application/merge-patch+json", json!({"metadata": {"finalizers": null}})),
            8 => ("DELETE", one, "application/json", Value::Null),
            9 => ("GET", all, "application/json", Value::Null),
            _ => ("GET", one, "application/json", Value::Null),
        };
        let mut step = Step::with(method, &uri, body).about("widgets", name);
        step.content_type = content_type;
        step
    }
}

/// What is served.
fn served(answer: &Answer) -> Value {
    let body = &answer.body;
    let resources = body["resources"].as_array().into_iter().flatten().map(|resource| resource["name"].clone());
    let schemas = body["components"]["schemas"].as_object().into_iter().flatten();
    let schema = schemas
        .into_iter()
        .find(|(name, _)| name.ends_with(".Widget"))
        .map(|(_, schema)| &schema["properties"]["spec"]);
    let items = body["items"].as_array().into_iter().flatten().map(|item| item["metadata"]["name"].clone());
    json!({
        "code": answer.code, "resources": resources.collect::<Vec<_>>(), "schema": schema,
        "items": items.collect::<Vec<_>>(), "isDeleting": !body["metadata"]["deletionTimestamp"].is_null(),
    })
}
