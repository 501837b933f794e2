//! The control plane that all tests share, and a client with helpers for tests.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Part, Parts, to_stderr};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{
    artifacts,
    compiled_code::CompiledCode,
    host::Setup,
    wait::{Look, eventually},
};

/// The time limit for the cluster.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest name of a namespace.
const LONGEST_LABEL: usize = 63;

/// The user of the hosts, so that the audit log distinguishes their writes from others.
pub const HOST_USER: &str = "host";

/// The user of a second host.
pub const SECOND_HOST_USER: &str = "second-host";

/// The user of a third host.
pub const THIRD_HOST_USER: &str = "third-host";

/// The kinds that the tests use: API version, kind, plural. Of two of one name, the first one is meant unless the group is said:
/// `LLMModel.llm.example.com`.
const KINDS: [(&str, &str, &str); 71] = [
    ("pilothouse.dev/v1alpha1", "Plugin", "plugins"),
    ("apps.example.com/v1", "AppService", "appservices"),
    ("ml.example.com/v1alpha1", "TrainingJob", "trainingjobs"),
    ("ai.example.com/v1", "LLMModel", "llmmodels"),
    ("example.com/v1", "Website", "websites"),
    ("example.com/v1", "Shop", "shops"),
    ("example.com/v1", "Worker", "workers"),
    ("ctl.enisoc.com/v1", "BlueGreenDeployment", "bluegreendeployments"),
    ("ctl.enisoc.com/v1", "CatSet", "catsets"),
    ("ctl.enisoc.com/v1", "IndexedJob", "indexedjobs"),
    ("example.crossplane.io/v1", "App", "apps"),
    ("example.crossplane.io/v1", "XBuckets", "xbuckets"),
    ("s3.aws.m.upbound.io/v1beta1", "Bucket", "buckets"),
    ("llm.example.com/v1alpha1", "LLMModel", "llmmodels"),
    ("llm.example.com/v1alpha1", "LLMDeployment", "llmdeployments"),
    ("llm.example.com/v1alpha1", "ModelDeployment", "modeldeployments"),
    ("test.pilothouse.dev/v1", "Census", "censuses"),
    ("test.pilothouse.dev/v1", "Misbehaver", "misbehavers"),
    ("test.pilothouse.dev/v1", "Farewell", "farewells"),
    ("test.pilothouse.dev/v1", "Scripted", "scripteds"),
    ("test.pilothouse.dev/v1", "ScriptedChild", "scriptedchildren"),
    ("test.pilothouse.dev/v1", "ClusterScripted", "clusterscripteds"),
    ("test.pilothouse.dev/v1", "Sextet", "sextets"),
    ("test.pilothouse.dev/v1", "Tally", "tallies"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "ReplicaSet", "replicasets"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("networking.k8s.io/v1", "Ingress", "ingresses"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    ("v1", "Service", "services"),
    ("v1", "Endpoints", "endpoints"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Pod", "pods"),
    ("v1", "ResourceQuota", "resourcequotas"),
    ("v1", "Node", "nodes"),
    ("v1", "PersistentVolume", "persistentvolumes"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
    ("inference.networking.k8s.io/v1", "InferencePool", "inferencepools"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets"),
    ("postgresql.cnpg.io/v1", "Cluster", "clusters"),
    ("keda.sh/v1alpha1", "ScaledObject", "scaledobjects"),
    ("monitoring.coreos.com/v1", "PodMonitor", "podmonitors"),
    ("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
    ("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups"),
    ("kueue.x-k8s.io/v1beta1", "ClusterQueue", "clusterqueues"),
    ("kueue.x-k8s.io/v1beta1", "LocalQueue", "localqueues"),
    ("kueue.x-k8s.io/v1beta1", "ResourceFlavor", "resourceflavors"),
    ("kueue.x-k8s.io/v1beta1", "Workload", "workloads"),
    ("kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass", "workloadpriorityclasses"),
    ("v1", "Event", "events"),
    ("v1", "Namespace", "namespaces"),
    ("coordination.k8s.io/v1", "Lease", "leases"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices"),
];

/// The cluster-scoped kinds among them.
const CLUSTER_SCOPED: [&str; 17] = [
    "Plugin",
    "APIService",
    "ClusterQueue",
    "ClusterRole",
    "ClusterScripted",
    "CustomResourceDefinition",
    "FlowSchema",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "ResourceFlavor",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "WorkloadPriorityClass",
];

/// The CRDs of the repository and of the tests.
const CRDS: [&str; 13] = [
    "crds/appservices.apps.example.com.yaml",
    "crds/llmdeployments.llm.example.com.yaml",
    "crds/llmmodels.ai.example.com.yaml",
    "crds/llmmodels.llm.example.com.yaml",
    "crds/modeldeployments.llm.example.com.yaml",
    "crds/trainingjobs.ml.example.com.yaml",
    "tests/guests/farewell/crd.yaml",
    "tests/guests/misbehaver/crd.yaml",
    "tests/guests/scripted/child-crd.yaml",
    "tests/guests/scripted/crd.yaml",
    "tests/guests/scripted-cluster/crd.yaml",
    "tests/guests/sextet/crd.yaml",
    "tests/guests/tally/crd.yaml",
];

/// The controllers that garbage collection needs.
const QUIET_CONTROLLERS: [&str; 2] = ["garbage-collector-controller", "serviceaccount-controller"];

/// The same, and the one that ends namespaces.
const COLLECTING_CONTROLLERS: [&str; 3] =
    ["garbage-collector-controller", "namespace-controller", "serviceaccount-controller"];

/// The shared control plane with the CRDs of the repository and of the tests.
pub struct Cluster {
    /// The control plane.
    pub plane: ControlPlane,
    code: Arc<CompiledCode>,
    _folder: TempDir,
}

/// A namespace of one test.
pub struct Namespace {
    /// Its name.
    pub name: String,
    client: Client,
    setup: Setup,
}

impl Cluster {
    /// Starts a control plane with its audit log on and installs the CRDs.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn start() -> Result<Self> {
        let cluster = Self::with(Parts::Full).await?;
        cluster.install_crds().await?;
        Ok(cluster)
    }

    /// Starts a separate control plane without the CRDs, for tests that stop its parts or need a missing kind.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn with(parts: Parts) -> Result<Self> {
        Self::set_up(parts, |options| options).await
    }

    /// Starts a separate control plane with garbage collection as its only controller, and installs the CRDs. All writes come from
    /// the hosts and the tests.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn quiet() -> Result<Self> {
        let cluster = Self::set_up(Parts::Controllers, |options| options.controllers(&QUIET_CONTROLLERS)).await?;
        cluster.install_crds().await?;
        Ok(cluster)
    }

    /// Starts a separate control plane whose only controllers are those of garbage and of namespaces, without the CRDs.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn collecting() -> Result<Self> {
        Self::set_up(Parts::Controllers, |options| options.controllers(&COLLECTING_CONTROLLERS)).await
    }

    /// Starts a separate API server that forgets what it was asked to change as soon as it can, without the CRDs.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn forgetful() -> Result<Self> {
        Self::set_up(Parts::Api, |options| {
            // With a cache of its own for watches, the server could still tell what etcd has forgotten.
            options.api_arg("--etcd-compaction-interval=1s").api_arg("--watch-cache=false")
        })
        .await
    }

    /// Starts a separate API server in which policies can change what is written, without the CRDs.
    ///
    /// # Errors
    /// If a part does not start.
    pub async fn mutating() -> Result<Self> {
        Self::set_up(Parts::Api, |options| {
            options
                .api_arg("--feature-gates=MutatingAdmissionPolicy=true")
                .api_arg("--runtime-config=admissionregistration.k8s.io/v1beta1=true")
        })
        .await
    }

    /// Starts a separate API server of a newer Kubernetes with these arguments, without the CRDs.
    ///
    /// # Errors
    /// If it cannot be had, or does not start.
    pub async fn newer(arguments: &[&str]) -> Result<Self> {
        let assets = Assets::ensure_for(Parts::Api, to_stderr).await?.with_newer_api_server(to_stderr).await?;
        Self::made_of(assets, Parts::Api, |options| {
            arguments.iter().fold(options, |options, argument| options.api_arg(*argument))
        })
        .await
    }

    async fn set_up(parts: Parts, change: impl FnOnce(Options) -> Options) -> Result<Self> {
        Self::made_of(Assets::ensure(to_stderr).await?, parts, change).await
    }

    async fn made_of(assets: Assets, parts: Parts, change: impl FnOnce(Options) -> Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let options = Options::new(folder.path().join("control-plane"), parts).audit_log();
        let users = [HOST_USER, SECOND_HOST_USER, THIRD_HOST_USER];
        let options = users.iter().fold(options, |options, user| options.user(user, &["system:masters"]));
        let plane = ControlPlane::start(assets, change(options)).await?;
        Ok(Self { plane, code: CompiledCode::shared()?, _folder: folder })
    }

    /// Installs a CRD of somebody else, and lets garbage collection know its kind at once.
    ///
    /// # Errors
    /// If the API server refuses it, or a part does not start again.
    pub async fn install_foreign_crd(&self, file: &std::path::Path) -> Result<()> {
        install_crd(&self.plane.client().await?, file).await?;
        self.plane.stop_part(Part::ControllerManager).await?;
        self.plane.start_part(Part::ControllerManager).await
    }

    /// Installs the CRDs of the repository and of the tests.
    async fn install_crds(&self) -> Result<()> {
        let client = self.plane.client().await?;
        for crd in CRDS {
            install_crd(&client, &artifacts::repository().join(crd)).await?;
        }
        // Garbage collection discovers new kinds every 30 s. A restarted controller manager does it at once.
        self.plane.stop_part(Part::ControllerManager).await?;
        self.plane.start_part(Part::ControllerManager).await
    }

    /// Stops the control plane gracefully.
    ///
    /// # Errors
    /// If a part does not stop.
    pub async fn stop(self) -> Result<()> {
        self.plane.stop().await
    }

    /// Creates a namespace for a test. Its client belongs to the calling tokio runtime.
    ///
    /// # Errors
    /// If it cannot be created.
    pub async fn namespace(&self, test: &str) -> Result<Namespace> {
        let client = self.plane.client().await?;
        let name = namespace_name(test);
        create_namespace(&client, &name).await?;
        let setup = Setup {
            kubeconfig: self.plane.kubeconfig_for(HOST_USER)?,
            pod: None,
            cgroup: None,
            namespace: Some(name.clone()),
            cache: self.code.folder()?,
            arguments: Vec::new(),
            variables: Vec::new(),
        };
        Ok(Namespace { name, client, setup })
    }

    /// Lets other tests have the code that the host of this namespace has compiled.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn share_code_of(&self, namespace: &Namespace) -> Result<()> {
        self.code.share(&namespace.setup.cache)
    }
}

/// The namespace of a test. A name that is too long for one ends in a hash of the whole: two tests whose names begin alike would share a
/// namespace otherwise, and each would see the objects of the other.
fn namespace_name(test: &str) -> String {
    let name = test.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let name = name.trim_matches('-');
    if name.len() <= LONGEST_LABEL {
        return name.to_owned();
    }
    let hash: String = Sha256::digest(test).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let begin = &name[..LONGEST_LABEL - hash.len() - 1];
    format!("{}-{hash}", begin.trim_end_matches('-'))
}

/// Installs a CRD and waits until it is served.
///
/// # Errors
/// If the API server refuses a request.
pub async fn install_crd(client: &Client, file: &std::path::Path) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read '{}'", file.display()))?;
    let crd: DynamicObject = serde_saphyr::from_str(&text)?;
    let name = crd.metadata.name.clone().context("a CRD without a name")?;
    let crds = api(client, "CustomResourceDefinition", None)?;
    crds.patch(&name, &PatchParams::apply("tests").force(), &Patch::Apply(&crd)).await?;
    eventually(PATIENCE, "the CRD to be established", async || {
        let crd = crds.get(&name).await?;
        let conditions = crd.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let established = conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True");
        Ok(Look::of(established, conditions))
    })
    .await
}

/// Creates a namespace.
///
/// # Errors
/// If the API server refuses a request.
pub async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    api(client, "Namespace", None)?.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    Ok(())
}

/// A client for one of the known kinds, named as `Pod` or `LLMModel.llm.example.com`. The namespace is ignored for cluster-scoped
/// kinds.
///
/// # Errors
/// If the kind is not known to the tests.
pub fn api(client: &Client, kind: &str, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
    let is_meant = |(api_version, name, _): &&(&str, &str, &str)| match kind.split_once('.') {
        Some((kind, group)) => *name == kind && api_version.split('/').next() == Some(group),
        None => *name == kind,
    };
    let (api_version, kind, plural) =
        KINDS.iter().find(is_meant).with_context(|| format!("the tests do not know the kind {kind}"))?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: (*api_version).to_owned(),
        kind: (*kind).to_owned(),
        plural: (*plural).to_owned(),
    };
    Ok(match namespace.filter(|_| !CLUSTER_SCOPED.contains(kind)) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

/// What a test waits for: an object and the expected state, for the error message.
#[derive(Clone, Copy, Debug)]
pub struct Awaited<'a> {
    /// The object's kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The expected state, to follow the name in a sentence: `to be ready`.
    pub what: &'a str,
}

impl Namespace {
    /// The setup of a host that watches this namespace only.
    pub fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// The client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for a kind in this namespace, or for a cluster-scoped kind.
    ///
    /// # Errors
    /// If the kind is not known to the tests.
    pub fn api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        api(&self.client, kind, Some(&self.name))
    }

    /// Creates or changes an object as `kubectl apply --server-side` does.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn apply(&self, object: Value) -> Result<Value> {
        let kind = kind_of(&object)?;
        let name = object["metadata"]["name"].as_str().context("an object without a name")?.to_owned();
        let parameters = PatchParams::apply("user").force();
        let applied = self.api(&kind)?.patch(&name, &parameters, &Patch::Apply(object)).await?;
        Ok(serde_json::to_value(applied)?)
    }

    /// Changes an object with a merge patch, as `kubectl patch --type=merge` does.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn patch(&self, kind: &str, name: &str, patch: Value) -> Result<Value> {
        let patched = self.api(kind)?.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(serde_json::to_value(patched)?)
    }

    /// Reads an object; none if it does not exist.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind)?.get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// All objects of a kind.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let items = self.api(kind)?.list(&Default::default()).await?.items;
        items.into_iter().map(|item| Ok(serde_json::to_value(item)?)).collect()
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.api(kind)?.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until an object exists and satisfies a condition.
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until(&self, kind: &str, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        self.until_within(PATIENCE, &Awaited { kind, name, what }, holds).await
    }

    /// The same, with another time limit.
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until_within(
        &self,
        patience: Duration,
        awaited: &Awaited<'_>,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let Awaited { kind, name, what } = awaited;
        eventually(patience, &format!("{kind} '{name}' {what}"), async || {
            Ok(match self.get(kind, name).await? {
                Some(object) if holds(&object) => Look::Found(object),
                other => Look::NotYet(other.map_or("it is not there".to_owned(), |object| object.to_string())),
            })
        })
        .await
    }

    /// Waits until an object is gone.
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until_gone(&self, kind: &str, name: &str) -> Result<()> {
        self.until_gone_within(PATIENCE, kind, name).await
    }

    /// The same, with another time limit.
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until_gone_within(&self, patience: Duration, kind: &str, name: &str) -> Result<()> {
        eventually(patience, &format!("{kind} '{name}' to be gone"), async || {
            let object = self.get(kind, name).await?;
            Ok(object.map_or(Look::Found(()), |object| Look::NotYet(object.to_string())))
        })
        .await
    }
}

/// The kind of an object as [`api`] takes it, with its group if it has one.
fn kind_of(object: &Value) -> Result<String> {
    let kind = object["kind"].as_str().context("an object without a kind")?;
    let api_version = object["apiVersion"].as_str().context("an object without an API version")?;
    Ok(api_version.split_once('/').map_or_else(|| kind.to_owned(), |(group, _)| format!("{kind}.{group}")))
}

/// The revision of an object. Resource versions of all kinds come from one counter, so they can be compared.
///
/// # Errors
/// If the object has none that is a number.
pub fn revision(object: &Value) -> Result<u64> {
    Ok(object["metadata"]["resourceVersion"].as_str().context("no resource version")?.parse()?)
}

/// A condition of an object's status, null if it has none of that type.
pub fn condition<'a>(object: &'a Value, condition_type: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == condition_type);
    found.unwrap_or(&Value::Null)
}

/// Creates an object of a cluster-scoped kind, unless it is there.
///
/// # Errors
/// If the API server refuses it.
pub async fn create_or_keep(client: &Client, object: Value) -> Result<()> {
    let kind = kind_of(&object)?;
    match api(client, &kind, None)?.create(&PostParams::default(), &serde_json::from_value(object)?).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_whose_names_begin_alike_have_namespaces_of_their_own() {
        let begin = "chart::running::a_name_that_is_longer_than_a_namespace_may_be";
        let (one, other) = (namespace_name(&format!("{begin}_one")), namespace_name(&format!("{begin}_other")));
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert!(name.len() <= LONGEST_LABEL && !name.ends_with('-'), "{name}");
            assert!(name.starts_with("chart--running--a-name-that-is-longer-than-a-namespace"), "{name}");
        }
        assert_eq!(namespace_name("plan::Short_"), "plan--short");
    }
}
