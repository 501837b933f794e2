//! A real OCI registry beside a control plane: the one of the distribution project, which most registries are made of.

use std::process::Stdio;

use anyhow::{Result, ensure};
use oci_client::{
    Client, Reference, RegistryOperation,
    client::{ClientConfig, ClientProtocol},
    secrets::RegistryAuth,
};
use pilothouse_control_plane::free_port;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    cluster::PATIENCE,
    third_party::REGISTRY,
    wait::{Look, eventually},
};

/// The user whom a registry with users knows, and the password.
pub const USER: (&str, &str) = ("team", "secret");

/// The password above, hashed by bcrypt with the lowest cost.
const PASSWORD_FILE: &str = "team:$2b$04$QGcVuq4sdGWqnpUAcAQBV.5gNgPiBR8FoSBZXKU0pP1dpZ2RCQ3Tq\n";

/// A running registry. Ends when it is dropped, and can be started again with what it has.
pub struct Registry {
    /// Its address, with the port.
    pub address: String,
    folder: TempDir,
    process: Option<Child>,
}

impl Registry {
    /// Starts an empty registry for everybody, or only for [`USER`].
    ///
    /// # Errors
    /// If there is no Go to build it with, or it does not start.
    pub async fn start(has_users: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": folder.path().join("data")}, "delete": {"enabled": true}},
            "http": {"addr": address},
        });
        if has_users {
            let passwords = folder.path().join("passwords");
            std::fs::write(&passwords, PASSWORD_FILE)?;
            config["auth"] = json!({"htpasswd": {"realm": "tests", "path": passwords}});
        }
        std::fs::write(folder.path().join("config.yaml"), config.to_string())?;
        let mut registry = Self { address, folder, process: None };
        registry.resume().await?;
        Ok(registry)
    }

    /// The name of an artifact in it.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Puts a manifest of this media type under a name, and the blobs that it names. Anything goes that the registry takes.
    ///
    /// # Errors
    /// If it does not take them.
    pub async fn put(&self, name: &str, media_type: &'static str, manifest: &Value, blobs: &[&[u8]]) -> Result<()> {
        let settings = ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() };
        let (client, image) = (Client::try_from(settings)?, self.image(name).parse::<Reference>()?);
        client.auth(&image, &RegistryAuth::Anonymous, RegistryOperation::Push).await?;
        for blob in blobs {
            client.push_blob(&image, blob.to_vec(), &digest(blob)).await?;
        }
        client.push_manifest_raw(&image, manifest.to_string(), media_type.parse()?).await?;
        Ok(())
    }

    /// Ends it. What it has stays.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Starts it, at the same address.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn resume(&mut self) -> Result<()> {
        let program = REGISTRY.build().await?;
        let log = std::fs::File::create(self.folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg("serve").arg(self.folder.path().join("config.yaml")).env("OTEL_TRACES_EXPORTER", "none");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn()?;
        eventually(PATIENCE, "the registry to answer", async || {
            let connected = tokio::net::TcpStream::connect(&self.address).await.is_ok();
            let log = std::fs::read_to_string(self.folder.path().join("log"))?;
            ensure!(process.try_wait()?.is_none(), "the registry has ended: {log}");
            Ok(Look::of(connected, log))
        })
        .await?;
        self.process = Some(process);
        Ok(())
    }
}

/// The digest by which a registry knows something.
pub fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
