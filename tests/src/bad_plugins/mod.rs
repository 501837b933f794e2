//! Plugins that are bad in many ways, in ConfigMaps and in a registry, and what is said of each. Delivers nothing by itself.

pub mod components;
mod registry;

use anyhow::Result;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::registry::BadRegistry;
use crate::{gzip::gzipped, registry::digest};

/// All of them, with the servers that they come from.
pub struct BadPlugins {
    /// Each.
    pub all: Vec<Bad>,
    _registry: BadRegistry,
    /// Takes connections, and never answers.
    _hanging: TcpListener,
}

impl BadPlugins {
    /// Makes them of a good one.
    ///
    /// # Errors
    /// If that is none, or there is no port to listen on.
    pub async fn of(good: &[u8]) -> Result<Self> {
        let registry = BadRegistry::start().await?;
        let (hanging, nobody) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
        let nobody = nobody.local_addr()?;
        let all = in_config_maps(good)?
            .into_iter()
            .chain(in_registries(&registry))
            .chain([
                Bad::pulled("hangs", format!("{}/web:1", hanging.local_addr()?), ("RegistryUnavailable", "")),
                Bad::pulled("refuses", format!("{nobody}/web:1"), ("RegistryUnavailable", "")),
            ])
            .collect();
        Ok(Self { all, _registry: registry, _hanging: hanging })
    }
}

/// A `Plugin` that cannot load.
pub struct Bad {
    /// The name of the `Plugin`, and of its ConfigMap.
    pub name: String,
    /// What is in its ConfigMap: each key.
    pub keys: Option<Vec<Vec<u8>>>,
    /// The spec of its `Plugin`.
    pub spec: Value,
    /// Why it is not loaded.
    pub reason: &'static str,
    /// What its message says, among other things.
    pub words: &'static str,
}

impl Bad {
    /// A component in a ConfigMap.
    fn stored(name: &str, component: Vec<u8>, (reason, words): (&'static str, &'static str)) -> Self {
        let source = json!({"source": {"configMap": {"name": name}}});
        Self { name: name.to_owned(), keys: Some(vec![component]), spec: source, reason, words }
    }

    /// The same with more in the spec of its `Plugin`.
    fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    fn with_keys(mut self, keys: Option<Vec<Vec<u8>>>) -> Self {
        self.keys = keys;
        self
    }

    /// An artifact in a registry.
    fn pulled(name: &str, image: String, (reason, words): (&'static str, &'static str)) -> Self {
        let oci = json!({"image": image, "plainHttp": true, "pollSeconds": 1});
        Self { name: name.to_owned(), keys: None, spec: json!({"source": {"oci": oci}}), reason, words }
    }
}

fn in_config_maps(good: &[u8]) -> Result<Vec<Bad>> {
    let no_plugin = |words| ("NoPlugin", words);
    let manifest = components::manifest();
    let changed = |change: fn(&mut Value)| components::with_manifest(good, change);
    let keys = json!([KeyPair::generate()?.public_key_pem()]);
    Ok(vec![
        Bad::stored("empty", Vec::new(), no_plugin("not a whole WebAssembly file")),
        Bad::stored("no-wasm", b"a shell script".to_vec(), no_plugin("not a whole WebAssembly file")),
        Bad::stored("truncated", good[..good.len() / 2].to_vec(), no_plugin("not a whole WebAssembly file")),
        Bad::stored("core-module", components::core_module(), no_plugin("pilothouse pack")),
        Bad::stored("no-manifest", components::bare(), no_plugin("pilothouse pack --manifest")),
        Bad::stored("two-manifests", components::add_manifest(good.to_vec(), &manifest), no_plugin("a plugin has one")),
        Bad::stored("malformed", components::add_section(components::bare(), b"{"), no_plugin("manifest is malformed")),
        Bad::stored(
            "no-reconciler",
            components::add_manifest(components::bare(), &manifest),
            no_plugin("does not export"),
        ),
        Bad::stored("bad-name", changed(|it| it["name"] = "Bad Name".into())?, no_plugin("`name` is not valid")),
        Bad::stored("unknown-field", changed(|it| it["childrens"] = json!([]))?, no_plugin("correct their names")),
        Bad::stored("other-contract", components::of_contract(good, "0.3.0")?, no_plugin("rebuild the plugin")),
        Bad::stored("invalid-code", components::with_invalid_code(good)?, ("NotCompiled", "does not compile")),
        Bad::stored("unknown-import", components::with_import(good, "teleport"), ("ContractViolated", "does not fit")),
        Bad::stored(
            "newer-wasi",
            components::with_import(good, "wasi:cli/environment@0.3.0"),
            no_plugin("build it for the target wasm32-wasip2"),
        ),
        Bad::stored("loops", components::that_loops_at_its_start(good)?, ("StartFailed", "may loop")),
        Bad::stored("traps", components::that_traps_at_its_start(good)?, ("StartFailed", "unreachable")),
        Bad::stored("needs-more", good.to_vec(), ("StartFailed", "more than 1 MiB"))
            .with("limits", json!({"memoryMebibytes": 1})),
        Bad::stored("takes-kind", changed(|it| it["name"] = "other".into())?, ("KindTaken", "remove one")),
        Bad::stored(
            "takes-kind-in-another-version",
            changed(|it| {
                it["name"] = "another".into();
                it["reconciles"]["apiVersion"] = "apps.example.com/v2".into();
            })?,
            ("KindTaken", "remove one"),
        ),
        Bad::stored(
            "takes-name",
            changed(|it| it["reconciles"]["kind"] = "Other".into())?,
            ("NameTaken", "remove one"),
        ),
        Bad::stored(
            "wants-roles",
            changed(|it| {
                let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"});
                it["children"].as_array_mut().into_iter().for_each(|children| children.push(role.clone()));
            })?,
            ("NotGranted", "ClusterRole"),
        ),
        Bad::stored(
            "wants-secrets",
            changed(|it| {
                it["lookups"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
            })?,
            ("NotGranted", "Secret"),
        ),
        Bad::stored(
            "wants-core-kind",
            changed(|it| {
                it["reconciles"] = json!({"apiVersion": "v1", "kind": "Secret"});
            })?,
            ("NotGranted", "Secret"),
        ),
        Bad::stored("wants-more", good.to_vec(), ("NotGranted", "Deployment")).with("grants", json!({"children": []})),
        Bad::stored("another-digest", good.to_vec(), ("DigestMismatch", "spec.digest"))
            .with("digest", digest(b"other").into()),
        Bad::stored("not-signed", good.to_vec(), ("NotVerified", "no signature"))
            .with("verification", json!({"keys": keys})),
        Bad::stored("no-key", good.to_vec(), ("VerificationInvalid", "spec.verification"))
            .with("verification", json!({"keys": ["no key"]})),
        Bad::stored("bomb", gzipped(&vec![0; 100 << 20])?, ("TooLarge", "64 MiB")),
        Bad::stored("bomb-in-a-bomb", gzipped(&gzipped(&vec![0; 100 << 20])?)?, no_plugin("not a whole")),
        Bad::stored("cut-archive", gzipped(good)?[..1000].to_vec(), ("PackingDamaged", "failed to unpack")),
        Bad::stored("no-archive", vec![0x28, 0xb5, 0x2f, 0xfd], ("PackingDamaged", "failed to unpack")),
        Bad::stored("absent", Vec::new(), ("ConfigMapMissing", "does not exist")).with_keys(None),
        Bad::stored("no-keys", Vec::new(), ("KeyMissing", "put one component into it")).with_keys(Some(Vec::new())),
        Bad::stored("two-keys", Vec::new(), ("KeyMissing", "spec.source.configMap.key"))
            .with_keys(Some(vec![good.to_vec(), good.to_vec()])),
        Bad::stored("another-key", good.to_vec(), ("KeyMissing", "no key 'other'"))
            .with("source", json!({"configMap": {"name": "another-key", "key": "other"}})),
        Bad::stored("half", good.to_vec(), ("ConfigMapMissing", "half-0"))
            .with("source", json!({"configMap": {"name": "half", "pieces": 2}}))
            .with("digest", digest(good).into()),
    ])
}

fn in_registries(registry: &BadRegistry) -> Vec<Bad> {
    [
        ("absent", "ImageMissing", "nothing under that name"),
        ("no-entry", "RegistryUnauthorized", "credentials"),
        ("broken", "RegistryUnavailable", ""),
        ("no-json", "RegistryUnavailable", "what no registry answers"),
        ("endless", "RegistryUnavailable", "more than 4 MiB"),
        ("endless-error", "RegistryUnavailable", "code: 500"),
        ("endless-token", "RegistryUnavailable", "tokens answers without end"),
        ("index", "NoPlugin", "an index of images"),
        ("container", "NoPlugin", "its layers are"),
        ("text", "NoPlugin", "not a whole WebAssembly file"),
        ("wants-token", "NoPlugin", "not a whole WebAssembly file"),
        ("moves", "NoPlugin", "not a whole WebAssembly file"),
        ("says-100-mib", "TooLarge", "64 MiB"),
        ("sends-100-mib", "TooLarge", "64 MiB"),
        ("other-bytes", "ImageDamaged", "damaged"),
    ]
    .into_iter()
    .map(|(name, reason, words)| Bad::pulled(&format!("pulled-{name}"), registry.image(name), (reason, words)))
    .collect()
}
