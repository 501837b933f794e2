//! Registers the webhooks of another project's controller that runs beside a control plane, as that project publishes them, but with the
//! address and the certificate of this controller.

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{cluster::api, third_party::File};

/// Where a controller serves its webhooks.
pub struct WebhookServer {
    /// The port, of the loopback interface.
    pub port: u16,
    /// Its certificate, which is its own authority.
    pub certificate: String,
}

impl WebhookServer {
    /// Registers all webhooks of a file, under this name.
    ///
    /// # Errors
    /// If the file cannot be had or read, or the API server refuses it.
    pub async fn register(&self, client: &Client, file: &File, name: &str) -> Result<()> {
        let text = std::fs::read_to_string(file.fetch().await?)?;
        let configurations: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        for mut configuration in configurations {
            for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
                let path = webhook["clientConfig"]["service"]["path"].as_str().context("a webhook without a path")?;
                let url = format!("https://127.0.0.1:{}{path}", self.port);
                webhook["clientConfig"] = json!({"url": url, "caBundle": STANDARD.encode(&self.certificate)});
            }
            let kind = configuration["kind"].as_str().context("no kind")?.to_owned();
            configuration["metadata"]["name"] = json!(name);
            let parameters = PatchParams::apply("tests").force();
            api(client, &kind, None)?.patch(name, &parameters, &Patch::Apply(configuration)).await?;
        }
        Ok(())
    }
}
