//! Plugins as objects of the cluster: `Plugin` objects whose components are in ConfigMaps.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use pilothouse_tests::{
    artifacts,
    bad_plugins::components::of_contract,
    cluster::{PATIENCE, condition},
    gzip::gzipped,
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    canary::{LONG, settled},
    command::{Ended, file, pilothouse, repacked, with_schema},
    plugin_accounts::command,
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// The bytes of one piece, so that `kubectl apply` can carry it in an annotation.
const PIECE: usize = 180 << 10;

/// The objects that another version must reach.
const OBJECTS: usize = 200;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plugin_from_a_config_map_goes_to_work,
        a_plugin_in_compressed_pieces_goes_to_work,
        another_version_in_the_config_map_takes_over,
        another_version_is_written_once_for_every_object,
        a_broken_version_is_reported_and_the_one_before_goes_on,
        what_is_no_plugin_is_reported_in_words_that_help,
        a_component_with_another_digest_is_not_loaded,
        a_half_applied_update_is_not_loaded,
        a_change_of_the_configuration_reconciles,
        a_configuration_that_does_not_fit_changes_nothing,
        install_says_that_a_configuration_does_not_fit,
        a_plugin_has_the_limits_of_its_object,
        a_suspended_plugin_does_nothing,
        a_deleted_plugin_leaves_its_objects_and_its_place_to_another,
        an_older_plugin_that_cannot_load_leaves_a_younger_one_at_work,
        a_source_whose_plugin_is_renamed_makes_room_for_itself,
        a_manifest_reconciles_no_kind_that_is_not_granted,
        what_a_plugin_may_do_counts_though_its_source_gives_nothing_new,
        a_configuration_that_nobody_can_parse_keeps_nobody_else_from_work,
        a_plugin_waits_for_the_kind_that_it_reconciles,
        a_selector_that_selects_nothing_by_mistake_is_refused,
        a_plugin_is_installed_and_replaced_by_a_command,
        install_and_list_tell_of_a_canary,
        a_command_says_why_a_plugin_does_not_come_to_work,
    );
}

async fn a_plugin_from_a_config_map_goes_to_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    ensure!(env.host.get("health", "/readyz").await?.0 == 200, "it is not ready though it needs no plugin");
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let status = &object["status"];
    let digest = sha256(&plugin()?);
    ensure!(status["digest"] == digest && digest[7..].starts_with(text(&status["shortDigest"])), "{status}");
    ensure!((&status["version"], &status["contract"]) == (&json!("0.1.0"), &json!("0.2.0")), "{status}");
    ensure!(status["reconciles"] == json!({"apiVersion": "apps.example.com/v1", "kind": "AppService"}), "{status}");
    works(env, "shop").await?;
    let counted = |object: &Value| object["status"]["objects"]["total"] == 1;
    env.namespace.until("Plugin", "web", "to count its object", counted).await.map(drop)
}

async fn a_plugin_in_compressed_pieces_goes_to_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let packed = gzipped(&plugin()?)?;
    // Small ones, for the plugin is so small that it would be one.
    let pieces: Vec<_> = packed.chunks(PIECE.min(packed.len() / 3 + 1)).collect();
    ensure!(pieces.len() == 3, "{} pieces", pieces.len());
    for (number, piece) in pieces.iter().enumerate() {
        store(env, &format!("web-{number}"), &[piece]).await?;
    }
    let source = json!({"configMap": {"name": "web", "pieces": 3}});
    let without_digest = env.namespace.apply(plugin_object("web", json!({"source": source}))).await;
    let refused = without_digest.err().context("pieces without a digest are accepted")?.to_string();
    ensure!(refused.contains("needs a digest"), "it does not say why: {refused}");
    let spec = json!({"source": source, "digest": sha256(&plugin()?)});
    env.namespace.apply(plugin_object("web", spec)).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "shop").await
}

async fn another_version_in_the_config_map_takes_over(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install(env).await?;
    works(env, "shop").await?;
    store(env, "web", &[&next()?]).await?;
    let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
    env.namespace.until("Deployment", "shop", "to have the marks of the new version", is_next).await?;
    let shows = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the new version", shows).await.map(drop)
}

/// Counted in the audit log: no object is left out, and none is reconciled twice.
async fn another_version_is_written_once_for_every_object(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install(env).await?;
    let names: Vec<_> = (0..OBJECTS).map(|number| format!("shop-{number}")).collect();
    for name in &names {
        env.namespace.apply(app(name)).await?;
    }
    for name in &names {
        let reported = |object: &Value| object["status"]["observedGeneration"] == 1;
        env.namespace.until("AppService", name, "to be reported on", reported).await?;
    }
    env.metrics_at_rest().await?;
    let before = env.host_writes().await?.len();
    store(env, "web", &[&next()?]).await?;
    let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
    for name in &names {
        env.namespace.until("Deployment", name, "to have the marks of the new version", is_next).await?;
    }
    let after = env.metrics_at_rest().await?;
    let writes: Vec<_> = env.host_writes().await?.split_off(before);
    let mut deployments: Vec<_> = writes.iter().filter(|write| write.contains("deployments")).collect();
    ensure!(deployments.len() == OBJECTS, "{} writes of {OBJECTS} Deployments", deployments.len());
    deployments.sort();
    deployments.dedup();
    ensure!(deployments.len() == OBJECTS, "a Deployment was written twice: {writes:#?}");
    let others: Vec<_> = writes.iter().filter(|write| write.contains("services")).collect();
    ensure!(others.is_empty(), "what the version does not change was written: {others:?}");
    let failed = after.sum("controller_runtime_reconcile_errors_total", &[]);
    ensure!(failed == 0.0, "{failed} reconciles failed");
    Ok(())
}

async fn a_broken_version_is_reported_and_the_one_before_goes_on(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install(env).await?;
    store(env, "web", &[&plugin()?[..1000]]).await?;
    let object = stalled(env, "NoPlugin").await?;
    ensure!(condition(&object, "Loaded")["status"] == "False", "{object}");
    let degraded = condition(&object, "Degraded");
    ensure!(text(&degraded["message"]).ends_with("version 0.1.0 goes on"), "it does not say so: {degraded}");
    works(env, "shop").await?;
    let error = &object["status"]["lastError"];
    ensure!(
        error["reason"] == "NoPlugin"
            && error["message"]
                == degraded["message"].as_str().map_or("", |it| it.trim_end_matches("; version 0.1.0 goes on")),
        "{error}"
    );
    store(env, "web", &[&next()?]).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready again", is_ready).await?;
    ensure!(condition(&object, "Degraded").is_null() && condition(&object, "Stalled").is_null(), "{object}");
    let status = &object["status"];
    ensure!(&status["lastError"] == error, "what has failed is forgotten: {status}");
    ensure!(text(&status["lastSwapTime"]) >= text(&error["time"]), "{status}");
    told(
        env,
        &[
            ("Normal", "Loaded", "version 0.1.0"),
            ("Warning", "NoPlugin", "not a whole"),
            ("Normal", "Loaded", "instead of version 0.1.0"),
        ],
    )
    .await
}

async fn what_is_no_plugin_is_reported_in_words_that_help(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let good = plugin()?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    stalled(env, "ConfigMapMissing").await?;
    for (bytes, reason, words) in [
        (vec![b"not WebAssembly".to_vec()], "NoPlugin", "not a whole WebAssembly file"),
        (vec![b"\0asm\x01\0\0\0".to_vec()], "NoPlugin", "pilothouse pack"),
        (vec![b"\0asm\x0d\0\x01\0".to_vec()], "NoPlugin", "without a manifest"),
        (vec![of_contract(&good, "0.3.0")?], "NoPlugin", "built for contract 0.3.0"),
        (vec![], "KeyMissing", "has 0 keys"),
        (vec![good.clone(), good], "KeyMissing", "spec.source.configMap.key"),
        (vec![vec![0x1f, 0x8b, 8, 0]], "PackingDamaged", "failed to unpack"),
    ] {
        let keys: Vec<_> = bytes.iter().map(Vec::as_slice).collect();
        store(env, "web", &keys).await?;
        let object = env.namespace.until("Plugin", "web", words, |object| {
            let stalled = condition(object, "Stalled");
            stalled["reason"] == reason && text(&stalled["message"]).contains(words)
        });
        object.await?;
    }
    Ok(())
}

async fn a_component_with_another_digest_is_not_loaded(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let spec = |digest: &str| json!({"source": {"configMap": {"name": "web"}}, "digest": digest});
    env.namespace.apply(plugin_object("web", spec(&sha256(b"another")))).await?;
    let object = stalled(env, "DigestMismatch").await?;
    let message = text(&condition(&object, "Stalled")["message"]);
    ensure!(message.contains(&sha256(&plugin()?)), "it does not say which digest it has: {message}");
    env.namespace.apply(plugin_object("web", spec(&sha256(&plugin()?)))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// The ConfigMap is another one already, and the `Plugin` is not yet.
async fn a_half_applied_update_is_not_loaded(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let spec = |digest: &str| json!({"source": {"configMap": {"name": "web"}}, "digest": digest});
    env.namespace.apply(plugin_object("web", spec(&sha256(&plugin()?)))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    store(env, "web", &[&next()?]).await?;
    let object = degraded(env, "DigestMismatch").await?;
    ensure!(object["status"]["version"] == "0.1.0" && is_ready(&object), "what is asked for is at work: {object}");
    env.namespace.apply(plugin_object("web", spec(&sha256(&next()?)))).await?;
    let shows = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the new version", shows).await.map(drop)
}

async fn a_change_of_the_configuration_reconciles(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let bytes = std::fs::read(artifacts::guest("misbehaver")?)?;
    store(env, "web", &[&bytes]).await?;
    let spec = |colour: &str| json!({"source": {"configMap": {"name": "web"}}, "config": {"colour": colour}});
    env.namespace.apply(plugin_object("web", spec("red"))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    env.namespace.apply(crate::test_env::misbehaver("object", "config")).await?;
    let shows = |colour: &'static str| move |child: &Value| text(&child["data"]["config"]).contains(colour);
    env.namespace.until("ConfigMap", "object", "to show the configuration", shows("red")).await?;
    env.namespace.apply(plugin_object("web", spec("green"))).await?;
    env.namespace.until("ConfigMap", "object", "to show the new configuration", shows("green")).await.map(drop)
}

/// The schema is that of the manifest. What else the `Plugin` says counts all the same, and so does the configuration before.
async fn a_configuration_that_does_not_fit_changes_nothing(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let component = std::fs::read(with_schema("misbehaver").await?.path())?;
    store(env, "web", &[&component]).await?;
    let spec = |digest: &[u8], colour: &str| {
        let spec =
            json!({"source": {"configMap": {"name": "web"}}, "config": {"colour": colour}, "digest": sha256(digest)});
        plugin_object("web", spec)
    };
    let shows = |colour: &'static str| move |child: &Value| text(&child["data"]["config"]).contains(colour);
    env.namespace.apply(spec(&component, "red")).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;

    env.namespace.apply(spec(&component, "blue")).await?;
    let object = stalled(env, "ConfigInvalid").await?;
    let message = text(&condition(&object, "Degraded")["message"]);
    let words = ["'/colour'", "not one of", "red", "goes on"];
    ensure!(words.iter().all(|word| message.contains(word)) && !message.contains("blue"), "{message}");
    ensure!(object["status"]["digest"] == sha256(&component), "it does not go on: {object}");
    env.namespace.apply(crate::test_env::misbehaver("object", "config")).await?;
    env.namespace.until("ConfigMap", "object", "to show the configuration before", shows("red")).await?;

    env.namespace.apply(spec(&component, "green")).await?;
    env.namespace.until("ConfigMap", "object", "to show the new configuration", shows("green")).await?;
    env.namespace.until("Plugin", "web", "to be ready again", is_ready).await?;

    // Without its source, what is at work is judged.
    env.namespace.delete("ConfigMap", "web").await?;
    env.namespace.apply(spec(&component, "blue")).await?;
    stalled(env, "ConfigInvalid").await?;
    env.namespace.apply(spec(&component, "red")).await?;
    env.namespace.until("ConfigMap", "object", "to show the first configuration", shows("red")).await.map(drop)
}

/// Nothing is stored.
async fn install_says_that_a_configuration_does_not_fit(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let plugin = with_schema("misbehaver").await?;
    let (good, bad) = (file(b"colour: red")?, file(b"colour: blue")?);
    let (good, bad) = (good.path().to_string_lossy(), bad.path().to_string_lossy());
    for more in [&["--config", &*bad, "--dry-run"][..], &["--config", &*bad]] {
        let ended = install_by_command(env, plugin.path(), more).await?;
        ended.failed_with(&["does not fit the schema", "'/colour'", "--config FILE"])?;
    }
    let without = install_by_command(env, plugin.path(), &["--dry-run"]).await?;
    without.failed_with(&["needs a configuration", "colour", "--config FILE"])?;
    ensure!(env.namespace.list("Plugin").await?.is_empty(), "a Plugin is there");
    install_by_command(env, plugin.path(), &["--config", &*good, "--dry-run"]).await?.succeeded().map(drop)
}

/// What the limits are is in the messages about them. Taken away, they are those of every plugin again.
async fn a_plugin_has_the_limits_of_its_object(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&std::fs::read(artifacts::guest("misbehaver")?)?]).await?;
    let limits = json!({
        "memoryMebibytes": 16, "cpuMilliseconds": 50, "timeoutSeconds": 5, "outputKibibytes": 8, "concurrency": 1,
    });
    let spec = |limits: &Value| json!({"source": {"configMap": {"name": "web"}}, "limits": limits});
    env.namespace.apply(plugin_object("web", spec(&limits))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    for (act, words) in [("allocate", "16 MiB"), ("loop", "50ms"), ("huge-status", "8 KiB")] {
        env.namespace.apply(crate::test_env::misbehaver(act, act)).await?;
        let tells = |object: &Value| text(&condition(object, "Ready")["message"]).contains(words);
        env.namespace.until("Misbehaver", act, &format!("to tell its limit, {words}"), tells).await?;
    }
    let at_once = env.metrics().await?.sum("controller_runtime_max_concurrent_reconciles", &[]);
    ensure!(at_once == 1.0, "{at_once} reconciles at once");
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    let tells = |object: &Value| text(&condition(object, "Ready")["message"]).contains("128 MiB");
    env.namespace.until("Misbehaver", "allocate", "to tell the usual limit", tells).await?;
    let too_much = env.namespace.apply(plugin_object("web", spec(&json!({"memoryMebibytes": 129})))).await;
    ensure!(too_much.is_err_and(|error| error.to_string().contains("memoryMebibytes")), "129 MiB are accepted");
    Ok(())
}

async fn a_suspended_plugin_does_nothing(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install(env).await?;
    works(env, "shop").await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"suspended": true}})).await?;
    let suspended = |object: &Value| condition(object, "Ready")["reason"] == "Suspended";
    env.namespace.until("Plugin", "web", "to be suspended", suspended).await?;
    env.namespace.delete("Deployment", "shop").await?;
    env.namespace.until_gone("Deployment", "shop").await?;
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("Deployment", "shop").await?.is_none(), "it was created again");
    env.namespace.patch("Plugin", "web", json!({"spec": {"suspended": false}})).await?;
    env.namespace.until("Deployment", "shop", "to be created again", |_| true).await.map(drop)
}

/// Two `Plugin`s for one kind: the second one says so, and comes to work once the first one is gone.
async fn a_deleted_plugin_leaves_its_objects_and_its_place_to_another(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install(env).await?;
    works(env, "shop").await?;
    // Of two that were created within a second, the name says which one is older.
    store(env, "web-next", &[&next()?]).await?;
    env.namespace.apply(plugin_object("web-next", json!({"source": {"configMap": {"name": "web-next"}}}))).await?;
    let taken = |object: &Value| condition(object, "Stalled")["reason"] == "NameTaken";
    let object = env.namespace.until("Plugin", "web-next", "to be in the way of none", taken).await?;
    let message = text(&condition(&object, "Stalled")["message"]);
    ensure!(message.contains("the Plugin 'web'"), "it does not say what is in its way: {message}");
    let before = env.namespace.get("Deployment", "shop").await?.context("no Deployment")?;
    env.namespace.delete("Plugin", "web").await?;
    env.namespace.until("Plugin", "web-next", "to be ready", is_ready).await?;
    let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
    let after = env.namespace.until("Deployment", "shop", "to have the marks of the other version", is_next).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it is another one");
    Ok(())
}

/// The second one has the name of the first and the kind of the third, which is at work all the time.
async fn an_older_plugin_that_cannot_load_leaves_a_younger_one_at_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let misbehaver = artifacts::guest("misbehaver")?;
    let namesake = repacked(&misbehaver, |manifest| manifest["name"] = "app-service".into()).await?;
    for (name, bytes) in [("a", plugin()?), ("b", std::fs::read(namesake.path())?), ("c", std::fs::read(&misbehaver)?)]
    {
        store(env, name, &[&bytes]).await?;
        env.namespace.apply(plugin_object(name, json!({"source": {"configMap": {"name": name}}}))).await?;
        let reason = if name == "b" { "NameTaken" } else { "Loaded" };
        let is_reported = |object: &Value| condition(object, "Loaded")["reason"] == reason;
        env.namespace.until("Plugin", name, &format!("to be {reason}"), is_reported).await?;
    }
    env.namespace.until("Plugin", "c", "to be ready", is_ready).await?;
    works(env, "shop").await?;
    let log = env.host.log();
    let loaded = log.lines().filter(|line| line.contains("plugin loaded") && line.contains("the Plugin 'c'"));
    ensure!(loaded.count() == 1, "it was loaded more than once:\n{log}");
    Ok(())
}

/// The new plugin has another name, the same kind, and another metric of the same name.
async fn a_source_whose_plugin_is_renamed_makes_room_for_itself(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let app_service = artifacts::plugin("app-service")?;
    for (name, labels) in [("one", json!([])), ("two", json!(["name"]))] {
        let packed = repacked(&app_service, |manifest| {
            manifest["name"] = name.into();
            manifest["measurements"] = json!([{"name": "works", "kind": "gauge", "help": "Works.", "labels": labels}]);
        });
        let version = std::fs::read(packed.await?.path())?;
        store(env, "web", &[&version]).await?;
        env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
        let is_at_work = |object: &Value| object["status"]["digest"] == sha256(&version) && is_ready(object);
        env.namespace.until("Plugin", "web", "to be ready", is_at_work).await?;
    }
    ensure!(!env.host.log().contains("not loaded"), "it was refused: {}", env.host.log());
    works(env, "shop").await
}

/// Who may change the ConfigMap does not get at objects that the host can see for another plugin.
async fn a_manifest_reconciles_no_kind_that_is_not_granted(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let of_secrets = repacked(&artifacts::plugin("app-service")?, |manifest| {
        manifest["reconciles"] = json!({"apiVersion": "v1", "kind": "Secret"});
    })
    .await?;
    store(env, "web", &[&std::fs::read(of_secrets.path())?]).await?;
    let spec = |grants: Value| json!({"source": {"configMap": {"name": "web"}}, "grants": grants});
    let listed = |group: &str, kind: &str| json!({"reconciles": [{"group": group, "kind": kind}]});
    for grants in [json!({}), listed("apps.example.com", "AppService")] {
        env.namespace.apply(plugin_object("web", spec(grants))).await?;
        let object = stalled(env, "NotGranted").await?;
        let message = text(&condition(&object, "Loaded")["message"]);
        ensure!(message.contains("add {group: \"\", kind: Secret} to spec.grants.reconciles"), "{message}");
    }
    env.namespace.apply(plugin_object("web", spec(listed("", "Secret")))).await?;
    let is_loaded = |object: &Value| condition(object, "Loaded")["status"] == "True";
    env.namespace.until("Plugin", "web", "to be loaded", is_loaded).await?;
    store(env, "web", &[&plugin()?]).await?;
    stalled(env, "NotGranted").await.map(drop)
}

/// The digest that is asked for is nowhere. Meanwhile the version at work has the limits and the grants that its object has now.
async fn what_a_plugin_may_do_counts_though_its_source_gives_nothing_new(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let bytes = std::fs::read(artifacts::guest("misbehaver")?)?;
    store(env, "web", &[&bytes]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let spec = |digest: String, restriction: Value| {
        let mut spec = json!({"source": {"configMap": {"name": "web"}}, "digest": digest});
        spec.as_object_mut()
            .into_iter()
            .for_each(|spec| spec.extend(restriction.as_object().cloned().unwrap_or_default()));
        plugin_object("web", spec)
    };
    let limits = json!({"limits": {"memoryMebibytes": 16}});
    env.namespace.apply(spec(sha256(b"nowhere"), limits)).await?;
    let object = stalled(env, "DigestMismatch").await?;
    ensure!(object["status"]["digest"] == sha256(&bytes), "it does not go on: {object}");
    env.namespace.apply(crate::test_env::misbehaver("allocate", "allocate")).await?;
    let tells = |object: &Value| text(&condition(object, "Ready")["message"]).contains("16 MiB");
    env.namespace.until("Misbehaver", "allocate", "to tell its limit", tells).await?;

    env.namespace.apply(spec(sha256(b"nowhere"), json!({"grants": {"children": []}}))).await?;
    let is_stopped = |object: &Value| {
        let message = text(&condition(object, "Loaded")["message"]);
        message.contains("the version that worked is stopped") && object["status"]["digest"].is_null()
    };
    let object = env.namespace.until("Plugin", "web", "to be stopped", is_stopped).await?;
    ensure!(condition(&object, "Ready")["status"] == "False", "{object}");
    env.namespace.apply(spec(sha256(&bytes), json!({}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// The API server notes the owner of each level of it, so that not even the `Plugin` as such can be parsed.
async fn a_configuration_that_nobody_can_parse_keeps_nobody_else_from_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let nested = (0..90).fold(json!(1), |inner, _| json!({"a": inner}));
    let spec = json!({"source": {"configMap": {"name": "deep"}}, "config": nested});
    env.namespace.apply(plugin_object("deep", spec)).await?;
    let nested = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let patch = format!(r#"{{"spec":{{"config":{nested}}}}}"#);
    let client = env.cluster.plane.client().await?;
    let request = http::Request::patch("/apis/pilothouse.dev/v1alpha1/plugins/deep?fieldManager=deep");
    let request = request.header("content-type", "application/merge-patch+json").body(patch.into_bytes())?;
    client.request_text(request).await?;
    install(env).await?;
    env.host.kill().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    works(env, "shop").await?;
    let kubeconfig = env.namespace.setup().kubeconfig;
    let listed = pilothouse(["list".as_ref(), "--kubeconfig".as_ref(), kubeconfig.as_os_str()]).await?.succeeded()?;
    ensure!(listed.contains("deep") && listed.contains("web"), "{listed}");
    Ok(())
}

async fn a_plugin_waits_for_the_kind_that_it_reconciles(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    resume(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    let starting = |object: &Value| condition(object, "Ready")["reason"] == "Starting";
    env.namespace.until("Plugin", "web", "to wait", starting).await?;
    let file = artifacts::repository().join("crds/appservices.apps.example.com.yaml");
    pilothouse_tests::cluster::install_crd(&env.namespace.client(), &file).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// The pieces of the version before go. What `--dry-run` prints is what `kubectl apply` takes.
async fn a_selector_that_selects_nothing_by_mistake_is_refused(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let expression = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    for (selector, words) in [
        (expression("team", "In", json!([])), Some("In and NotIn need values")),
        (expression("team", "Exists", json!(["a"])), Some("In and NotIn need values")),
        (expression("a b=,", "Exists", json!([])), Some("key")),
        (expression("team", "In", json!(["a b"])), Some("values")),
        (json!({"matchLabels": {"a b": "x"}}), Some("no label")),
        (json!({"matchLabels": {"team": "a b"}}), Some("matchLabels")),
        (expression("example.com/team", "NotIn", json!(["a", ""])), None),
        (json!({"matchLabels": {"kubernetes.io/metadata.name": "web"}}), None),
    ] {
        let spec = json!({"source": {"configMap": {"name": "web"}}, "namespaces": selector});
        let applied = env.namespace.apply(plugin_object("web", spec)).await;
        let told = applied.err().map(|error| format!("{error:#}"));
        let is_as_expected = match words {
            Some(words) => told.as_deref().is_some_and(|told| told.contains(words)),
            None => told.is_none(),
        };
        ensure!(is_as_expected, "{selector}: {told:?}");
    }
    Ok(())
}

async fn a_plugin_is_installed_and_replaced_by_a_command(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    works(env, "shop").await?;
    let printed = install_by_command(env, &artifacts::guest("app-service-next")?, &["--dry-run"]).await?.succeeded()?;
    let mut names = Vec::new();
    for object in serde_saphyr::from_multiple::<Value>(&printed)? {
        let kind = text(&object["kind"]).to_owned();
        names.push(kind.clone());
        if ["ConfigMap", "Plugin"].contains(&&*kind) {
            env.namespace.apply(object).await?;
        }
    }
    let account = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    let expected = [&["ConfigMap", "ClusterRole", "ClusterRoleBinding"][..], &account, &["Plugin"]].concat();
    ensure!(names == expected, "{names:?}");
    let shows = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "app-service", "to show the new version", shows).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    let of_plugin = |map: &&Value| map["metadata"]["labels"]["pilothouse.dev/component-of"] == "app-service";
    let maps = env.namespace.list("ConfigMap").await?;
    ensure!(maps.iter().filter(of_plugin).count() == 1, "pieces are left: {maps:?}");
    Ok(())
}

/// A version that is tried is not at work, and nobody waits for days.
async fn install_and_list_tell_of_a_canary(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    works(env, "shop").await?;
    settled(env, "AppService").await?;
    let rollout = json!({"strategy": "Canary", "steps": [{"objects": 1, "seconds": LONG}]});
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"rollout": rollout}})).await?;
    let installed = install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?;
    let tried = "version 0.2.0 answers 1 of the objects, step 1 of 1 of its canary; version 0.1.0 answers the others";
    ensure!(installed.code == 0 && installed.errors.contains(tried), "{installed:?}");
    let listed = command(env, &["list"]).await?.succeeded()?;
    ensure!(listed.contains("Canary: version 0.2.0 is in step 1 of 1"), "{listed}");
    Ok(())
}

async fn a_command_says_why_a_plugin_does_not_come_to_work(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    // The command's Plugin has the name app-service: of two that were created within a second, the name says which one is older.
    install_as(env, "already-there").await?;
    let taken = install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?;
    taken.failed_with(&["does not come to work", "the Plugin 'already-there'"])?;
    env.host.stop().await?;
    let nobody = install_by_command(env, &artifacts::guest("misbehaver")?, &["--timeout", "1s"]).await?;
    nobody.failed_with(&["not at work after 1s", "--plugin-objects"])
}

pub async fn install_by_command(env: &TestEnv, plugin: &std::path::Path, more: &[&str]) -> Result<Ended> {
    let account = format!("{}/host", env.namespace.name);
    let kubeconfig = env.namespace.setup().kubeconfig;
    let mut arguments: Vec<std::ffi::OsString> = vec!["install".into(), plugin.into()];
    arguments.extend(["--kubeconfig".into(), kubeconfig.into(), "--service-account".into(), account.into()]);
    arguments.extend(more.iter().map(Into::into));
    pilothouse(arguments).await
}

/// Moves to an API server of its own, for `Plugin`s belong to the whole cluster, and starts a host without a plugin.
pub async fn start(env: &mut TestEnv) -> Result<()> {
    install_crds(env).await?;
    resume(env).await?;
    env.host.ready().await
}

/// Moves to an API server that has the kinds of these tests.
pub async fn install_crds(env: &mut TestEnv) -> Result<()> {
    let crds = ["plugins.pilothouse.dev", "appservices.apps.example.com"].map(|name| format!("crds/{name}.yaml"));
    let crds: Vec<_> = crds.iter().map(String::as_str).chain(["tests/guests/misbehaver/crd.yaml"]).collect();
    env.move_to_api_server_with(&crds).await
}

pub async fn resume(env: &mut TestEnv) -> Result<()> {
    let namespace = env.namespace.name.clone();
    env.set_up_host(|setup| {
        setup.arguments = ["--plugin-objects", "--host-namespace", &namespace].map(str::to_owned).to_vec();
    })?;
    env.host.resume().await
}

/// The `Plugin` web with the plugin app-service in a ConfigMap of its name.
async fn install(env: &TestEnv) -> Result<()> {
    install_as(env, "web").await
}

/// A `Plugin` with the plugin app-service in a ConfigMap of its name.
async fn install_as(env: &TestEnv, name: &str) -> Result<()> {
    store(env, name, &[&plugin()?]).await?;
    env.namespace.apply(plugin_object(name, json!({"source": {"configMap": {"name": name}}}))).await?;
    env.namespace.until("Plugin", name, "to be ready", is_ready).await.map(drop)
}

/// Creates an object of the plugin, and waits for its Deployment.
pub async fn works(env: &TestEnv, name: &str) -> Result<()> {
    env.namespace.apply(app(name)).await?;
    env.namespace.until("Deployment", name, "to be there", |_| true).await.map(drop)
}

pub async fn stalled(env: &TestEnv, reason: &str) -> Result<Value> {
    let stalled = |object: &Value| condition(object, "Stalled")["reason"] == reason;
    env.namespace.until("Plugin", "web", &format!("to be stalled for {reason}"), stalled).await
}

/// Waits for Events on the `Plugin` web: their types, reasons and words. An Event on a cluster-scoped object is in the namespace default.
pub async fn told(env: &TestEnv, expected: &[(&str, &str, &str)]) -> Result<()> {
    let api = Api::<Event>::namespaced(env.cluster.plane.client().await?, "default");
    eventually(PATIENCE, "Events on the Plugin", async || {
        let events =
            api.list(&ListParams::default().fields("involvedObject.kind=Plugin,involvedObject.name=web")).await?;
        let is_told = |(kind, reason, words): &(&str, &str, &str)| {
            events.iter().any(|event| {
                event.type_.as_deref() == Some(*kind)
                    && event.reason.as_deref() == Some(*reason)
                    && event.message.as_deref().is_some_and(|message| message.contains(words))
            })
        };
        Ok(Look::of(expected.iter().all(is_told), format!("{:?}", events.items)))
    })
    .await
}

/// What is asked for is at work, and its source does not give it.
pub async fn degraded(env: &TestEnv, reason: &str) -> Result<Value> {
    let degraded = |object: &Value| condition(object, "Degraded")["reason"] == reason;
    env.namespace.until("Plugin", "web", &format!("to be degraded for {reason}"), degraded).await
}

/// Replaces a ConfigMap by one with these keys.
pub async fn store(env: &TestEnv, name: &str, keys: &[&[u8]]) -> Result<()> {
    let data: serde_json::Map<_, _> = keys
        .iter()
        .enumerate()
        .map(|(number, bytes)| (format!("key-{number}"), BASE64_STANDARD.encode(bytes).into()))
        .collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "binaryData": data});
    env.namespace.apply(map).await.map(drop)
}

pub fn plugin_object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec})
}

pub fn plugin() -> Result<Vec<u8>> {
    Ok(std::fs::read(artifacts::plugin("app-service")?)?)
}

pub fn next() -> Result<Vec<u8>> {
    Ok(std::fs::read(artifacts::guest("app-service-next")?)?)
}

/// The guest `scripted` as this version, which asks for nothing that has to be granted by name.
pub async fn scripted_version(version: &str) -> Result<Vec<u8>> {
    guest_version("scripted", version, "ConfigMap").await
}

/// A guest as this version, which may have children of this core kind and looks nothing up.
pub async fn guest_version(guest: &str, version: &str, child: &str) -> Result<Vec<u8>> {
    let packed = repacked(&artifacts::guest(guest)?, |manifest| {
        manifest["version"] = version.into();
        manifest["children"] = json!([{"apiVersion": "v1", "kind": child}]);
        manifest["lookups"] = json!([]);
    })
    .await?;
    Ok(std::fs::read(packed.path())?)
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digest}")
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
