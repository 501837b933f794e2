//! `Plugin`: a reconcile plugin that the host loads. Cluster-scoped, because two plugins of one name or for one kind cannot be at work in
//! one cluster.

#![allow(clippy::duplicated_attributes, reason = "each column of `kubectl get` has a type of its own")]

use kube::{CustomResource, KubeSchema};
use pilothouse_engine::{ChildReadiness, Expression, contract::KindRef};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    condition::Condition,
    json_text::JsonText,
    names::{FILE_NAME_PATTERN, NAME_PATTERN},
    plan::PlanStatus,
    rollout::{FormerVersion, NewVersion, PinStatus, RolloutSpec, RolloutStatus},
    selector::LabelSelector,
};

/// What to load and how.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "pilothouse.dev",
    version = "v1alpha1",
    kind = "Plugin",
    status = "PluginStatus",
    doc = "A reconcile plugin that the host loads.",
    printcolumn(json_path = ".status.reconciles.kind", name = "Kind", type_ = "string"),
    printcolumn(json_path = ".status.version", name = "Version", type_ = "string"),
    printcolumn(json_path = ".status.shortDigest", name = "Digest", type_ = "string"),
    printcolumn(json_path = ".status.objects.total", name = "Objects", type_ = "integer"),
    printcolumn(json_path = ".status.conditions[?(@.type==\"Ready\")].status", name = "Ready", type_ = "string"),
    printcolumn(json_path = ".status.newVersion", name = "New Version", type_ = "string"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.source.configMap) || !has(self.source.configMap.pieces) || has(self.digest)")
    .message("a plugin in pieces needs a digest: without it, nobody could tell whether all pieces are of one version"))]
pub struct PluginSpec {
    /// Where the component comes from.
    pub source: Source,
    /// The digest that the component must have, `sha256:` and 64 hexadecimal digits. Without it, whoever may change the source may change
    /// the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// Who must have signed the component. Default: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationSpec>,
    /// The plugin's configuration: any JSON, handed to it with every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_json")]
    pub config: Option<JsonText>,
    /// Takes the plugin from work. Its objects and their children stay as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// What the plugin may do at most. A component whose manifest asks for more is not loaded. Default: what its manifest asks for, less
    /// the kinds that have to be granted by name: those that give rights or take part in admission, and Secrets as lookups.
    #[serde(default)]
    pub grants: Grants,
    /// What the plugin may use. Default: what every plugin may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsSpec>,
    /// The service account with whose rights the children are written, and the lookups made. Default: the host's own rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub service_account_name: Option<String>,
    /// Where that account is.
    #[serde(default)]
    pub service_account_namespace: ServiceAccountNamespace,
    /// The namespaces whose objects the plugin reconciles, by their labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<LabelSelector>,
    /// How another version takes over. Default: for all objects at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSpec>,
}

/// What a plugin may do at most.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grants {
    /// The kinds that its manifest may reconcile. Without the list: any custom kind, but none of Kubernetes' own, whose objects hold
    /// what others have put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciles: Option<Vec<KindGrant>>,
    /// The kinds of children that it may have, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<KindGrant>>,
    /// The kinds that it may look up, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<Vec<LookupGrant>>,
}

/// A kind, in any version.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindGrant {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
}

/// A kind that may be looked up, in any version.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LookupGrant {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Whether an object may lead to lookups in other namespaces than its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
}

/// What a plugin may use.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSpec {
    /// The memory of a call, in MiB. Default: 128, which is the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub memory_mebibytes: Option<u32>,
    /// The computing time of a call, in ms. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5, max = 30000))]
    pub cpu_milliseconds: Option<u32>,
    /// The time of a call with all that it waits for, in s. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60))]
    pub timeout_seconds: Option<u32>,
    /// The size of an answer, in KiB. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub output_kibibytes: Option<u32>,
    /// How many calls an instance of it answers at most, where its manifest lets it answer several. Default: what the manifest says; 1 where
    /// the service account is one of the object's namespace, for an instance may carry what it has seen of one object to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub calls_per_instance: Option<u32>,
    /// How many of its objects are reconciled at once. Default: what --concurrency says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u32>,
}

/// Where the service account of a plugin is.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceAccountNamespace {
    /// In the host's namespace, one for all objects.
    #[default]
    Host,
    /// In the namespace of each object: nothing happens for an object that its own namespace does not allow.
    Object,
}

/// Where a component comes from: one of these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.configMap), has(self.oci), has(self.directory)].filter(named, named).size() == 1")
    .message("name one source: configMap, oci or directory"))]
pub struct Source {
    /// ConfigMaps in the host's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// A file on the machine of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectorySource>,
}

/// A component in the directory that the host has by `--plugin-files`, as it is or compressed by gzip or zstd. Signatures are the files
/// beside it whose names begin with that of the component and end with `.sigstore.json`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectorySource {
    /// The name of the file, no path, with `.wasm` at its end. A file that takes its place is loaded in its place.
    #[schemars(length(min = 1, max = 253), regex(pattern = FILE_NAME_PATTERN))]
    pub file_name: String,
}

/// A component in an OCI registry, in the form that the CNCF's working group on WebAssembly describes: one layer of type
/// `application/wasm`. Signatures are those that cosign puts beside it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// Registry, repository, and a tag or the digest of the artifact's manifest. A tag is looked up again from time to time.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// A Secret of type `kubernetes.io/dockerconfigjson` in the host's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub pull_secret_name: Option<String>,
    /// A ConfigMap in the host's namespace with certificate authorities to trust beside those of the system, as `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub ca_config_map_name: Option<String>,
    /// Speaks to the registry without TLS. With a digest or a verification nobody can slip in another component all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
    /// After how many seconds a tag is looked up again.
    #[serde(default = "poll_seconds")]
    #[schemars(range(min = 1, max = 86400))]
    pub poll_seconds: u32,
}

fn poll_seconds() -> u32 {
    60
}

/// Who must have signed a component. One of them is enough.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("size(self.keys) + size(self.identities) > 0").message("name a key or an identity that must have signed"))]
pub struct VerificationSpec {
    /// Public keys as PEM.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub keys: Vec<String>,
    /// People and programs that sign with short-lived certificates for who they are.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub identities: Vec<IdentitySpec>,
    /// A ConfigMap in the host's namespace with a trusted root of Sigstore, as `trusted_root.json`. Default: that of the public Sigstore
    /// when the host was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub trusted_root_config_map_name: Option<String>,
    /// Whether a transparency log must know the signature of a key. That of an identity must always be known to one.
    #[serde(default)]
    pub transparency_log: TransparencyLog,
}

/// Somebody who signs with short-lived certificates for who he is.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySpec {
    /// Who says who it is, such as `https://token.actions.githubusercontent.com`.
    #[schemars(length(min = 1, max = 1024))]
    pub issuer: String,
    /// Who it is, an e-mail address or a URI, as a regular expression for the whole of it.
    #[schemars(length(min = 1, max = 1024))]
    pub subject: String,
}

/// Whether a transparency log must know a signature.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransparencyLog {
    /// It must.
    #[default]
    Require,
    /// It need not: for keys of one's own that nobody publishes.
    Ignore,
}

/// A component in ConfigMaps, as it is or compressed by gzip or zstd.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The name of the ConfigMap. In pieces it is what their names begin with: `NAME-0`, `NAME-1` and so on.
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// The key in `binaryData`. Default: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of how many pieces it is made. Default: it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub pieces: Option<u32>,
}

/// What became of a plugin.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The generation that the conditions are about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Ready`, `Loaded`, and, only while they are true, `Degraded`, `Reconciling` and `Stalled`.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
    /// The version at work, as its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the component at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The beginning of the digest, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_digest: Option<String>,
    /// The version of the contract that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The kind that it reconciles; while nothing is at work, the one that was reconciled last. So are the next four fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciles: Option<KindName>,
    /// Whether it decorates objects of that kind, and does not own them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,
    /// The kinds of children that it may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<KindName>,
    /// How far children are, as the manifest says it. Of other kinds the host judges that itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_readiness: Vec<ReadinessRule>,
    /// The finalizers that its objects may have because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The objects of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectCounts>,
    /// When the component that is or was at work last took over, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_swap_time: Option<String>,
    /// What failed last. It stays when it has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// The digest of the component that answers all objects, or did last: a canary goes back to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_digest: Option<String>,
    /// Where that component came from: a host that does not have it looks for it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_source: Option<StableSource>,
    /// The configuration of that component, where there is a `rollout`. It stays while another version is tried or held, or was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_config: Option<StableConfig>,
    /// The components that were at work, the latest one first. A pin by its number means the first with this number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<FormerVersion>,
    /// Whether a new version waits for approval, is tried, or was taken back, for `kubectl get`; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_version: Option<NewVersion>,
    /// How far a version is that does not answer all objects yet, or that was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// What a new version would do that somebody has to approve, or has approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// What is wrong with the pins; none if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<PinStatus>,
    /// What its versions keep of the memory that plugins may have, in bytes, or what is kept free for it after a start of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<i64>,
}

/// Where the component came from that answers all objects.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StableSource {
    /// Its digest. The source may have another component by now.
    pub digest: String,
    /// The source. An image is named by the digest of its manifest.
    pub source: Source,
}

/// The configuration of the component that answers all objects.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StableConfig {
    /// Its digest.
    pub digest: String,
    /// The configuration, as JSON text; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// Why a plugin was not loaded.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Since when, as RFC 3339.
    pub time: String,
}

/// A kind of objects.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindName {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl KindName {
    /// The kind.
    pub fn kind_ref(&self) -> KindRef {
        KindRef::new(self.api_version.clone(), self.kind.clone())
    }
}

/// How far children of a kind are: expressions in CEL over `self`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessRule {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether a child is as its spec says.
    pub current: String,
    /// Whether it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What to say of it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl From<&ChildReadiness> for ReadinessRule {
    fn from(ChildReadiness { kind, current, failed, message }: &ChildReadiness) -> Self {
        let text = |expression: &Expression| expression.text().to_owned();
        let KindRef { api_version, kind } = kind.clone();
        let (failed, message) = (failed.as_ref().map(text), message.as_ref().map(text));
        Self { api_version, kind, current: text(current), failed, message }
    }
}

impl From<ReadinessRule> for ChildReadiness {
    fn from(ReadinessRule { api_version, kind, current, failed, message }: ReadinessRule) -> Self {
        let kind = KindRef::new(api_version, kind);
        Self {
            kind,
            current: current.into(),
            failed: failed.map(Expression::from),
            message: message.map(Expression::from),
        }
    }
}

/// How many objects a plugin has.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// All.
    pub total: usize,
    /// Those that are ready.
    pub ready: usize,
    /// Those that are stuck until somebody changes something.
    pub failing: usize,
}

fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}
