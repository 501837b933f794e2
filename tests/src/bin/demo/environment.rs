//! What the scenario runs on: a control plane, a host and a client, all of the demo's own. Dropping it kills them; no
//! process and no file of it stays.

use anyhow::Result;
use pilothouse_control_plane::ControlPlane;
use pilothouse_tests::host::Host;
use tempfile::TempDir;

use crate::cluster::Cluster;

/// The environment. Fields are dropped in this order: the host before what it works on, the files last.
pub struct Environment {
    /// The host.
    pub host: Host,
    /// The client.
    pub cluster: Cluster,
    /// The control plane.
    pub plane: ControlPlane,
    /// Keys, data and compiled plugins.
    pub folder: TempDir,
}

impl Environment {
    /// Stops everything gracefully.
    ///
    /// # Errors
    /// If a part does not stop. It is killed then.
    pub async fn close(self) -> Result<()> {
        let Self { mut host, cluster, plane, folder } = self;
        let stopped = host.stop().await;
        drop(cluster);
        plane.stop().await?;
        folder.close()?;
        stopped
    }
}
