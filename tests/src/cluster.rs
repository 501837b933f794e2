//! The control plane that all tests share, and a client with helpers that read like what they check.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Part, Parts};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    artifacts,
    host::Setup,
    wait::{Look, eventually},
};

/// How long the cluster may take to do anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The user that hosts are, so that the audit log tells their writes from everybody else's.
pub const HOST_USER: &str = "host";

/// The user that a second host is, where two are to be told apart.
pub const SECOND_HOST_USER: &str = "second-host";

/// The kinds that the tests know: version, kind, plural.
const KINDS: [(&str, &str, &str); 28] = [
    ("apps.example.com/v1", "AppService", "appservices"),
    ("ml.example.com/v1alpha1", "TrainingJob", "trainingjobs"),
    ("test.pilothouse.dev/v1", "Misbehaver", "misbehavers"),
    ("test.pilothouse.dev/v1", "Farewell", "farewells"),
    ("test.pilothouse.dev/v1", "Scripted", "scripteds"),
    ("test.pilothouse.dev/v1", "ScriptedChild", "scriptedchildren"),
    ("test.pilothouse.dev/v1", "ClusterScripted", "clusterscripteds"),
    ("test.pilothouse.dev/v1", "Sextet", "sextets"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "ReplicaSet", "replicasets"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    ("v1", "Service", "services"),
    ("v1", "Endpoints", "endpoints"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Pod", "pods"),
    ("v1", "PersistentVolume", "persistentvolumes"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    ("v1", "Event", "events"),
    ("v1", "Namespace", "namespaces"),
    ("coordination.k8s.io/v1", "Lease", "leases"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
];

/// Those of them whose objects are in no namespace.
const CLUSTER_SCOPED: [&str; 4] = ["ClusterScripted", "CustomResourceDefinition", "Namespace", "PersistentVolume"];

/// The CRDs of the repository and of the tests.
const CRDS: [&str; 8] = [
    "crds/appservices.apps.example.com.yaml",
    "crds/trainingjobs.ml.example.com.yaml",
    "tests/guests/farewell/crd.yaml",
    "tests/guests/misbehaver/crd.yaml",
    "tests/guests/scripted/child-crd.yaml",
    "tests/guests/scripted/crd.yaml",
    "tests/guests/scripted-cluster/crd.yaml",
    "tests/guests/sextet/crd.yaml",
];

/// What a controller manager must run for garbage to be collected.
const QUIET_CONTROLLERS: [&str; 2] = ["garbage-collector-controller", "serviceaccount-controller"];

/// The shared control plane with the CRDs of the repository and of the tests.
pub struct Cluster {
    /// The control plane.
    pub plane: ControlPlane,
    folder: TempDir,
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
    /// What did not start.
    pub async fn start() -> Result<Self> {
        let cluster = Self::with(Parts::Full).await?;
        cluster.install_crds().await?;
        Ok(cluster)
    }

    /// Starts a control plane of one's own, without the CRDs: to stop its parts, or where a kind must be missing.
    ///
    /// # Errors
    /// What did not start.
    pub async fn with(parts: Parts) -> Result<Self> {
        Self::set_up(parts, |options| options).await
    }

    /// Starts a control plane of one's own that stores objects and collects garbage, and installs the CRDs: whatever is
    /// written there, the hosts or the tests have written.
    ///
    /// # Errors
    /// What did not start.
    pub async fn quiet() -> Result<Self> {
        let cluster = Self::set_up(Parts::Controllers, |options| options.controllers(&QUIET_CONTROLLERS)).await?;
        cluster.install_crds().await?;
        Ok(cluster)
    }

    async fn set_up(parts: Parts, change: impl FnOnce(Options) -> Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let assets = Assets::ensure(pilothouse_control_plane::to_stderr).await?;
        let options = Options::new(folder.path().join("control-plane"), parts).audit_log();
        let options =
            [HOST_USER, SECOND_HOST_USER].iter().fold(options, |options, user| options.user(user, &["system:masters"]));
        let plane = ControlPlane::start(assets, change(options)).await?;
        Ok(Self { plane, folder })
    }

    /// Installs the CRDs of the repository and of the tests.
    async fn install_crds(&self) -> Result<()> {
        let client = self.plane.client().await?;
        for crd in CRDS {
            install_crd(&client, &artifacts::repository().join(crd)).await?;
        }
        // Garbage collection looks for new kinds every 30 s; a new controller manager looks at once.
        self.plane.stop_part(Part::ControllerManager).await?;
        self.plane.start_part(Part::ControllerManager).await
    }

    /// Ends the control plane in good order.
    ///
    /// # Errors
    /// What did not end.
    pub async fn stop(self) -> Result<()> {
        self.plane.stop().await
    }

    /// A new namespace for the test of that name, with a client of the calling runtime's own.
    ///
    /// # Errors
    /// Where it cannot be created.
    pub async fn namespace(&self, test: &str) -> Result<Namespace> {
        let client = self.plane.client().await?;
        let name = test.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let name = name[..name.len().min(63)].trim_matches('-').to_owned();
        create_namespace(&client, &name).await?;
        let setup = Setup {
            kubeconfig: self.plane.kubeconfig_for(HOST_USER)?,
            pod: None,
            namespace: Some(name.clone()),
            cache: self.cache(),
            arguments: Vec::new(),
        };
        Ok(Namespace { name, client, setup })
    }

    /// Where all hosts of this run keep compiled plugins.
    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("compiled")
    }
}

/// Installs a CRD and waits until it is served.
///
/// # Errors
/// What the API server refused.
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
/// What the API server refused.
pub async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    api(client, "Namespace", None)?.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    Ok(())
}

/// A client for one of the known kinds. The namespace does not matter for a kind whose objects are in none.
///
/// # Errors
/// Where the kind is not known to the tests.
pub fn api(client: &Client, kind: &str, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
    let (api_version, kind, plural) =
        KINDS.iter().find(|known| known.1 == kind).with_context(|| format!("the tests do not know the kind {kind}"))?;
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

/// What a test waits for: an object, and in words what shall become of it.
#[derive(Clone, Copy, Debug)]
pub struct Awaited<'a> {
    /// The object's kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What shall become of it, as it goes on from the name: `to be ready`.
    pub what: &'a str,
}

impl Namespace {
    /// How to start a host that watches this namespace alone.
    pub fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// The client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Objects of a kind in this namespace, or those that are in none.
    ///
    /// # Errors
    /// Where the kind is not known to the tests.
    pub fn api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        api(&self.client, kind, Some(&self.name))
    }

    /// Creates or changes an object as `kubectl apply --server-side` does.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn apply(&self, object: Value) -> Result<Value> {
        let kind = object["kind"].as_str().context("an object without a kind")?.to_owned();
        let name = object["metadata"]["name"].as_str().context("an object without a name")?.to_owned();
        let parameters = PatchParams::apply("user").force();
        let applied = self.api(&kind)?.patch(&name, &parameters, &Patch::Apply(object)).await?;
        Ok(serde_json::to_value(applied)?)
    }

    /// Changes an object with a merge patch, as `kubectl patch --type=merge` does.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn patch(&self, kind: &str, name: &str, patch: Value) -> Result<Value> {
        let patched = self.api(kind)?.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(serde_json::to_value(patched)?)
    }

    /// An object as it is now, none if it is not there.
    ///
    /// # Errors
    /// Where the API server does not answer.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind)?.get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// All objects of a kind.
    ///
    /// # Errors
    /// Where the API server does not answer.
    pub async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let items = self.api(kind)?.list(&Default::default()).await?.items;
        items.into_iter().map(|item| Ok(serde_json::to_value(item)?)).collect()
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.api(kind)?.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until an object is there and satisfies a condition.
    ///
    /// # Errors
    /// The object as it is in the end.
    pub async fn until(&self, kind: &str, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        self.until_within(PATIENCE, &Awaited { kind, name, what }, holds).await
    }

    /// The same where it may take longer.
    ///
    /// # Errors
    /// The object as it is in the end.
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
    /// The object as it is in the end.
    pub async fn until_gone(&self, kind: &str, name: &str) -> Result<()> {
        self.until_gone_within(PATIENCE, kind, name).await
    }

    /// The same where it may take longer.
    ///
    /// # Errors
    /// The object as it is in the end.
    pub async fn until_gone_within(&self, patience: Duration, kind: &str, name: &str) -> Result<()> {
        eventually(patience, &format!("{kind} '{name}' to be gone"), async || {
            let object = self.get(kind, name).await?;
            Ok(object.map_or(Look::Found(()), |object| Look::NotYet(object.to_string())))
        })
        .await
    }
}

/// When a version was written: resource versions of all kinds count the same writes.
///
/// # Errors
/// Where the object has none that is a number.
pub fn revision(object: &Value) -> Result<u64> {
    Ok(object["metadata"]["resourceVersion"].as_str().context("no resource version")?.parse()?)
}

/// A condition of an object's status, null if it has none of that type.
pub fn condition<'a>(object: &'a Value, condition_type: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == condition_type);
    found.unwrap_or(&Value::Null)
}
