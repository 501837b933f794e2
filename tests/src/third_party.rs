//! CRDs of other projects, as those publish them: files of their Go modules, whose bytes are pinned. So a field that such a kind does not
//! have is noticed. Fetched by the installed Go, which keeps them.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

/// A file of a Go module.
pub struct File {
    /// The module.
    module: &'static str,
    /// Its version.
    version: &'static str,
    /// The checksum of all its files, as in a `go.sum`.
    sum: &'static str,
    /// The path of the file in the module.
    path: &'static str,
}

/// KEDA's ScaledObject.
pub const SCALED_OBJECT: File = File {
    module: "github.com/kedacore/keda/v2",
    version: "v2.20.0",
    sum: "h1:nPKQL9iKsPpoyq7BftlBzJiQzb2LdKHiqBIEG6ju3bk=",
    path: "config/crd/bases/keda.sh_scaledobjects.yaml",
};

/// The Prometheus operator's ServiceMonitor.
pub const SERVICE_MONITOR: File =
    of_prometheus_operator("example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml");

/// The Prometheus operator's PodMonitor.
pub const POD_MONITOR: File =
    of_prometheus_operator("example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml");

const fn of_prometheus_operator(path: &'static str) -> File {
    File {
        module: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.89.0",
        sum: "h1:2HA351OwWBa10H6TDhjeSdHOA7wiY71sEivg+z2cykk=",
        path,
    }
}

impl File {
    /// Fetches the module, unless Go has it, and returns the path of the file.
    ///
    /// # Errors
    /// If there is no Go, or the module cannot be had or is another one.
    pub async fn fetch(&self) -> Result<PathBuf> {
        let module = format!("{}@{}", self.module, self.version);
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("go");
        command.args(["mod", "download", "-json", &module]).current_dir(folder.path());
        let output = command.output().await.context("there is no Go to fetch CRDs with")?;
        let answer: Value =
            serde_json::from_slice(&output.stdout).with_context(|| format!("no answer about {module}"))?;
        ensure!(answer["Sum"] == self.sum, "{module} cannot be had, or is another one: {answer}");
        let root = answer["Dir"].as_str().with_context(|| format!("{module} is nowhere"))?;
        Ok(PathBuf::from(root).join(self.path))
    }
}
