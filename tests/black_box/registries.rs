//! Plugins from OCI registries: pushed by the command, pulled by the host from a real registry, signed or not.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_tests::{
    artifacts,
    cluster::condition,
    registry::{Registry, USER},
};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::{
    command::{Ended, pilothouse, repacked},
    plugin_objects::{
        degraded, next, plugin, plugin_object, resume, scripted_version, sha256, stalled, start, store, text, works,
    },
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plugin_from_a_registry_goes_to_work,
        a_tag_that_moves_leads_to_its_new_version,
        a_tag_that_moves_leads_nowhere_where_a_digest_is_named,
        a_tag_is_looked_up_again_after_what_it_stood_for_did_not_load,
        what_is_demanded_later_counts_for_what_a_tag_stands_for_already,
        a_registry_with_users_is_asked_with_the_pull_secret,
        what_a_registry_does_not_give_is_reported_in_words_that_help,
        a_registry_that_hangs_delays_nobody_else,
        what_is_still_being_looked_at_is_not_observed,
        what_asks_for_nothing_else_is_observed_at_once,
        a_host_starts_without_the_sources_of_what_is_named_by_its_digest,
        of_two_plugins_for_one_kind_the_older_is_at_work,
        an_older_decorator_whose_source_hangs_keeps_no_owner_from_work,
        only_what_a_named_key_has_signed_is_loaded,
        a_plugin_is_pushed_by_a_command,
        a_plugin_in_a_registry_is_inspected_as_its_file_is,
    );
}

async fn a_plugin_from_a_registry_goes_to_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:1").await?;
    env.namespace.apply(plugin_object("web", source(&registry, "web:1"))).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["digest"] == sha256(&plugin()?), "{}", object["status"]);
    works(env, "shop").await
}

async fn a_tag_that_moves_leads_to_its_new_version(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:latest").await?;
    env.namespace.apply(plugin_object("web", source(&registry, "web:latest"))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;
    push(&registry, &artifacts::guest("app-service-next")?, "web:latest").await?;
    let shows = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the new version", shows).await?;
    let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
    env.namespace.until("Deployment", "shop", "to have the marks of the new version", is_next).await.map(drop)
}

async fn a_tag_that_moves_leads_nowhere_where_a_digest_is_named(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:latest").await?;
    let mut spec = source(&registry, "web:latest");
    spec["digest"] = sha256(&plugin()?).into();
    env.namespace.apply(plugin_object("web", spec)).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    push(&registry, &artifacts::guest("app-service-next")?, "web:latest").await?;
    let object = degraded(env, "DigestMismatch").await?;
    ensure!(object["status"]["version"] == "0.1.0", "the other one is at work: {object}");
    works(env, "shop").await
}

async fn a_tag_is_looked_up_again_after_what_it_stood_for_did_not_load(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    let other = artifacts::plugin("app-service")?;
    let not_granted = repacked(&other, |manifest| {
        manifest["reconciles"] = json!({"apiVersion": "v1", "kind": "Secret"});
    })
    .await?;
    push(&registry, not_granted.path(), "web:latest").await?;
    env.namespace.apply(plugin_object("web", source(&registry, "web:latest"))).await?;
    stalled(env, "NotGranted").await?;
    push(&registry, &other, "web:latest").await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

async fn what_is_demanded_later_counts_for_what_a_tag_stands_for_already(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:latest").await?;
    env.namespace.apply(plugin_object("web", source(&registry, "web:latest"))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let demand = async |field: &str, value: Value| {
        let mut spec = source(&registry, "web:latest");
        spec[field] = value;
        env.namespace.apply(plugin_object("web", spec)).await
    };
    demand("verification", json!({"keys": [KeyPair::generate()?.public_key_pem()]})).await?;
    reported(env, "NotVerified", "it has no signature").await?;
    demand("digest", sha256(b"other").into()).await?;
    stalled(env, "DigestMismatch").await?;
    demand("digest", sha256(&plugin()?).into()).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

async fn a_registry_with_users_is_asked_with_the_pull_secret(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(true).await?;
    let config = docker_config(&registry, USER);
    let pushed = push_with(&registry, &artifacts::plugin("app-service")?, "web:1", None).await?;
    pushed.failed_with(&["failed to push", "credentials"])?;
    push_with(&registry, &artifacts::plugin("app-service")?, "web:1", Some(&config)).await?.succeeded()?;

    env.namespace.apply(plugin_object("web", source(&registry, "web:1"))).await?;
    reported(env, "RegistryUnauthorized", "credentials").await?;
    let mut spec = source(&registry, "web:1");
    spec["source"]["oci"]["pullSecretName"] = "pilothouse-registry".into();
    env.namespace.apply(plugin_object("web", spec)).await?;
    reported(env, "SecretMissing", "pilothouse-registry").await?;
    secret(env, &docker_config(&registry, (USER.0, "wrong"))).await?;
    reported(env, "RegistryUnauthorized", "credentials").await?;
    secret(env, &config).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    ensure!(!object.to_string().contains(USER.1), "the password is in the object");
    ensure!(!env.host.log().contains(USER.1), "the password is in the log");
    Ok(())
}

async fn what_a_registry_does_not_give_is_reported_in_words_that_help(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:1").await?;
    let nobody = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    for (image, reason, words) in [
        (registry.image("web:2"), "ImageMissing", "has nothing under that name"),
        (registry.image("other:1"), "ImageMissing", "has nothing under that name"),
        (registry.image(&format!("web@{}", sha256(b"other"))), "ImageMissing", "has nothing under that name"),
        (format!("{nobody}/web:1"), "RegistryUnavailable", "refused"),
        ("https://example.com/web:1".to_owned(), "ImageInvalid", "registry.example.com/team/plugin:1.2"),
    ] {
        let oci = json!({"image": image, "plainHttp": true, "pollSeconds": 1});
        env.namespace.apply(plugin_object("web", json!({"source": {"oci": oci}}))).await?;
        reported(env, reason, words).await.with_context(|| image)?;
    }
    let both = json!({"source": {"oci": {"image": "a/b:1"}, "configMap": {"name": "web"}}});
    let refused = env.namespace.apply(plugin_object("web", both)).await.err().context("two sources are accepted")?;
    ensure!(refused.to_string().contains("name one source"), "it does not say why: {refused}");
    Ok(())
}

/// The first plugin's registry takes connections and never answers. The second one comes to work, and the host is ready.
async fn a_registry_that_hangs_delays_nobody_else(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let hanging = TcpListener::bind("127.0.0.1:0").await?;
    let oci = json!({"image": format!("{}/web:1", hanging.local_addr()?), "plainHttp": true});
    env.namespace.apply(plugin_object("hanging", json!({"source": {"oci": oci}}))).await?;
    let (mut asked, _) = hanging.accept().await?;
    asked.read_u8().await.context("nothing is asked")?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;
    let late = |object: &Value| condition(object, "Loaded")["reason"] == "RegistryUnavailable";
    let object = env.namespace.until("Plugin", "hanging", "to tell that its registry hangs", late).await?;
    let message = text(&condition(&object, "Loaded")["message"]);
    ensure!(message.contains("did not finish within") || message.contains("timed out"), "{message}");
    Ok(())
}

/// A status about a generation that nobody has looked at yet would have `install` say that a version is at work which is not.
async fn what_is_still_being_looked_at_is_not_observed(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    works(env, "shop").await?;
    let hanging = TcpListener::bind("127.0.0.1:0").await?;
    let oci = json!({"image": format!("{}/web:1", hanging.local_addr()?), "plainHttp": true});
    env.namespace.patch("Plugin", "web", json!({"spec": {"source": {"configMap": null, "oci": oci}}})).await?;
    let (mut asked, _) = hanging.accept().await?;
    asked.read_u8().await.context("nothing is asked")?;
    // Something else to tell of.
    works(env, "second").await?;
    let told = |object: &Value| object["status"]["objects"]["total"] == 2;
    let object = env.namespace.until("Plugin", "web", "to tell of the second object", told).await?;
    ensure!(object["metadata"]["generation"] == 2, "{object}");
    ensure!(object["status"]["observedGeneration"] == 1, "{}", object["status"]);
    ensure!(condition(&object, "Ready")["observedGeneration"] == 1, "{}", object["status"]);
    Ok(())
}

/// Nothing is looked at anew, and who waits for the generation, as `install` does, is not left to wait.
async fn what_asks_for_nothing_else_is_observed_at_once(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let changed = env.namespace.patch("Plugin", "web", json!({"spec": {"suspended": false}})).await?;
    ensure!(changed["metadata"]["generation"] == 2, "{changed}");
    let is_observed = |object: &Value| {
        object["status"]["observedGeneration"] == 2 && condition(object, "Ready")["observedGeneration"] == 2
    };
    env.namespace.until("Plugin", "web", "to be observed", is_observed).await.map(drop)
}

async fn a_host_starts_without_the_sources_of_what_is_named_by_its_digest(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let mut registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:1").await?;
    let mut spec = source(&registry, "web:1");
    spec["digest"] = sha256(&plugin()?).into();
    env.namespace.apply(plugin_object("web", spec)).await?;
    let guest = std::fs::read(artifacts::guest("misbehaver")?)?;
    store(env, "other", &[&guest]).await?;
    let other = json!({"source": {"configMap": {"name": "other"}}, "digest": sha256(&guest)});
    env.namespace.apply(plugin_object("other", other)).await?;
    for name in ["web", "other"] {
        env.namespace.until("Plugin", name, "to be ready", is_ready).await?;
    }
    env.host.kill().await?;
    registry.stop().await?;
    env.namespace.delete("ConfigMap", "other").await?;
    resume(env).await?;
    env.host.ready().await?;
    works(env, "shop").await?;
    env.namespace.apply(crate::test_env::misbehaver("object", "config")).await?;
    env.namespace.until("ConfigMap", "object", "to be there", |_| true).await?;
    // What is asked for is at work; that its source is away is told all the same.
    for (name, reason) in [("web", "RegistryUnavailable"), ("other", "ConfigMapMissing")] {
        let is_degraded = |object: &Value| condition(object, "Degraded")["reason"] == reason && is_ready(object);
        env.namespace.until("Plugin", name, "to be degraded", is_degraded).await?;
    }
    registry.resume().await?;
    store(env, "other", &[&guest]).await?;
    let is_well = |object: &Value| condition(object, "Degraded").is_null() && is_ready(object);
    for name in ["web", "other"] {
        env.namespace.until("Plugin", name, "to have its source again", is_well).await?;
    }
    Ok(())
}

/// The younger one comes to work while the older one's source is missing, and makes room for it once it is there. A host that starts
/// anew has the older one from the beginning.
async fn of_two_plugins_for_one_kind_the_older_is_at_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let from = |name: &str| json!({"source": {"configMap": {"name": name}}});
    env.namespace.apply(plugin_object("web", from("web"))).await?;
    stalled(env, "ConfigMapMissing").await?;
    store(env, "younger", &[&next()?]).await?;
    // Creation times have whole seconds; names decide then.
    env.namespace.apply(plugin_object("younger", from("younger"))).await?;
    env.namespace.until("Plugin", "younger", "to be ready", is_ready).await?;
    store(env, "web", &[&plugin()?]).await?;
    let taken = |object: &Value| ["NameTaken", "KindTaken"].contains(&text(&condition(object, "Stalled")["reason"]));
    for _ in 0..2 {
        env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
        env.namespace.until("Plugin", "younger", "to have made room", taken).await?;
        works(env, "shop").await?;
        let is_older = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"].is_null();
        env.namespace.until("Deployment", "shop", "to be the older one's", is_older).await?;
        env.host.kill().await?;
        resume(env).await?;
    }
    ensure!(!env.host.log().contains("0.2.0"), "the younger one was at work after the restart");
    Ok(())
}

/// A host that starts waits for an older owner of a kind, and an owner for no decorator: both may work.
async fn an_older_decorator_whose_source_hangs_keeps_no_owner_from_work(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    env.host.ready().await?;
    let decorator = std::fs::read(artifacts::guest("decorator-scripted")?)?;
    // Creation times have whole seconds; names decide then.
    for (name, component) in [("decorator-scripted", decorator), ("scripted", scripted_version("0.1.0").await?)] {
        store(env, name, &[&component]).await?;
        env.namespace.apply(plugin_object(name, json!({"source": {"configMap": {"name": name}}}))).await?;
        env.namespace.until("Plugin", name, "to be ready", is_ready).await?;
    }
    env.host.stop().await?;
    let hanging = TcpListener::bind("127.0.0.1:0").await?;
    let oci = json!({"image": format!("{}/web:1", hanging.local_addr()?), "plainHttp": true});
    env.namespace.apply(plugin_object("decorator-scripted", json!({"source": {"oci": oci}}))).await?;
    resume(env).await?;
    env.namespace.apply(scripted("shop", returning([config_map("shop", json!({"a": "b"}))]))).await?;
    env.namespace.until("ConfigMap", "shop", "to be there", |_| true).await?;
    ensure!(!env.host.log().contains("is reconciled by plugin"), "it has waited for the decorator");
    Ok(())
}

async fn only_what_a_named_key_has_signed_is_loaded(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let (ours, theirs) = (KeyPair::generate()?, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?);
    let bytes = plugin()?;
    let spec = |key: &KeyPair| {
        let verification = json!({"keys": [key.public_key_pem()], "transparencyLog": "Ignore"});
        json!({"source": {"configMap": {"name": "web"}}, "verification": verification})
    };
    env.namespace.apply(plugin_object("web", spec(&ours))).await?;
    store(env, "web", &[&bytes]).await?;
    reported(env, "NotVerified", "it has no signature").await?;
    for (signature, words) in [
        (json!("not a bundle"), "cannot be read"),
        (bundle(&theirs, &bytes)?, "erification"),
        (bundle(&ours, b"another component")?, "erification"),
    ] {
        sign(env, &signature).await?;
        reported(env, "NotVerified", words).await?;
    }
    sign(env, &bundle(&ours, &bytes)?).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await?;

    // Who may write the ConfigMap cannot bring in another one.
    store(env, "web", &[&next()?]).await?;
    reported(env, "NotVerified", "erification").await?;
    let object = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
    ensure!(object["status"]["version"] == "0.1.0", "the other one is at work: {object}");

    // A signature that no log knows does not count where one must.
    store(env, "web", &[&bytes]).await?;
    sign(env, &bundle(&ours, &bytes)?).await?;
    let mut strict = spec(&ours);
    strict["verification"]["transparencyLog"] = "Require".into();
    env.namespace.apply(plugin_object("web", strict)).await?;
    reported(env, "NotVerified", "inclusion proof").await.map(drop)
}

async fn a_plugin_is_pushed_by_a_command(_: &mut TestEnv) -> Result<()> {
    let registry = Registry::start(false).await?;
    let plugin = artifacts::plugin("app-service")?;
    let first = push(&registry, &plugin, "web:1").await?;
    let again = push(&registry, &plugin, "team/web:2").await?;
    let digest = |name: &str| name.trim().rsplit_once('@').map(|(_, digest)| digest.to_owned());
    ensure!(digest(&first).is_some() && digest(&first) == digest(&again), "{first} is not {again}");
    let no_plugin = tempfile::NamedTempFile::new()?;
    std::fs::write(no_plugin.path(), "text")?;
    push_with(&registry, no_plugin.path(), "web:3", None).await?.failed_with(&["not a whole WebAssembly file"])?;
    let nobody = ["push", &*plugin.to_string_lossy(), "127.0.0.1:1/web:1", "--plain-http"];
    pilothouse(nobody).await?.failed_with(&["failed to push to '127.0.0.1:1/web:1'", "refused"])
}

async fn a_plugin_in_a_registry_is_inspected_as_its_file_is(_: &mut TestEnv) -> Result<()> {
    let registry = Registry::start(false).await?;
    let plugin = artifacts::plugin("app-service")?;
    let pinned = push(&registry, &plugin, "web:1").await?;
    let inspect = async |what: &str| -> Result<Value> {
        let printed = pilothouse(["inspect", what, "-o", "json", "--plain-http"]).await?.succeeded()?;
        serde_json::from_str(&printed).with_context(|| printed.clone())
    };
    let file = inspect(&plugin.to_string_lossy()).await?;
    ensure!(file["digest"] == sha256(&std::fs::read(&plugin)?) && file["image"] == Value::Null, "{file}");
    ensure!(file["manifest"]["name"] == "app-service" && file["exports"] != json!([]), "{file}");
    for image in [registry.image("web:1"), pinned.trim().to_owned()] {
        let mut pulled = inspect(&image).await?;
        let name = pulled["image"].take();
        ensure!(text(&name).ends_with(pinned.trim().rsplit('@').next().unwrap_or_default()), "{name} is not {pinned}");
        ensure!(pulled == file, "{pulled} is not {file}");
    }
    let printed = pilothouse(["inspect", &registry.image("web:1"), "--plain-http"]).await?.succeeded()?;
    ensure!(printed.contains("\n# imports pilothouse:plugin/"), "{printed}");
    let missing = pilothouse(["inspect", &registry.image("web:2"), "--plain-http"]).await?;
    missing.failed_with(&["failed to pull", "web:2"])
}

/// Waits until the `Plugin` web says that its source is not loaded for this reason.
pub async fn reported(env: &TestEnv, reason: &str, words: &str) -> Result<Value> {
    let is_reported = |object: &Value| {
        let loaded = condition(object, "Loaded");
        loaded["reason"] == reason && text(&loaded["message"]).contains(words)
    };
    env.namespace.until("Plugin", "web", &format!("to say {reason}, {words}"), is_reported).await
}

/// A `Plugin` with this image as its source, whose tag is looked up each second.
pub fn source(registry: &Registry, image: &str) -> Value {
    json!({"source": {"oci": {"image": registry.image(image), "plainHttp": true, "pollSeconds": 1}}})
}

/// Pushes a plugin, and returns its name with its digest.
pub async fn push(registry: &Registry, plugin: &Path, image: &str) -> Result<String> {
    push_with(registry, plugin, image, None).await?.succeeded()
}

async fn push_with(registry: &Registry, plugin: &Path, image: &str, config: Option<&Value>) -> Result<Ended> {
    let folder = tempfile::tempdir()?;
    let file: PathBuf = folder.path().join("config.json");
    std::fs::write(&file, config.unwrap_or(&json!({})).to_string())?;
    let (plugin, file, image) = (plugin.to_string_lossy(), file.to_string_lossy(), registry.image(image));
    pilothouse(["push", &*plugin, &*image, "--plain-http", "--docker-config", &*file]).await
}

fn docker_config(registry: &Registry, (user, password): (&str, &str)) -> Value {
    let auth = BASE64_STANDARD.encode(format!("{user}:{password}"));
    json!({"auths": {registry.address.clone(): {"auth": auth}}})
}

async fn secret(env: &TestEnv, config: &Value) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pilothouse-registry"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config.to_string()},
    });
    env.namespace.apply(secret).await.map(drop)
}

/// Puts a signature beside the component in the ConfigMap web.
async fn sign(env: &TestEnv, bundle: &Value) -> Result<()> {
    let data = json!({"web.wasm.sigstore.json": bundle.to_string()});
    env.namespace.patch("ConfigMap", "web", json!({"data": data})).await.map(drop)
}

/// What `cosign sign-blob --key --bundle` writes where no log is told.
pub fn bundle(key: &KeyPair, bytes: &[u8]) -> Result<Value> {
    let encode = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    Ok(json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": "tests"}, "tlogEntries": []},
        "messageSignature": {
            "messageDigest": {"algorithm": "SHA2_256", "digest": encode(&Sha256::digest(bytes))},
            "signature": encode(&key.sign(bytes)?),
        },
    }))
}
