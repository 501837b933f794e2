//! Simulates the environment of a pod: two variables and the files of a service account. Their path is fixed and not writable for
//! tests, so the host runs in a mount namespace of its own, in which a folder of the test is mounted there.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

/// Where a pod finds its service account.
const PLACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Covers what is there, puts the folder `$0` in its place, and becomes the program `$@`.
const SCRIPT: &str = r#"mount -t tmpfs none /var/run && mkdir -p "$PLACE" && mount --bind "$0" "$PLACE" && exec "$@""#;

/// The surroundings of a pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The folder with `token`, `ca.crt` and `namespace`. Changes in it are seen by the host.
    pub account: PathBuf,
    /// The API server: `https://HOST:PORT`.
    pub server: String,
}

impl Pod {
    /// A command that runs a program in the pod.
    ///
    /// # Errors
    /// If the address of the server is malformed.
    pub fn command(&self, program: impl Into<OsString>) -> Result<Command> {
        let server = self.server.trim_start_matches("https://").trim_end_matches('/');
        let (host, port) = server.rsplit_once(':').context("the server has no port")?;
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", SCRIPT]).arg(&self.account).arg(program.into());
        command.env("PLACE", PLACE).env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        // A kubeconfig in the user's home would go before the service account.
        command.env_remove("KUBECONFIG").env_remove("POD_NAMESPACE").env("HOME", &self.account);
        Ok(command)
    }
}
