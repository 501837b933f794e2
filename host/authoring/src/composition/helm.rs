//! Runs Helm: what a chart's values are, and what it renders of others. It contacts no cluster and fetches no chart.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::{
    chart::Renderer,
    manifests::{ManifestsError, parse},
};

/// The version of Kubernetes that charts are told: that whose kinds the host knows.
const KUBERNETES: &str = "1.34.0";

/// Why a chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// There is no Helm.
    #[error(
        "helm is missing; install it as https://helm.sh/docs/intro/install says, or give --from-yaml what somebody renders with `helm template`"
    )]
    NoHelm,
    /// There is no chart there.
    #[error("there is no chart '{}': name a folder with a Chart.yaml, or a .tgz of one (`helm pull` gets one)", .0.display())]
    NoChart(PathBuf),
    /// Helm refuses it.
    #[error("the chart '{}' cannot be rendered: {said}", path.display())]
    Helm {
        /// The chart.
        path: PathBuf,
        /// What Helm says.
        said: String,
    },
    /// What it renders is none.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
}

/// A chart, and the program that renders it.
pub(crate) struct Chart {
    path: PathBuf,
    program: PathBuf,
    scratch: tempfile::TempDir,
}

impl Chart {
    /// The chart in a folder or in an archive.
    ///
    /// # Errors
    /// [`ChartError`]: there is no Helm, or no chart.
    pub(crate) fn open(path: &Path) -> Result<Self, ChartError> {
        let is_chart = path.is_file() || path.join("Chart.yaml").is_file();
        if !is_chart {
            return Err(ChartError::NoChart(path.to_owned()));
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let program =
            std::env::split_paths(&folders).map(|folder| folder.join("helm")).find(|program| program.is_file());
        let program = program.ok_or(ChartError::NoHelm)?;
        let failed = |said: std::io::Error| ChartError::Helm { path: path.to_owned(), said: said.to_string() };
        Ok(Self { path: path.to_owned(), program, scratch: tempfile::tempdir().map_err(failed)? })
    }

    /// The values that it comes with.
    ///
    /// # Errors
    /// [`ChartError`]: Helm does not say them.
    pub(crate) fn values(&self) -> Result<Value, ChartError> {
        let text = self.run(&["show", "values"], &[]).map_err(|said| self.refused(said))?;
        let values = serde_saphyr::from_str::<Value>(&text).map_err(|error| self.refused(error.to_string()))?;
        Ok(if values.is_object() { values } else { Value::Object(serde_json::Map::new()) })
    }

    /// An error of this chart.
    pub(crate) fn refused(&self, said: String) -> ChartError {
        ChartError::Helm { path: self.path.clone(), said }
    }

    fn run(&self, before: &[&str], after: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(before).arg(&self.path).args(after).stdin(Stdio::null());
        let ended = command.output().map_err(|error| error.to_string())?;
        match ended.status.success() {
            true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
        }
    }
}

impl Renderer for Chart {
    fn render(&self, values: &Value, release: &str, namespace: &str) -> Result<Vec<Value>, String> {
        let file = self.scratch.path().join("values.yaml");
        // JSON is YAML.
        std::fs::write(&file, values.to_string()).map_err(|error| error.to_string())?;
        let file = file.to_string_lossy();
        let text = self.run(
            &["template", release],
            &["--namespace", namespace, "--kube-version", KUBERNETES, "--values", &file],
        )?;
        parse(&self.path, &text).map_err(|error| error.to_string())
    }
}
