//! `pilothouse why KIND/NAME`: one screen about one object: what its plugin and the host said about it last, how far each child is, and
//! what to look at next. Changes nothing.

mod cluster_state;
mod decorators;
mod host;
mod report;
mod words;

use anyhow::Context;
use clap::Args;

use self::{cluster_state::ClusterState, report::Report};
use crate::{
    cluster::{Cluster, block_on},
    list::Output,
    named::{Named, named},
    output,
};

/// Say why an object is as it is: its conditions, how far each of its children is, what decorators have made of it, and its Events, on one screen.
///
/// With --host also what its last reconcile saw, asked, decided and wrote.
#[derive(Args)]
pub struct Why {
    /// The object, such as AppService/web or llmmodel.ai.example.com/llama.
    #[arg(value_name = "KIND[.GROUP]/NAME", value_parser = named)]
    object: Named,
    /// Its namespace. Default: that of the kubeconfig's context.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Print as: a screen for people, or JSON.
    #[arg(long, short, default_value = "table")]
    output: Output,
    /// Where the host that leads serves /healthz, such as http://127.0.0.1:8081 through `kubectl port-forward`.
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
}

impl Why {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such kind or object, or the cluster does not answer.
    pub fn execute(&self) -> anyhow::Result<()> {
        let report = block_on(async {
            let config = self.cluster.config().await?;
            let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
            let client = kube::Client::try_from(config).context("failed to connect")?;
            let state = ClusterState::read(&client, &self.object, &namespace).await?;
            let last = match &self.host {
                Some(host) => {
                    let namespace = state.object["metadata"]["namespace"].as_str();
                    Some(host::last_reconciles(host, &state.kind, namespace, &self.object.name).await?)
                }
                None => None,
            };
            Ok(Report::of(&state, last, jiff::Timestamp::now()))
        })?;
        match self.output {
            Output::Json => output::print_line(serde_json::to_string_pretty(&report)?)?,
            Output::Table => output::print(report)?,
        }
        Ok(())
    }
}
