//! CRDs and programs of other projects, as those publish them: files and packages of their Go modules, whose bytes are pinned. So a field
//! that such a kind does not have is noticed. Fetched and built by the installed Go, which keeps them.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::{process::Command, sync::Mutex};

use crate::artifacts;

/// A Go module.
struct Module {
    /// Its path.
    path: &'static str,
    /// Its version.
    version: &'static str,
    /// The checksum of all its files, as in a `go.sum`.
    sum: &'static str,
}

/// A file of a Go module.
pub struct File {
    module: Module,
    /// The path of the file in the module.
    path: &'static str,
}

/// A program of a Go module, which has the checksums of all that it is made of.
pub struct Program {
    module: Module,
    /// The folder of its package in the module.
    package: &'static str,
    /// The name of its file.
    name: &'static str,
}

/// KEDA's ScaledObject.
pub const SCALED_OBJECT: File = of_keda("config/crd/bases/keda.sh_scaledobjects.yaml");

/// The other kinds that KEDA's operator watches.
pub const KEDA_CRDS: [File; 5] = [
    of_keda("config/crd/bases/keda.sh_scaledjobs.yaml"),
    of_keda("config/crd/bases/keda.sh_triggerauthentications.yaml"),
    of_keda("config/crd/bases/keda.sh_clustertriggerauthentications.yaml"),
    of_keda("config/crd/bases/eventing.keda.sh_cloudeventsources.yaml"),
    of_keda("config/crd/bases/eventing.keda.sh_clustercloudeventsources.yaml"),
];

const fn of_keda(path: &'static str) -> File {
    File { module: KEDA, path }
}

/// KEDA's operator.
pub const KEDA_OPERATOR: Program = Program { module: KEDA, package: "./cmd/operator", name: "keda-operator" };

const KEDA: Module = Module {
    path: "github.com/kedacore/keda/v2",
    version: "v2.20.0",
    sum: "h1:nPKQL9iKsPpoyq7BftlBzJiQzb2LdKHiqBIEG6ju3bk=",
};

/// The Prometheus operator's ServiceMonitor.
pub const SERVICE_MONITOR: File =
    of_prometheus_operator("example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml");

/// The Prometheus operator's PodMonitor.
pub const POD_MONITOR: File =
    of_prometheus_operator("example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml");

/// The Prometheus operator's PrometheusRule.
pub const PROMETHEUS_RULE: File =
    of_prometheus_operator("example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml");

const fn of_prometheus_operator(path: &'static str) -> File {
    let module = Module {
        path: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.89.0",
        sum: "h1:2HA351OwWBa10H6TDhjeSdHOA7wiY71sEivg+z2cykk=",
    };
    File { module, path }
}

/// The LeaderWorkerSet.
pub const LEADER_WORKER_SET: File =
    File { module: LWS, path: "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml" };

/// The other kind that the controller of LeaderWorkerSets watches.
pub const DISAGGREGATED_SET: File =
    File { module: LWS, path: "config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml" };

/// The webhooks of the controller of LeaderWorkerSets.
pub const LWS_WEBHOOKS: File = File { module: LWS, path: "config/webhook/manifests.yaml" };

/// The controller of LeaderWorkerSets.
pub const LWS_CONTROLLER: Program = Program { module: LWS, package: "./cmd", name: "lws-controller" };

const LWS: Module =
    Module { path: "sigs.k8s.io/lws", version: "v0.9.0", sum: "h1:DcJCgxjjoGOx//QHZkeKpyiblxYq70aCRZNYSfykWyI=" };

/// CloudNativePG's Cluster, of PostgreSQL servers.
pub const CNPG_CLUSTER: File = File {
    module: Module {
        path: "github.com/cloudnative-pg/cloudnative-pg",
        version: "v1.27.1",
        sum: "h1:w+bbtXyEPoaa7sZGXxbb8qJ+/bUGWQ3M48kbNUEpKlk=",
    },
    path: "config/crd/bases/postgresql.cnpg.io_clusters.yaml",
};

/// Volcano's PodGroup.
pub const VOLCANO_POD_GROUP: File = File {
    module: Module {
        path: "volcano.sh/volcano",
        version: "v1.10.0",
        sum: "h1:+GzQinGgeV0j58WpWpxByOXgF+YfUPW55zghM8GqjF0=",
    },
    path: "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml",
};

/// The PodGroup of the coscheduling plugin of scheduler-plugins.
pub const COSCHEDULING_POD_GROUP: File = File {
    module: Module {
        path: "sigs.k8s.io/scheduler-plugins",
        version: "v0.30.6",
        sum: "h1:P4pViMVoyVNHWmkG96UtJ4LvxkUIeenIUKLZd09vDyw=",
    },
    path: "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
};

/// Kubeflow's PyTorchJob.
pub const PYTORCH_JOB: File = File {
    module: Module {
        path: "github.com/kubeflow/training-operator",
        version: "v1.9.2",
        sum: "h1:w5McwkEb7J5QFRo8b8zR9DrgyLHNU2u03Srr9eyLJtc=",
    },
    path: "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
};

/// All kinds of Kueue.
pub const KUEUE_CRDS: [File; 11] = [
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_admissionchecks.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_cohorts.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_localqueues.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_multikueueclusters.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_multikueueconfigs.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_provisioningrequestconfigs.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_resourceflavors.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_topologies.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_workloadpriorityclasses.yaml"),
    of_kueue("config/components/crd/bases/kueue.x-k8s.io_workloads.yaml"),
];

const fn of_kueue(path: &'static str) -> File {
    File { module: KUEUE_MODULE, path }
}

/// The webhooks of Kueue.
pub const KUEUE_WEBHOOKS: File = of_kueue("config/components/webhook/manifests.yaml");

/// Kueue's controllers.
pub const KUEUE: Program = Program { module: KUEUE_MODULE, package: "./cmd/kueue", name: "kueue" };

const KUEUE_MODULE: Module =
    Module { path: "sigs.k8s.io/kueue", version: "v0.10.1", sum: "h1:td+Nae1z9L4IrkqJKOIMsKp2TmwUAvk/hWKhSaFupwk=" };

/// The registry of the distribution project.
pub const REGISTRY: Program = Program {
    module: Module {
        path: "github.com/distribution/distribution/v3",
        version: "v3.1.2",
        sum: "h1:/Bv2YIqqSR00HiO49FT93hovy6r9IlrzwUDsJjCN5qg=",
    },
    package: "./cmd/registry",
    name: "registry",
};

/// Helm.
pub const HELM: Program = Program {
    module: Module {
        path: "helm.sh/helm/v3",
        version: "v3.22.0",
        sum: "h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=",
    },
    package: "./cmd/helm",
    name: "helm",
};

/// The Gateway API's HTTPRoute.
pub const HTTP_ROUTE: File = File {
    module: Module {
        path: "sigs.k8s.io/gateway-api",
        version: "v1.4.0",
        sum: "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=",
    },
    path: "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
};

/// The InferencePool of the Gateway API's inference extension.
pub const INFERENCE_POOL: File = File {
    module: Module {
        path: "sigs.k8s.io/gateway-api-inference-extension",
        version: "v1.5.0",
        sum: "h1:w9Awt60cmI1vM7Y6N81h8wDCBP0WkmxpdI7GKY0v070=",
    },
    path: "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
};

/// The folder in which built programs are kept, in that of all that is built.
const PROGRAMS: &str = "third-party";

/// Makes it.
fn programs() -> Result<PathBuf> {
    let folder = artifacts::target().join(PROGRAMS);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Module {
    /// Fetches the module, unless Go has it, and returns its folder.
    async fn fetch(&self) -> Result<PathBuf> {
        let module = format!("{}@{}", self.path, self.version);
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("go");
        command.args(["mod", "download", "-json", &module]).current_dir(folder.path());
        let output = command.output().await.context("there is no Go to fetch modules with")?;
        let answer: Value =
            serde_json::from_slice(&output.stdout).with_context(|| format!("no answer about {module}"))?;
        ensure!(answer["Sum"] == self.sum, "{module} cannot be had, or is another one: {answer}");
        Ok(PathBuf::from(answer["Dir"].as_str().with_context(|| format!("{module} is nowhere"))?))
    }
}

impl File {
    /// Fetches the module, unless Go has it, and returns the path of the file.
    ///
    /// # Errors
    /// If there is no Go, or the module cannot be had or is another one.
    pub async fn fetch(&self) -> Result<PathBuf> {
        Ok(self.module.fetch().await?.join(self.path))
    }
}

impl Program {
    /// What people call it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the program is built already.
    pub fn is_built(&self) -> bool {
        artifacts::target().join(PROGRAMS).join(self.file()).is_file()
    }

    /// The name of its file among the built programs.
    fn file(&self) -> String {
        format!("{}-{}", self.name, self.module.version)
    }

    /// Builds the program, unless it is built already, and returns its path. The first time takes minutes.
    ///
    /// # Errors
    /// If there is no Go, or it does not build.
    pub async fn build(&self) -> Result<PathBuf> {
        // Tests run side by side: the first one builds, the others wait for it.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
        let _guard = ONE_AT_A_TIME.lock().await;
        let folder = programs()?;
        let program = folder.join(self.file());
        if program.is_file() {
            return Ok(program);
        }
        let module = self.module.fetch().await?;
        // Elsewhere until it is whole: another process may build it, too.
        let unfinished = tempfile::tempdir_in(&folder)?;
        let built = unfinished.path().join(self.name);
        let mut command = Command::new("go");
        command.current_dir(&module).env("CGO_ENABLED", "0").env("GOWORK", "off").env_remove("GOFLAGS");
        command.args(["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&built);
        let output = command.arg(self.package).output().await.context("there is no Go to build with")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} does not build: {said}", self.name);
        std::fs::rename(&built, &program)?;
        Ok(program)
    }
}
