//! Definitions that come, change and go, with objects of their kinds: the same answers, also where nobody serves a path any more, and the
//! same documents about what is served. The real server publishes those a moment later, so they are waited for.

use std::sync::Arc;

use anyhow::Result;
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, Catalog};
use serde_json::{Value, json};

use super::{
    both::{Both, Compared},
    documents::strip,
    script::Step,
    side::Answer,
};

/// The group of the kind.
const GROUP: &str = "coming.example.com";

/// The path of definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The path of the definition.
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.coming.example.com";

/// The namespace of the objects.
const NAMESPACE: &str = "coming";

/// Lets a definition come, change and go, and come again.
///
/// # Errors
/// If the servers answer differently, or do not come to the same state.
pub async fn run(client: Client) -> Result<()> {
    let mut story = Story { both: Both::new(client, ApiServer::new(Arc::new(Catalog::new()?))) };
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    story.both.ask(&Step::with("POST", "/api/v1/namespaces", namespace), Compared::Outcome).await?;
    story.comes().await?;
    story.moves().await?;
    story.loses_a_version().await?;
    story.goes().await?;
    story.comes_again().await
}

struct Story {
    both: Both,
}

impl Story {
    async fn comes(&mut self) -> Result<()> {
        let nobody = [collection("v1"), format!("{}/a", collection("v1")), format!("/apis/{GROUP}/v1")];
        self.read(&nobody).await?;
        let mut misnamed = definition("Namespaced", &[version("v1", true, true)]);
        misnamed["metadata"]["name"] = "others.coming.example.com".into();
        let twice = definition("Namespaced", &[version("v1", true, true), version("v2", true, true)]);
        let good = definition("Namespaced", &[version("v1", true, true)]);
        for body in [misnamed, twice, good] {
            self.change("POST", DEFINITIONS, body).await?;
        }
        self.settle(&["v1"]).await?;
        self.write("POST", &collection("v1"), thing("v1", "a", json!({"size": 1, "unknown": true}))).await?;
        self.write("POST", &collection("v1"), thing("v1", "bad", json!({"size": "large"}))).await?;
        self.write("POST", &format!("/apis/{GROUP}/v1/things"), thing("v1", "a", json!({"size": 1}))).await?;
        let a = format!("{}/a", collection("v1"));
        self.read(&[a.clone(), format!("{a}/status"), format!("{a}/scale"), format!("/apis/{GROUP}/v1/things/a")]).await
    }

    /// A second version, which then is the one that objects are kept in.
    async fn moves(&mut self) -> Result<()> {
        for (first, second) in [(true, false), (false, true)] {
            self.versions(&[version("v1", true, first), version("v2", true, second)]).await?;
            self.settle(&["v1", "v2"]).await?;
            let name = if first { "b" } else { "c" };
            self.write("POST", &collection("v2"), thing("v2", name, json!({"size": 2}))).await?;
            // Not the other way round: where somebody owns fields in a version that does not know all that is written, the real server
            // forgets who owns what.
            for version in ["v2", "v1"] {
                let one = format!("{}/{name}", collection(version));
                self.read(std::slice::from_ref(&one)).await?;
                self.write("PATCH", &one, json!({"spec": {"size": 3, "weight": 4}})).await?;
            }
        }
        Ok(())
    }

    async fn loses_a_version(&mut self) -> Result<()> {
        self.versions(&[version("v1", false, false), version("v2", true, true)]).await?;
        self.settle(&["v2"]).await?;
        let one = format!("{}/a", collection("v1"));
        self.read(&[collection("v1"), one.clone(), format!("/apis/{GROUP}/v1")]).await?;
        self.write("PATCH", &one, json!({"spec": {"size": 5}})).await?;
        self.write("POST", &collection("v1"), thing("v1", "d", json!({"size": 1}))).await?;
        self.write("DELETE", &one, Value::Null).await?;
        self.read(&[format!("{}/a", collection("v2"))]).await?;
        // Objects may be kept in it still.
        self.versions(&[version("v2", true, true)]).await?;
        let mut other = definition("Namespaced", &[version("v2", true, true)]);
        other["spec"]["names"]["kind"] = "Other".into();
        self.change("PATCH", DEFINITION, json!({"spec": {"names": other["spec"]["names"]}})).await?;
        let mut changed = version("v2", true, true);
        changed["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object", "properties": {"seen": {"type": "integer"}}});
        changed["subresources"] = json!({"status": {}});
        self.versions(&[version("v1", true, false), changed]).await?;
        self.settle(&["v1", "v2"]).await?;
        let late = format!("{}/late", collection("v2"));
        self.write("POST", &collection("v2"), thing("v2", "late", json!({"size": 1}))).await?;
        self.write("PATCH", &format!("{late}/status"), json!({"status": {"seen": 1}})).await?;
        self.read(&[format!("{}/late", collection("v1")), format!("{late}/status")]).await
    }

    /// One object is held, and with it the definition.
    async fn goes(&mut self) -> Result<()> {
        let held = format!("{}/late", collection("v2"));
        self.write("PATCH", &held, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await?;
        self.change("DELETE", DEFINITION, Value::Null).await?;
        // The documents of the real server say that nothing can be written, those of the simulated one do not.
        let reads = [DEFINITION.to_owned(), collection("v1"), collection("v2")];
        self.both.settle(&reads, show).await?;
        self.change("POST", &collection("v2"), thing("v2", "later", json!({"size": 1}))).await?;
        // An apply changes what is there, and creates nothing either.
        for (name, size) in [("late", 2), ("later", 1)] {
            let uri = format!("{}/{name}?fieldManager=applier&force=true", collection("v2"));
            let mut step = Step::with("PATCH", &uri, thing("v2", name, json!({"size": size})));
            step.content_type = "application/apply-patch+yaml";
            self.both.ask(&step, Compared::Outcome).await?;
        }
        self.change("PATCH", &held, json!({"metadata": {"finalizers": null}})).await?;
        self.settle(&[]).await?;
        self.read(&[collection("v1"), collection("v2"), format!("/apis/{GROUP}/v2")]).await
    }

    /// It is another one, without namespaces.
    async fn comes_again(&mut self) -> Result<()> {
        self.change("POST", DEFINITIONS, definition("Cluster", &[version("v3", true, true)])).await?;
        self.settle(&["v3"]).await?;
        let all = format!("/apis/{GROUP}/v3/things");
        self.write("POST", &all, thing("v3", "a", json!({"size": 1}))).await?;
        self.write("POST", &collection("v3"), thing("v3", "b", json!({"size": 1}))).await?;
        self.read(&[all.clone(), format!("{all}/a"), collection("v3")]).await?;
        self.change("DELETE", DEFINITION, Value::Null).await?;
        self.settle(&[]).await
    }

    async fn read(&mut self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.both.ask(&Step::with("GET", path, Value::Null), Compared::Whole).await?;
        }
        Ok(())
    }

    async fn write(&mut self, method: &'static str, path: &str, body: Value) -> Result<()> {
        self.both.ask(&step(method, path, body), Compared::Whole).await
    }

    /// Sends what the real server's controllers add to.
    async fn change(&mut self, method: &'static str, path: &str, body: Value) -> Result<()> {
        self.both.ask(&step(method, path, body), Compared::Outcome).await
    }

    async fn versions(&mut self, versions: &[Value]) -> Result<()> {
        self.change("PATCH", DEFINITION, json!({"spec": {"versions": versions}})).await
    }

    /// Waits for the definition, for the objects in these versions, and for the documents about them. Those about versions that are
    /// served no more stay for a while.
    async fn settle(&mut self, served: &[&str]) -> Result<()> {
        let of_version = |version: &&str| {
            let scope = if *version == "v3" { format!("/apis/{GROUP}/v3/things") } else { collection(version) };
            [scope, format!("/apis/{GROUP}/{version}"), format!("/openapi/v3/apis/{GROUP}/{version}")]
        };
        let general = [DEFINITION.to_owned(), "/apis".to_owned()];
        let reads: Vec<_> = general.into_iter().chain(served.iter().flat_map(of_version)).collect();
        self.both.settle(&reads, show).await
    }
}

fn step(method: &'static str, path: &str, body: Value) -> Step {
    let mut step = Step::with(method, path, body);
    if method == "PATCH" {
        step.content_type = "application/merge-patch+json";
    }
    step
}

fn collection(version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/{NAMESPACE}/things")
}

fn thing(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

fn definition(scope: &str, versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope, "versions": versions,
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing", "shortNames": ["th"]},
        },
    })
}

/// A version. Those after the first have one field more.
fn version(name: &str, served: bool, storage: bool) -> Value {
    let mut spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    if name != "v1" {
        spec["properties"]["weight"] = json!({"type": "integer", "default": 1});
    }
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

/// What an answer says of the definition, of its objects, or of what is served.
fn show(answer: &Answer) -> Value {
    let body = &answer.body;
    if !body["openapi"].is_null() {
        return schemas(body);
    }
    match body["kind"].as_str().unwrap_or_default() {
        "CustomResourceDefinition" => of_definition(body),
        "APIGroupList" => groups(body),
        "APIResourceList" => resources(body),
        _ => match body["items"].as_array() {
            Some(items) => items.iter().map(|object| json!([object["metadata"]["name"], object["spec"]])).collect(),
            None => json!({"code": answer.code, "reason": body["reason"]}),
        },
    }
}

/// But the condition that says how far a deletion is, which the simulated server does not have.
fn of_definition(body: &Value) -> Value {
    let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions
        .filter(|condition| condition["type"] != "Terminating")
        .map(|condition| json!([condition["type"], condition["status"], condition["reason"]]))
        .collect();
    json!({
        "conditions": conditions, "stored": body["status"]["storedVersions"], "names": body["status"]["acceptedNames"],
        "isDeleting": !body["metadata"]["deletionTimestamp"].is_null(), "finalizers": body["metadata"]["finalizers"],
    })
}

fn groups(body: &Value) -> Value {
    let groups = body["groups"].as_array().into_iter().flatten();
    groups.filter(|group| group["name"] == GROUP).cloned().collect()
}

fn resources(body: &Value) -> Value {
    let resources = body["resources"].as_array().into_iter().flatten().cloned().map(|mut resource| {
        resource.as_object_mut().map(|resource| resource.remove("storageVersionHash"));
        resource
    });
    resources.collect()
}

/// The schemas of the kind.
fn schemas(body: &Value) -> Value {
    let schemas = body["components"]["schemas"].as_object().into_iter().flatten();
    let own = schemas.filter(|(_, schema)| schema["x-kubernetes-group-version-kind"][0]["kind"] == "Thing");
    own.map(|(name, schema)| {
        let mut schema = schema.clone();
        strip(&mut schema);
        json!([name, schema])
    })
    .collect()
}
