//! Builds programs from the Go modules pinned in this crate (go.sum fixes every byte of the sources). The pins are
//! carried inside this program; nothing is resolved, updated or tidied here.

use super::cache::Cache;
use super::run::run;
use crate::{ETCD, KUBERNETES, KWOK, NEWER_KUBERNETES, Part, Report};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use tokio::process::Command;

/// One module of ours, and what it builds.
struct Module {
    name: &'static str,
    version: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    /// Each part with its Go package.
    packages: &'static [(Part, &'static str)],
    /// What a first build takes, for the message.
    minutes: &'static str,
}

const MODULES: [Module; 3] = [
    Module {
        name: "etcd",
        version: ETCD,
        go_mod: include_str!("../../etcd/go.mod"),
        go_sum: include_str!("../../etcd/go.sum"),
        packages: &[(Part::Etcd, "go.etcd.io/etcd/server/v3")],
        minutes: "half a minute",
    },
    Module {
        name: "kubernetes",
        version: KUBERNETES,
        go_mod: include_str!("../../kubernetes/go.mod"),
        go_sum: include_str!("../../kubernetes/go.sum"),
        packages: &[
            (Part::ApiServer, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (Part::ControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"),
            (Part::Scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
        ],
        minutes: "four or five minutes",
    },
    Module {
        name: "kwok",
        version: KWOK,
        go_mod: include_str!("../../kwok/go.mod"),
        go_sum: include_str!("../../kwok/go.sum"),
        packages: &[(Part::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
        minutes: "a minute or two",
    },
];

/// A newer Kubernetes, of which there is the API server alone.
const NEWER_MODULES: [Module; 1] = [Module {
    name: "kubernetes",
    version: NEWER_KUBERNETES,
    go_mod: include_str!("../../kubernetes-newer/go.mod"),
    go_sum: include_str!("../../kubernetes-newer/go.sum"),
    packages: &[(Part::ApiServer, "k8s.io/kubernetes/cmd/kube-apiserver")],
    minutes: "ten minutes",
}];

/// A version of Kubernetes, and the modules of its programs and of what belongs to them.
pub(crate) struct Release {
    pub(crate) kubernetes: &'static str,
    modules: &'static [Module],
}

pub(crate) const RELEASE: Release = Release { kubernetes: KUBERNETES, modules: &MODULES };
pub(crate) const NEWER_RELEASE: Release = Release { kubernetes: NEWER_KUBERNETES, modules: &NEWER_MODULES };

/// Builds `parts` of a release into its cache.
pub(crate) async fn build(parts: &[Part], release: &Release, cache: &Cache, report: &Report) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    check_go(parts, report).await?;
    for module in release.modules {
        build_module(module, parts, cache, report).await?;
    }
    Ok(())
}

async fn check_go(parts: &[Part], report: &Report) -> Result<()> {
    if let Err(error) = run(Command::new("go").arg("version"), "asking for Go's version", report).await {
        bail!(
            "{} must be built from source, which needs Go 1.26 or newer ({error:#}): install it from \
             https://go.dev/dl/, or point KUBEBUILDER_ASSETS at a directory that has these programs",
            super::names(parts)
        );
    }
    Ok(())
}

async fn build_module(module: &Module, parts: &[Part], cache: &Cache, report: &Report) -> Result<()> {
    let wanted: Vec<_> = module.packages.iter().filter(|(part, _)| parts.contains(part)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let dir = cache.workspace(module.name)?;
    fs::write(dir.join("go.mod"), module.go_mod)?;
    fs::write(dir.join("go.sum"), module.go_sum)?;
    report(&format!("building {} {} (the first time takes {})", module.name, module.version, module.minutes));
    for (part, package) in wanted {
        let program = dir.join("bin").join(part.name());
        run(&mut go_build(&dir, module.version, (*package, &program)), &format!("building {part}"), report)
            .await
            .with_context(|| format!("cannot build {part} {} from source", module.version))?;
        cache.install(*part, &program)?;
    }
    fs::remove_dir_all(&dir)?;
    Ok(())
}

fn go_build(dir: &Path, version: &str, (package, program): (&str, &Path)) -> Command {
    let mut command = Command::new("go");
    command.current_dir(dir).env("CGO_ENABLED", "0").env("GOWORK", "off").env_remove("GOFLAGS");
    command.args(["build", "-trimpath", "-ldflags", &link_flags(version), "-o"]).arg(program).arg(package);
    command
}

/// Without symbols; with the version that `kubectl version` asks the API server for.
fn link_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!("-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}")
}
