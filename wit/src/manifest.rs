//! What a plugin says about itself, read from its bytes without running or compiling anything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    CONTRACT_VERSION, ChildReadiness, ChildReads, ConfigError, ConfigSchema, ContractSeries, Declaration, Decorates,
    KindRef, Lookup, Measurement, measurement::MOST_METRICS,
};

/// Name of the custom section that holds the manifest, in the component or in a core module inside it.
pub const SECTION: &str = "pilothouse:manifest";

/// The most kinds in a list. The host watches each of them, asks for rights on it, and writes the children's down in a record that all plugins
/// share.
const MOST_KINDS: usize = 100;

/// The most calls that one instance may answer: what it leaves behind in its memory goes at some time.
const MOST_CALLS_PER_INSTANCE: u32 = 10_000;

/// Interface prefix of the contract; what follows is the interface and its version.
pub(crate) const PACKAGE: &str = "pilothouse:plugin/";

/// The declaration embedded in a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The plugin's name, a DNS label: names its field manager, labels and metrics.
    pub name: String,
    /// The plugin's own version, for people.
    pub version: String,
    /// Version of the contract it was built for.
    pub contract: String,
    /// The kind it reconciles.
    pub reconciles: KindRef,
    /// Whether it does not own the objects of that kind, and which of them it decorates: it may return children for them, and their own
    /// labels and annotations, and never a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decorates: Option<Decorates>,
    /// The kinds of children it may return. One that it may also look up need not be installed: it can ask.
    #[serde(default)]
    pub children: Vec<KindRef>,
    /// The kinds it may look up, and where.
    #[serde(default)]
    pub lookups: Vec<Lookup>,
    /// The metrics it may send samples of.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
    /// Name of the finalizer that its objects get, where it is not the host's own `pilothouse.dev/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// JSON pointer of the field in which an object can name its manager, such as `/spec/managedBy`. An object that names
    /// another than `pilothouse.dev/NAME` is left alone: the plugin is not asked, and nothing is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// Other names in that field by which the plugin manages an object: those of who managed it before, such as
    /// `kubeflow.org/training-operator`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
    /// JSON pointer of the field that says when an object's time is over, such as `/status/expirationTime`: a time as RFC 3339.
    /// The host deletes the object then, as a user would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// JSON pointer of a number of seconds that an object lives on after the time in `expires`, such as
    /// `/spec/ttlSecondsAfterFinished`. An object without a number there does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// JSON pointers of the fields of its object that it reads, such as `/spec`. It is shown those, and what tells the object
    /// from others (`apiVersion`, `kind`, and of `metadata` name, namespace, UID, generation, creation and deletion time);
    /// a change of anything else, such as its own status, does not call it. None: it is shown everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// The fields that it reads of its children, for each kind of which it does not read everything. As for `reads`: it is shown
    /// no others, and a change of others does not call it; a child that has none of them is not shown at all. The host still keeps
    /// them as the plugin said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_reads: Vec<ChildReads>,
    /// How far its children are, for each kind of which the host's rules do not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_readiness: Vec<ChildReadiness>,
    /// Whether children that it returns may wait for others. Its objects get a finalizer of the host's, for their children go in the
    /// reverse order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orders_children: bool,
    /// How many calls, one after another, the same instance may answer; none, or 1: each call gets a new instance. What an instance has in its
    /// memory is there in its next call, which may be about another object. So it is for guests that are slow to start and keep nothing: a
    /// plugin that remembers what it has seen is no longer a function of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_instance: Option<u32>,
    /// The JSON schema (draft 2020-12, without references) that its configuration has to fit. A configuration that does not is not
    /// given to it: the host says so, and goes on with the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<ConfigSchema>,
    /// Whether it exports `finalizer`. Not declared but seen in the component.
    #[serde(default)]
    pub finalizes: bool,
}

/// Why bytes are not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not WebAssembly, or a damaged or half-written file.
    #[error("not a whole WebAssembly file: {}", in_one_line(.0))]
    NotWasm(wasmparser::BinaryReaderError),
    /// A core module.
    #[error("a core WebAssembly module, not a component; make it one with `pilothouse pack FILE -o PLUGIN.wasm`")]
    NotComponent,
    /// No manifest section.
    #[error("a component without a manifest (custom section `{SECTION}`); add one with `pilothouse pack --manifest`")]
    Missing,
    /// Several manifests that differ.
    #[error("{0} different manifests (custom section `{SECTION}`) in one component; a plugin has one")]
    Several(usize),
    /// The manifest is not the JSON it should be.
    #[error("the manifest is malformed: {0}")]
    Malformed(#[source] serde_json::Error),
    /// A value in the manifest is not allowed.
    #[error("the manifest's `{field}` is not valid: {reason}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Built for a contract this host does not speak.
    #[error(
        "built for contract {found}, but this host speaks {spoken}; rebuild the plugin with a matching SDK or install a \
         host that speaks {found}", spoken = ContractSeries::all_spoken()
    )]
    ContractVersion {
        /// The version the plugin speaks.
        found: String,
    },
    /// It has fields that its version of the contract does not have.
    #[error(
        "the manifest has fields that contract {CONTRACT_VERSION} of this host does not have: {0}; correct their names, or \
         install a host that has them"
    )]
    UnknownFields(String),
    /// Its kinds come from its configuration, and there is none here.
    #[error(
        "the plugin '{name}' takes the kind that it reconciles from its configuration, so it does nothing without one; give it one"
    )]
    TakesConfig {
        /// Its name.
        name: String,
    },
    /// Imports interfaces of a WASI that this host does not have.
    #[error(
        "it imports {import}, and this host gives plugins WASI 0.2; build it for the target wasm32-wasip2, without the async functions \
         of WASI 0.3"
    )]
    Wasi {
        /// The interface with its version.
        import: String,
    },
    /// Does not export the contract's `reconciler`.
    #[error("a component that does not export `{PACKAGE}reconciler`, so it is not a Pilothouse plugin")]
    NoReconciler,
}

/// What the parser says, without the bytes that it has found and expected, one in each line. It is no cause of its own, for then they would be
/// told after all.
fn in_one_line(error: &wasmparser::BinaryReaderError) -> String {
    let first = error.message().lines().next().unwrap_or_default();
    let words: Vec<_> = first.split(" - expected").next().unwrap_or_default().split_whitespace().collect();
    format!("{} (at byte {})", words.join(" "), error.offset())
}

impl Manifest {
    /// A manifest of this contract that declares the kind it reconciles and nothing else.
    pub fn new(name: &str, version: &str, reconciles: KindRef) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            contract: CONTRACT_VERSION.to_owned(),
            reconciles,
            decorates: None,
            children: Vec::new(),
            lookups: Vec::new(),
            measurements: Vec::new(),
            finalizer: None,
            managed_by: None,
            managers: Vec::new(),
            expires: None,
            expires_after: None,
            reads: None,
            child_reads: Vec::new(),
            child_readiness: Vec::new(),
            orders_children: false,
            calls_per_instance: None,
            config_schema: None,
            finalizes: false,
        }
    }

    /// Whether a plugin can have this name.
    pub fn is_name(text: &str) -> bool {
        is_dns_label(text)
    }

    /// Reads the manifest and checks that the component speaks this host's contract. Runs and compiles nothing.
    ///
    /// # Errors
    /// Each way in which bytes are not a plugin has its own [`ManifestError`], which says what to do. One of them is a plugin whose kinds come
    /// from its configuration: [`Declaration::read`] reads that as well.
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        Declaration::read(bytes)?.fixed()
    }

    /// The version of the contract that the plugin speaks, up to the patch.
    pub fn series(&self) -> ContractSeries {
        // A manifest that was read has one that is spoken. One that was made by hand is of the newest.
        ContractSeries::of(&self.contract).unwrap_or_default()
    }

    /// Judges a configuration, JSON text, by the schema that the manifest has. None: `null`.
    ///
    /// # Errors
    /// [`ConfigError`] if there is a schema, and the configuration does not fit.
    pub fn check_config(&self, config: Option<&str>) -> Result<(), ConfigError> {
        self.config_schema.as_ref().map_or(Ok(()), |schema| schema.check(config.unwrap_or("null")))
    }

    /// Whether this plugin and another one would own the objects of the same kind, whatever its version. Decorators own none.
    pub fn owns_kind_of(&self, other: &Self) -> bool {
        let both_own = self.decorates.is_none() && other.decorates.is_none();
        both_own && self.reconciles.is_same_kind(&other.reconciles)
    }

    /// What a plugin may not declare about objects that are not its own.
    pub(crate) fn validate_decorates(&self) -> Result<(), ManifestError> {
        let Some(decorates) = &self.decorates else { return Ok(()) };
        let invalid = |reason: String| Err(ManifestError::Invalid { field: "decorates", reason });
        let declared = [
            ("a finalizer", self.finalizes || self.finalizer.is_some()),
            ("expires", self.expires.is_some()),
            ("ordersChildren", self.orders_children),
        ];
        if let Some((field, _)) = declared.iter().find(|(_, is_declared)| *is_declared) {
            return invalid(format!(
                "a plugin that decorates objects does not decide when they end, and cannot have {field}"
            ));
        }
        decorates.fault().map_or(Ok(()), invalid)
    }

    pub(crate) fn validate(&self) -> Result<(), ManifestError> {
        let invalid = |field, reason: &str| Err(ManifestError::Invalid { field, reason: reason.to_owned() });
        if !is_dns_label(&self.name) {
            return invalid("name", "it must be a DNS label: at most 63 of a-z, 0-9 and -, beginning with a letter");
        }
        if self.version.is_empty() || self.version.len() > 63 || !self.version.bytes().all(|b| b.is_ascii_graphic()) {
            return invalid(
                "version",
                "it must have 1 to 63 characters of ASCII, without spaces and control characters",
            );
        }
        if ContractSeries::of(&self.contract).is_none() {
            return Err(ManifestError::ContractVersion { found: self.contract.clone() });
        }
        if self.finalizer.as_deref().is_some_and(|finalizer| !is_qualified_name(finalizer)) {
            return invalid("finalizer", "it must be a domain, a slash and a name, such as `example.com/cleanup`");
        }
        if self.finalizer.as_deref().is_some_and(|finalizer| is_of_host(finalizer, &self.name)) {
            return invalid(
                "finalizer",
                "the domains `pilothouse.dev` and `host.pilothouse.dev` are the host's own, which takes such finalizers off by itself; use a \
                 domain of yours, or none: then it is `pilothouse.dev/` and the name of the plugin",
            );
        }
        let no_pointer = |pointer: &String| !is_json_pointer(pointer);
        if self.managed_by.as_ref().is_some_and(no_pointer) {
            return invalid("managedBy", "it must be a JSON pointer, such as `/spec/managedBy`");
        }
        if !self.managers.is_empty() && self.managed_by.is_none() {
            return invalid("managers", "there are some without `managedBy`, the field in which they are");
        }
        // The host's own names tell its plugins apart.
        let is_wrong = |manager: &&String| !is_qualified_name(manager) || manager.starts_with("pilothouse.dev/");
        if let Some(manager) = self.managers.iter().find(is_wrong) {
            return invalid(
                "managers",
                &format!("`{manager}` is no domain, slash and name of another manager, such as `example.com/operator`"),
            );
        }
        if self.expires.as_ref().is_some_and(no_pointer) {
            return invalid("expires", "it must be a JSON pointer, such as `/status/expirationTime`");
        }
        if self.expires_after.as_ref().is_some_and(|pointer| no_pointer(pointer) || self.expires.is_none()) {
            return invalid(
                "expiresAfter",
                "it must be a JSON pointer, such as `/spec/ttlSecondsAfterFinished`, beside `expires`",
            );
        }
        if let Some(pointer) = self.reads.iter().flatten().find(|pointer| no_pointer(pointer)) {
            return invalid("reads", &format!("`{pointer}` is not a JSON pointer, such as `/spec`"));
        }
        if let Some(pointer) =
            self.child_reads.iter().flat_map(|reads| &reads.fields).find(|pointer| no_pointer(pointer))
        {
            return invalid("childReads", &format!("`{pointer}` is not a JSON pointer, such as `/status`"));
        }
        if let Some(reads) = self.child_reads.iter().find(|reads| !self.children.contains(&reads.kind)) {
            return invalid("childReads", &format!("`{}` is not one of `children`", reads.kind));
        }
        if let Some(of_kind) = self.child_readiness.iter().find(|of_kind| !self.children.contains(&of_kind.kind)) {
            return invalid("childReadiness", &format!("`{}` is not one of `children`", of_kind.kind));
        }
        if let Some(fault) = self.child_readiness.iter().find_map(ChildReadiness::fault) {
            return invalid("childReadiness", &fault);
        }
        let child_readiness: Vec<_> = self.child_readiness.iter().map(|of_kind| of_kind.kind.clone()).collect();
        let child_reads: Vec<_> = self.child_reads.iter().map(|reads| reads.kind.clone()).collect();
        let lookups: Vec<_> = self.lookups.iter().map(|lookup| lookup.kind.clone()).collect();
        for (field, kinds) in [
            ("reconciles", std::slice::from_ref(&self.reconciles)),
            ("children", &self.children),
            ("lookups", &lookups),
            ("childReads", &child_reads),
            ("childReadiness", &child_readiness),
        ] {
            if let Some(kind) = kinds.iter().find(|kind| !kind.is_well_formed()) {
                return invalid(field, &format!("`{kind}` is not a group/version and a kind"));
            }
            if kinds.len() > MOST_KINDS {
                return invalid(field, &format!("it has {} kinds, which is more than {MOST_KINDS}", kinds.len()));
            }
            if kinds.iter().collect::<BTreeSet<_>>().len() != kinds.len() {
                return invalid(field, "a kind is named twice");
            }
        }
        if self.children.contains(&self.reconciles) {
            return invalid("children", "a plugin cannot have children of the kind that it reconciles");
        }
        if self.measurements.len() > MOST_METRICS {
            let metrics = self.measurements.len();
            return invalid("measurements", &format!("it has {metrics} metrics, which is more than {MOST_METRICS}"));
        }
        if self.calls_per_instance.is_some_and(|calls| !(1..=MOST_CALLS_PER_INSTANCE).contains(&calls)) {
            return invalid("callsPerInstance", &format!("it must be 1 to {MOST_CALLS_PER_INSTANCE}"));
        }
        if let Some(fault) = self.measurements.iter().find_map(Measurement::fault) {
            return invalid("measurements", &fault);
        }
        if let Some(fault) = self.lookups.iter().find_map(Lookup::fault) {
            return invalid("lookups", &fault);
        }
        if let Some(fault) = self.config_schema.as_ref().and_then(ConfigSchema::fault) {
            return invalid("configSchema", &fault);
        }
        // An object is one in all versions of its kind: two plugins, or one, that own it in two versions undo each other's work.
        let owned = || self.children.iter().chain([&self.reconciles]);
        let in_other_version = |kind: &KindRef| owned().find(|other| *other != kind && other.is_same_kind(kind));
        if let Some((kind, other)) = self.children.iter().find_map(|kind| Some((kind, in_other_version(kind)?))) {
            return invalid(
                "children",
                &format!("`{kind}` and `{other}` are one kind in two versions; name one of them"),
            );
        }
        if self.measurements.iter().map(|one| one.name.trim_end_matches("_total")).collect::<BTreeSet<_>>().len()
            != self.measurements.len()
        {
            return invalid("measurements", "two have the same name, or names that differ only in _total");
        }
        Ok(())
    }
}

pub(crate) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text is the JSON pointer (RFC 6901) of a field: `~` is followed by 0 or 1. The whole document is no field.
pub fn is_json_pointer(text: &str) -> bool {
    let is_escape = |rest: &str| rest.starts_with(['0', '1']);
    text.len() > 1 && text.starts_with('/') && text.split('~').skip(1).all(is_escape)
}

/// Whether a finalizer is one that only the host gives: one of its own, or that of another plugin. The one that a plugin has without naming
/// any is its own.
fn is_of_host(finalizer: &str, plugin: &str) -> bool {
    match finalizer.split_once('/') {
        Some(("pilothouse.dev", name)) => name != plugin,
        Some((domain, _)) => domain == "host.pilothouse.dev",
        None => false,
    }
}

/// Whether a text is a domain, a slash and a name, as the API server wants finalizers to be.
fn is_qualified_name(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else { return false };
    let plain = |text: &str, more: &[u8]| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
    };
    let is_label = |label: &str| plain(label, b"-") && !label.bytes().any(|b| b.is_ascii_uppercase());
    domain.len() <= 253 && domain.split('.').all(is_label) && name.len() <= 63 && plain(name, b"-_.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let children = vec![KindRef::new("v1", "Service")];
        Manifest { children, ..Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web")) }
    }

    fn service_reads(fields: &[&str]) -> ChildReads {
        let fields = fields.iter().copied().map(str::to_owned).collect();
        ChildReads { kind: KindRef::new("v1", "Service"), fields }
    }

    fn gauge(name: &str) -> Measurement {
        let kind = crate::MeasurementKind::Gauge;
        Measurement { name: name.into(), kind, help: "Jobs.".into(), labels: Vec::new(), buckets: Vec::new() }
    }

    #[test]
    fn refuses_values_that_name_no_plugin_or_kind() {
        type Change = fn(&mut Manifest);
        let changes: [(&str, Change); 36] = [
            ("name", |m| m.name = "Web".into()),
            ("name", |m| m.name = String::new()),
            ("name", |m| m.name = "a".repeat(64)),
            ("version", |m| m.version.clear()),
            ("version", |m| m.version = "1.0\u{202e}".to_owned()),
            ("version", |m| m.version = "1.0\n".to_owned()),
            ("version", |m| m.version = "1".repeat(64)),
            ("reconciles", |m| m.reconciles.kind.clear()),
            ("reconciles", |m| m.reconciles.kind = "web".into()),
            ("children", |m| m.children[0].api_version = "a/b/c".into()),
            ("children", |m| m.children = vec![m.reconciles.clone()]),
            ("children", |m| {
                m.children = (0..101).map(|number| KindRef::new("v1", format!("Kind{number}"))).collect();
            }),
            ("measurements", |m| {
                m.measurements = (0..101).map(|number| gauge(&format!("jobs_{number}"))).collect();
            }),
            ("finalizer", |m| m.finalizer = Some("cleanup".into())),
            ("finalizer", |m| m.finalizer = Some("Example.com/cleanup".into())),
            ("finalizer", |m| m.finalizer = Some("example.com/clean up".into())),
            ("finalizer", |m| m.finalizer = Some("host.pilothouse.dev/ordered-deletion".into())),
            ("finalizer", |m| m.finalizer = Some("pilothouse.dev/other".into())),
            ("managedBy", |m| m.managed_by = Some("spec.managedBy".into())),
            ("managedBy", |m| m.managed_by = Some("/".into())),
            ("managers", |m| m.managers = vec!["example.com/operator".into()]),
            ("managers", |m| (m.managed_by, m.managers) = (Some("/spec/by".into()), vec!["operator".into()])),
            ("managers", |m| {
                (m.managed_by, m.managers) = (Some("/spec/by".into()), vec!["pilothouse.dev/other".into()]);
            }),
            ("expires", |m| m.expires = Some("status".into())),
            ("expiresAfter", |m| m.expires_after = Some("/spec/seconds".into())),
            ("expiresAfter", |m| {
                (m.expires, m.expires_after) = (Some("/status/end".into()), Some("spec.seconds".into()));
            }),
            ("reads", |m| m.reads = Some(vec!["/spec".into(), "status".into()])),
            ("childReads", |m| m.child_reads = vec![service_reads(&["/status", "spec"])]),
            ("childReads", |m| m.child_reads = vec![service_reads(&[]), service_reads(&["/status"])]),
            ("childReads", |m| (m.children, m.child_reads) = (Vec::new(), vec![service_reads(&[])])),
            ("measurements", |m| m.measurements = vec![gauge("jobs_total")]),
            ("measurements", |m| m.measurements = vec![gauge("jobs"), gauge("jobs")]),
            ("lookups", |m| {
                let kind = KindRef::new("v1", "Secret");
                m.lookups = vec![Lookup { label_selector: "app in (a".into(), ..kind.into() }];
            }),
            ("lookups", |m| m.lookups = vec![m.reconciles.clone().into(), m.reconciles.clone().into()]),
            ("callsPerInstance", |m| m.calls_per_instance = Some(0)),
            ("callsPerInstance", |m| m.calls_per_instance = Some(10_001)),
        ];
        for (expected, change) in changes {
            let mut changed = manifest();
            change(&mut changed);
            assert!(
                matches!(changed.validate(), Err(ManifestError::Invalid { field, .. }) if field == expected),
                "{changed:?}"
            );
        }
        let named = Manifest { finalizer: Some("jobs.example.com/finalizer".into()), ..manifest() };
        let by_default = Manifest { finalizer: Some("pilothouse.dev/web".into()), ..manifest() };
        assert!(by_default.validate().is_ok());
        let reading = Manifest { child_reads: vec![service_reads(&["/status"])], ..manifest() };
        let warm = Manifest { calls_per_instance: Some(10_000), ..manifest() };
        assert!(warm.validate().is_ok());
        assert!(manifest().validate().is_ok() && named.validate().is_ok() && reading.validate().is_ok());
    }

    #[test]
    fn says_why_bytes_are_not_a_plugin() {
        let module = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
        let component = [0x00, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0];
        assert!(matches!(Manifest::read(b"#!/bin/sh"), Err(ManifestError::NotWasm(_))));
        assert!(matches!(Manifest::read(b""), Err(ManifestError::NotWasm(_))));
        assert!(matches!(Manifest::read(&module), Err(ManifestError::NotComponent)));
        assert!(matches!(Manifest::read(&component), Err(ManifestError::Missing)));
    }
}
