//! Which cluster a command talks to: the arguments, and a client. Makes no request.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kube::{Client, Config};
use pilothouse_controller::client;

/// Which cluster to talk to.
#[derive(Args, Clone, Debug)]
pub struct Cluster {
    /// Kubeconfig file. Default: KUBECONFIG, else ~/.kube/config, else the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current context.
    #[arg(long)]
    context: Option<String>,
}

impl Cluster {
    /// How to reach it.
    ///
    /// # Errors
    /// If there is no usable configuration.
    pub async fn config(&self) -> anyhow::Result<Config> {
        Ok(client::config(self.kubeconfig.as_deref(), self.context.as_deref()).await?)
    }

    /// A client for it.
    ///
    /// # Errors
    /// If there is no usable configuration.
    pub async fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config().await?)?)
    }
}

/// Runs a command that talks to a cluster.
///
/// # Errors
/// Those of the command.
pub fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
    runtime.block_on(command)
}
