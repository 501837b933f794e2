//! The webhook of KEDA's admission, as far as it is about who is in charge: it refuses a ScaledObject while another
//! HorizontalPodAutoscaler has the workload.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::{Router, body::Bytes, extract::State, http::header, response::IntoResponse, routing::post};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::{cluster::api, tls::TlsListener};

/// A running webhook. Stops when it is dropped.
pub struct KedaWebhook(AbortHandle);

impl KedaWebhook {
    /// Starts it and registers it.
    ///
    /// # Errors
    /// If the API server refuses that.
    pub async fn start(client: &Client) -> Result<Self> {
        let listener = TlsListener::bind().await?;
        let url = format!("https://127.0.0.1:{}/", listener.port()?);
        let authority = STANDARD.encode(listener.certificate());
        let router = Router::new().route("/", post(review)).with_state(Arc::new(client.clone()));
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        let rule = json!({
            "apiGroups": ["keda.sh"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["scaledobjects"],
        });
        let webhook = json!({
            "name": "vscaledobject.kb.io", "clientConfig": {"url": url, "caBundle": authority}, "rules": [rule],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "keda"}, "webhooks": [webhook],
        });
        let parameters = PatchParams::apply("tests").force();
        let configurations = api(client, "ValidatingWebhookConfiguration", None)?;
        configurations.patch("keda", &parameters, &Patch::Apply(configuration)).await?;
        Ok(Self(server))
    }
}

impl Drop for KedaWebhook {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn review(State(client): State<Arc<Client>>, body: Bytes) -> impl IntoResponse {
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let refusal = match rival(&client, &review["request"]).await {
        Ok(rival) => rival.map(|name| format!("the workload is already managed by the hpa '{name}'")),
        Err(error) => Some(format!("{error:#}")),
    };
    let mut response = json!({"uid": review["request"]["uid"], "allowed": refusal.is_none()});
    if let Some(message) = refusal {
        response["status"] = json!({"code": 403, "message": message});
    }
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
}

/// The name of an autoscaler that has the workload of a ScaledObject and is not its own.
async fn rival(client: &Client, request: &Value) -> Result<Option<String>> {
    let object = &request["object"];
    let namespace = request["namespace"].as_str().context("no namespace")?;
    let target = |owner: &Value| [owner["kind"].clone(), owner["name"].clone()];
    let autoscalers = api(client, "HorizontalPodAutoscaler", Some(namespace))?.list(&Default::default()).await?;
    let has_it = |autoscaler: &&kube::api::DynamicObject| {
        let mut owners = autoscaler.metadata.owner_references.iter().flatten();
        let is_own = owners.any(|owner| owner.kind == "ScaledObject" && object["metadata"]["name"] == owner.name);
        !is_own && target(&autoscaler.data["spec"]["scaleTargetRef"]) == target(&object["spec"]["scaleTargetRef"])
    };
    Ok(autoscalers.items.iter().find(has_it).and_then(|autoscaler| autoscaler.metadata.name.clone()))
}
