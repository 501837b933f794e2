//! Which fields of the status of a `Plugin` the CRD of the cluster declares. Helm installs the CRDs of a chart and never updates them, so a
//! host meets the CRD of an older one; the API server then refuses a whole status because of one field. Writes no status.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Client, Resource};
use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value};

use crate::{
    api::{Plugin, PluginStatus},
    errors::chain,
    kinds::{DocumentAnswer, schema_document},
    schema::{Schema, prune_status},
};

/// What the CRD of the cluster declares, once that matters: it is not read before the API server has refused a status.
pub struct DeclaredStatus {
    client: Client,
    schema: Option<Schema>,
    /// Identifies the document that the schema is from.
    etag: Option<String>,
    /// What was left out of the status of each `Plugin` last.
    left_out: BTreeMap<String, BTreeSet<String>>,
}

/// The part of a status that can be written.
pub struct Writable {
    /// It.
    pub status: PluginStatus,
    /// The fields of the status that are left out.
    pub left_out: BTreeSet<String>,
}

impl DeclaredStatus {
    /// Takes all to be declared.
    pub fn new(client: Client) -> Self {
        Self { client, schema: None, etag: None, left_out: BTreeMap::new() }
    }

    /// The part of a status that the CRD takes, as far as that is known.
    pub fn writable(&self, status: PluginStatus) -> Writable {
        let left_out = self.schema.as_ref().map(|schema| undeclared(&status, schema)).unwrap_or_default();
        match left_out.is_empty() {
            true => Writable { status, left_out },
            false => Writable { status: without(&status, &left_out), left_out },
        }
    }

    /// Reads what is declared, because a status was refused.
    pub async fn learn(&mut self) {
        let kind = KindRef::new(Plugin::api_version(&()).into_owned(), Plugin::kind(&()).into_owned());
        let document = match schema_document(&self.client, &kind, self.etag.as_deref()).await {
            Ok(DocumentAnswer::Document(document)) => document,
            Ok(DocumentAnswer::Unchanged | DocumentAnswer::Missing) => return,
            Err(error) => {
                tracing::warn!("failed to read the schema of Plugin: {}", chain(&error));
                return;
            }
        };
        match document.schemas.schema(&kind.api_version, &kind.kind) {
            Ok(schema) => (self.schema, self.etag) = (schema, document.etag),
            Err(error) => tracing::warn!("failed to read the schema of Plugin: {error}"),
        }
    }

    /// Reads it again where something was left out: the CRD may be up to date by now.
    pub async fn refresh(&mut self) {
        if self.schema.is_some() {
            self.learn().await;
        }
    }

    /// Takes down what was left out of the status of a `Plugin`. Returns whether that is to be told: something is left out, and it was not
    /// at the last write.
    pub fn note(&mut self, plugin: &str, left_out: &BTreeSet<String>) -> bool {
        let before = self.left_out.insert(plugin.to_owned(), left_out.clone()).unwrap_or_default();
        !left_out.is_subset(&before)
    }

    /// Forgets a `Plugin` that is gone.
    pub fn forget(&mut self, plugin: &str) {
        self.left_out.remove(plugin);
    }
}

/// What is wrong where fields are left out, and what helps.
pub fn explain(left_out: &BTreeSet<String>) -> String {
    let fields: Vec<_> = left_out.iter().map(|field| format!("status.{field}")).collect();
    format!(
        "the CRD of Plugin in this cluster is of another version than the host: it does not take {}, and what needs that does not work. \
         Apply the CRD of this version: pilothouse crd | kubectl apply --server-side -f -",
        fields.join(", ")
    )
}

/// The fields of a status of which the schema does not declare everything. A field is written whole or not at all: a part of it could say
/// something else.
fn undeclared(status: &PluginStatus, schema: &Schema) -> BTreeSet<String> {
    let pointers = prune_status(&mut fields(status), Some(schema));
    let field = |pointer: &String| pointer.split('/').nth(2).map(str::to_owned);
    pointers.iter().filter_map(field).collect()
}

fn without(status: &PluginStatus, left_out: &BTreeSet<String>) -> PluginStatus {
    let mut fields = fields(status);
    fields.retain(|field, _| !left_out.contains(field));
    // Each field may be missing, so this does not fail.
    serde_json::from_value(Value::Object(fields)).unwrap_or_default()
}

fn fields(status: &PluginStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The schema of the status of `Plugin`, in a document as the API server gives it.
    fn schema(status: &Value) -> Option<Schema> {
        let kind = json!([{"group": "pilothouse.dev", "version": "v1alpha1", "kind": "Plugin"}]);
        let plugin = json!({
            "type": "object",
            "properties": {"status": {"type": "object", "properties": status}},
            "x-kubernetes-group-version-kind": kind,
        });
        let document = json!({"components": {"schemas": {"dev.pilothouse.v1alpha1.Plugin": plugin}}});
        Schema::parse(&document.to_string(), "pilothouse.dev/v1alpha1", "Plugin").ok().flatten()
    }

    #[test]
    fn a_field_is_written_whole_or_not_at_all() -> Result<(), serde_json::Error> {
        let status: PluginStatus = serde_json::from_value(json!({
            "observedGeneration": 3, "version": "1.0.0", "digest": "sha256:ab",
            "objects": {"total": 3, "ready": 2, "failing": 1},
        }))?;
        let number = json!({"type": "integer"});
        let text = json!({"type": "string"});
        let counts = |fields: Value| json!({"type": "object", "properties": fields});
        let all = counts(json!({"total": number, "ready": number, "failing": number}));
        let some = counts(json!({"total": number, "ready": number}));
        for (what, declared, left_out) in [
            (
                "all",
                json!({"observedGeneration": number, "conditions": {"type": "array"}, "version": text, "digest": text, "objects": all}),
                vec![],
            ),
            (
                "no digest",
                json!({"observedGeneration": number, "conditions": {"type": "array"}, "version": text, "objects": all}),
                vec!["digest"],
            ),
            (
                "a part of the counts",
                json!({"observedGeneration": number, "conditions": {"type": "array"}, "version": text, "digest": text, "objects": some}),
                vec!["objects"],
            ),
        ] {
            let schema = schema(&declared);
            assert!(schema.is_some(), "{what}");
            let found = schema.map(|schema| undeclared(&status, &schema)).unwrap_or_default();
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), left_out, "{what}");
            let written = fields(&without(&status, &found));
            assert_eq!(written.len(), fields(&status).len() - left_out.len(), "{what}");
        }
        Ok(())
    }

    #[test]
    fn what_helps_is_said_with_the_fields() {
        let said = explain(&["plan".to_owned(), "rollout".to_owned()].into());
        assert!(
            said.contains("status.plan, status.rollout") && said.contains("pilothouse crd | kubectl apply"),
            "{said}"
        );
    }
}
