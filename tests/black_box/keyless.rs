//! Signatures without keys: who signs has a certificate of some minutes for who he is, and a log knows when it was. With a Sigstore of
//! one's own, and plugins in ConfigMaps and registries.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_tests::{
    artifacts,
    cluster::condition,
    registry::{Registry, digest},
    sigstore::{Layer, Signing, Sigstore},
};
use serde_json::{Value, json};

use crate::{
    plugin_objects::{degraded, next, plugin, plugin_object, start, text, works},
    registries::{push, reported, source},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

const ISSUER: &str = "https://accounts.example.com";
const MAIL: &str = "release@example.com";
const WORKFLOW: &str = "https://example.com/team/web/release.yaml@refs/tags/v1";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The ConfigMap with what is trusted.
const ROOT: &str = "sigstore";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        what_a_named_identity_has_signed_is_loaded_and_nothing_else,
        identities_are_judged_by_the_trusted_root_that_is_named,
        an_artifact_that_was_signed_without_a_key_is_loaded_from_a_registry,
    );
}

async fn what_a_named_identity_has_signed_is_loaded_and_nothing_else(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let (ours, theirs) = (Sigstore::new()?, Sigstore::new()?);
    let good = ours.signing(ISSUER, MAIL);
    trust(env, &ours.trusted_root()).await?;
    store(env, &plugin()?, &good.blob(&plugin()?)?).await?;
    env.namespace.apply(plugin_object("web", named(from_config_map()))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    let next = next()?;
    let late = Duration::from_secs(1800);
    let mut not_in_a_log = good.blob(&next)?;
    not_in_a_log["verificationMaterial"]["tlogEntries"] = json!([]);
    for (bundle, words) in [
        (Signing { subject: "other@example.com", ..good }.blob(&next)?, "it is of other@example.com (https://acc"),
        (Signing { subject: "release@example.com.example.org", ..good }.blob(&next)?, "who is not named"),
        (Signing { issuer: "https://else.example.com", ..good }.blob(&next)?, "(https://else.example.com), who is"),
        (Signing { authority: &theirs.authority, ..good }.blob(&next)?, "of no authority that the trusted root names"),
        (Signing { log: &theirs.log, ..good }.blob(&next)?, "no log that the trusted root names"),
        (Signing { logged_after: late, ..good }.blob(&next)?, "was not valid when a log was told of it"),
        (theirs.signing(ISSUER, MAIL).blob(&next)?, "trusted root"),
        (good.blob(b"another component")?, "it is about something else"),
        (not_in_a_log, "inclusion proof"),
    ] {
        store(env, &next, &bundle).await?;
        let object = reported(env, "NotVerified", words).await?;
        let degraded = condition(&object, "Degraded");
        ensure!(text(&degraded["message"]).ends_with("version 0.1.0 goes on"), "it does not say so: {degraded}");
        ensure!(object["status"]["version"] == "0.1.0", "it is at work: {object}");
    }
    works(env, "after").await?;
    store(env, &next, &good.blob(&next)?).await?;
    shows_next(env).await
}

/// Whose root is missing or damaged is told, and mended by the ConfigMap alone. What is at work goes on.
async fn identities_are_judged_by_the_trusted_root_that_is_named(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let (ours, theirs) = (Sigstore::new()?, Sigstore::new()?);
    let good = ours.signing(ISSUER, WORKFLOW);
    store(env, &plugin()?, &good.blob(&plugin()?)?).await?;
    env.namespace.apply(plugin_object("web", named(from_config_map()))).await?;
    reported(env, "ConfigMapMissing", "'sigstore' does not exist").await?;
    trust(env, &json!({"tlogs": []})).await?;
    reported(env, "VerificationInvalid", "not a trusted root of Sigstore").await?;
    trust(env, &theirs.trusted_root()).await?;
    reported(env, "NotVerified", "trusted root").await?;
    trust(env, &ours.trusted_root()).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    trust(env, &theirs.trusted_root()).await?;
    let object = degraded(env, "NotVerified").await?;
    ensure!(object["status"]["version"] == "0.1.0", "it does not go on: {object}");
    works(env, "after").await?;

    // Without a root of one's own that of the public Sigstore counts, which knows nothing of this one.
    let of_the_public = json!({"spec": {"verification": {"trustedRootConfigMapName": null}}});
    env.namespace.patch("Plugin", "web", of_the_public).await?;
    reported(env, "NotVerified", "trusted root").await.map(drop)
}

async fn an_artifact_that_was_signed_without_a_key_is_loaded_from_a_registry(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let sigstore = Sigstore::new()?;
    let (good, other) = (sigstore.signing(ISSUER, WORKFLOW), sigstore.signing(ISSUER, "other@example.com"));
    trust(env, &sigstore.trusted_root()).await?;
    let registry = Registry::start(false).await?;
    let first = Artifact::push(&registry, &artifacts::plugin("app-service")?).await?;
    env.namespace.apply(plugin_object("web", named(source(&registry, "web:latest")))).await?;
    reported(env, "NotVerified", "it has no signature").await?;
    let others = other.image(&first.manifest)?;
    first.attach(&[&others]).await?;
    reported(env, "NotVerified", "it is of other@example.com").await?;
    // One that counts is enough.
    first.attach(&[&others, &good.image(&first.manifest)?]).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    let second = Artifact::push(&registry, &artifacts::guest("app-service-next")?).await?;
    reported(env, "NotVerified", "it has no signature").await?;
    for (layer, words) in [
        (other.image_in_form_of_cosign_2(&second.manifest)?, "it is of other@example.com"),
        (good.image_in_form_of_cosign_2(&first.manifest)?, "it is about something else"),
    ] {
        second.attach_layer(&layer).await?;
        let object = reported(env, "NotVerified", words).await?;
        ensure!(object["status"]["version"] == "0.1.0", "it is at work: {object}");
    }
    second.attach_layer(&good.image_in_form_of_cosign_2(&second.manifest)?).await?;
    shows_next(env).await
}

/// An artifact in a registry, and what is put beside it.
struct Artifact<'a> {
    registry: &'a Registry,
    /// The digest of its manifest.
    manifest: String,
}

impl<'a> Artifact<'a> {
    /// Pushes a plugin as web:latest.
    async fn push(registry: &'a Registry, plugin: &std::path::Path) -> Result<Self> {
        let pushed = push(registry, plugin, "web:latest").await?;
        let (_, manifest) = pushed.trim().split_once('@').with_context(|| format!("no digest: {pushed}"))?;
        Ok(Self { registry, manifest: manifest.to_owned() })
    }

    /// As cosign 3 does it: an artifact for each bundle, and a list of them for registries that keep none.
    async fn attach(&self, bundles: &[&Value]) -> Result<()> {
        let mut list = Vec::new();
        for bundle in bundles {
            let bundle = bundle.to_string();
            let manifest = json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": BUNDLE,
                "config": blob("application/vnd.oci.empty.v1+json", b"{}"),
                "layers": [blob(BUNDLE, bundle.as_bytes())],
                "subject": {"mediaType": MANIFEST, "digest": self.manifest, "size": 1},
            });
            let (text, blobs) = (manifest.to_string(), [&b"{}"[..], bundle.as_bytes()]);
            let tag = format!("web:{}", digest(text.as_bytes()).replace("sha256:", "bundle-"));
            self.registry.put(&tag, MANIFEST, &manifest, &blobs).await?;
            let mut entry = blob(MANIFEST, text.as_bytes());
            entry["artifactType"] = BUNDLE.into();
            list.push(entry);
        }
        let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": list});
        self.registry.put(&format!("web:{}", self.manifest.replace(':', "-")), INDEX, &list, &[]).await
    }

    /// As cosign 2 does it: a layer of an artifact under a tag of its own.
    async fn attach_layer(&self, layer: &Layer) -> Result<()> {
        let mut of_payload = blob("application/vnd.dev.cosign.simplesigning.v1+json", &layer.payload);
        of_payload["annotations"] = layer.annotations.clone();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": blob("application/vnd.oci.image.config.v1+json", b"{}"),
            "layers": [of_payload],
        });
        let tag = format!("web:{}.sig", self.manifest.replace(':', "-"));
        self.registry.put(&tag, MANIFEST, &manifest, &[&b"{}"[..], &layer.payload]).await
    }
}

fn blob(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

/// What of this source is signed by one of two identities.
fn named(mut spec: Value) -> Value {
    let identities = json!([
        {"issuer": ISSUER, "subject": r"release@example\.com"},
        {"issuer": ISSUER, "subject": r"https://example\.com/team/web/release\.yaml@refs/tags/.*"},
    ]);
    spec["verification"] = json!({"identities": identities, "trustedRootConfigMapName": ROOT});
    spec
}

fn from_config_map() -> Value {
    json!({"source": {"configMap": {"name": "web"}}})
}

/// Puts a component and its signature into the ConfigMap web.
async fn store(env: &TestEnv, component: &[u8], bundle: &Value) -> Result<()> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"},
        "binaryData": {"web.wasm": BASE64_STANDARD.encode(component)},
        "data": {"web.wasm.sigstore.json": bundle.to_string()},
    });
    env.namespace.apply(map).await.map(drop)
}

async fn trust(env: &TestEnv, root: &Value) -> Result<()> {
    let data = json!({"trusted_root.json": root.to_string()});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ROOT}, "data": data});
    env.namespace.apply(map).await.map(drop)
}

async fn shows_next(env: &TestEnv) -> Result<()> {
    let shows = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the new version", shows).await.map(drop)
}
