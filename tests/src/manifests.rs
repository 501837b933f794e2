//! The files of `deploy/` that are made of something else: the plain manifests, which are the charts rendered, and the CRDs in the charts.
//! Says what each file has to be; who writes or compares is somebody else.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{
    artifacts,
    helm::{self, Helm, Release},
};

/// The CRDs of each chart.
const CRDS: [(&str, &[&str]); 2] = [
    ("pilothouse", &["plugins.pilothouse.dev"]),
    (
        "llm-operator",
        &[
            "llmdeployments.llm.example.com",
            "llmmodels.ai.example.com",
            "llmmodels.llm.example.com",
            "modeldeployments.llm.example.com",
        ],
    ),
];

/// What `kubectl apply` makes the namespace of.
const NAMESPACE: &str = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: pilothouse\n";

/// What of the host's chart is a file of its own, for it changes how the API server serves all others, too.
const PRIORITY_AND_FAIRNESS: [&str; 4] =
    ["--set", "priorityAndFairness.enabled=true", "--show-only", "templates/priorityandfairness.yaml"];

/// A file that is made.
pub struct Made {
    /// Where it is.
    pub path: PathBuf,
    /// What it has to be.
    pub text: String,
}

/// All files that are made.
///
/// # Errors
/// If there is no Helm, or a chart does not render.
pub async fn made() -> Result<Vec<Made>> {
    let helm = Helm::get().await?;
    let host = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &[] };
    // The operator of one namespace, whose rights end there.
    let values = ["--set", "watchNamespace=default"];
    let operator = Release { chart: "llm-operator", name: "llm-operator", namespace: "default", values: &values };
    let lines = Release { values: &PRIORITY_AND_FAIRNESS, ..host };
    let mut files = vec![
        plain(&helm, host, NAMESPACE, "pilothouse").await?,
        plain(&helm, operator, "", "llm-operator").await?,
        plain(&helm, lines, "", "priority-and-fairness").await?,
    ];
    for (chart, crds) in CRDS {
        for crd in crds {
            let file = format!("{crd}.yaml");
            let text = std::fs::read_to_string(artifacts::repository().join("crds").join(&file))
                .with_context(|| format!("there is no crds/{file}"))?;
            files.push(Made { path: helm::chart(chart)?.join("crds").join(file), text });
        }
    }
    Ok(files)
}

async fn plain(helm: &Helm, release: Release<'_>, before: &str, name: &str) -> Result<Made> {
    let rendered = helm.text(release).await?;
    // Who applies the file is not Helm.
    let kept = rendered.lines().filter(|line| !line.contains("app.kubernetes.io/managed-by: Helm"));
    let rendered: String = kept.map(|line| format!("{line}\n")).collect();
    let head = format!(
        "# The chart deploy/helm-charts/{} rendered by `make manifests`; change that. The kinds are in crds/ (`make install`).\n",
        release.chart
    );
    let path = artifacts::repository().join("deploy").join(format!("{name}.yaml"));
    Ok(Made { path, text: format!("{head}{before}{rendered}") })
}
