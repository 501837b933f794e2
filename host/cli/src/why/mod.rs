//! `pilothouse why KIND/NAME`: one screen about one object: what its plugin and the host said about it last, how far each child is, and
//! what to look at next. Changes nothing.

mod cluster_state;
mod report;

use anyhow::{Context, bail};
use clap::Args;

use self::{cluster_state::ClusterState, report::Report};
use crate::{
    cluster::{Cluster, block_on},
    list::Output,
};

/// Say why an object is as it is: its conditions, how far each of its children is, and its Events, on one screen.
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
    #[command(flatten)]
    cluster: Cluster,
}

/// The object that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    kind: String,
    group: Option<String>,
    name: String,
}

fn named(text: &str) -> anyhow::Result<Named> {
    let Some((kind, name)) = text.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) else {
        bail!("it is not KIND/NAME, such as AppService/web");
    };
    let (kind, group) = match kind.split_once('.') {
        Some((kind, group)) => (kind, Some(group.to_owned())),
        None => (kind, None),
    };
    Ok(Named { kind: kind.to_owned(), group, name: name.to_owned() })
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
            Ok(Report::of(&state, jiff::Timestamp::now()))
        })?;
        match self.output {
            Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
            Output::Table => report.print(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let of = |kind: &str, group: Option<&str>| Named {
            kind: kind.to_owned(),
            group: group.map(str::to_owned),
            name: "web".to_owned(),
        };
        assert_eq!(named("AppService/web").ok(), Some(of("AppService", None)));
        assert_eq!(named("appservices.apps.example.com/web").ok(), Some(of("appservices", Some("apps.example.com"))));
        for wrong in ["web", "/web", "AppService/", ""] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
