//! The process of another project's controller beside a control plane. What it is, how it is configured and what it watches is said where
//! it is started.

use std::process::Stdio;

use anyhow::Result;
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

use crate::{
    cluster::{Cluster, PATIENCE},
    wait::{Look, eventually},
};

/// How many lines of its log are told where it does not start.
const LAST: usize = 5;

/// A running controller. Ends when it is dropped.
pub struct ForeignController {
    _process: Child,
    folder: TempDir,
}

impl ForeignController {
    /// Starts a command with what is in this folder, for this cluster, and waits until it listens at a port.
    ///
    /// # Errors
    /// If it does not start. Quotes its log.
    pub async fn start(cluster: &Cluster, mut command: Command, folder: TempDir, port: u16) -> Result<Self> {
        let log = std::fs::File::create(folder.path().join("log"))?;
        let what = format!("{:?} to listen", command.as_std().get_program());
        command.env("KUBECONFIG", cluster.plane.kubeconfig_path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn()?;
        let controller = Self { _process: process, folder };
        eventually(PATIENCE, &what, async || {
            let listens = TcpStream::connect(("127.0.0.1", port)).await.is_ok();
            Ok(Look::of(listens, controller.last_words()?))
        })
        .await?;
        Ok(controller)
    }

    fn last_words(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.folder.path().join("log"))?;
        Ok(log.lines().rev().take(LAST).map(str::to_owned).collect())
    }
}
