//! Hosts that cannot work yet: they run, report at `/readyz` what they wait for, and start working by themselves.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, ensure};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, PATIENCE, condition, install_crd},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready, misbehaver},
};

/// The CRD of `AppService`, which some tests install late, change or remove.
const APP_SERVICES: &str = "crds/appservices.apps.example.com.yaml";

/// The API version of a kind that `misbehaver` looks up and that is not installed.
const ABSENT: &str = "absent.pilothouse.dev/v1";

/// A number of probes for a missing kind, and the least time between the first and the last of them: the pauses grow from 1 s by a
/// quarter each time, so five of them take 8.2 s. Without the growth the six probes would take 6 s at most.
const PROBES: f64 = 6.0;
const PROBES_TAKE: Duration = Duration::from_secs(8);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_empty_directory_is_waited_for,
        a_file_that_is_no_plugin_is_reported,
        a_host_is_ready_when_all_installed_plugins_are_active,
        plugins_that_need_no_compiler_are_loaded_first,
        machine_code_in_use_is_not_compiled_anew_however_long_a_host_runs,
        of_two_files_for_one_kind_the_first_is_loaded,
        a_missing_kind_is_waited_for,
        a_removed_kind_is_waited_for,
        a_missing_optional_child_kind_does_not_block_the_plugin,
        a_kind_without_a_status_is_reported,
        a_missing_child_kind_is_reported_and_used_once_it_is_installed,
        a_kind_that_is_only_looked_up_may_be_missing,
        a_missing_kind_is_probed_less_and_less_often,
    );
}

async fn an_empty_directory_is_waited_for(env: &mut TestEnv) -> Result<()> {
    env.host.resume().await?;
    not_ready(env, "no plugin is loaded").await?;
    env.host.logged("no plugin in the plugin directory; copy a .wasm file into it").await?;
    ensure!(env.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    env.install("app-service")?;
    env.host.ready().await?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await
}

/// The valid plugin in the same directory works.
async fn a_file_that_is_no_plugin_is_reported(env: &mut TestEnv) -> Result<()> {
    fs::write(env.host.plugins().join("broken.wasm"), "this is not WebAssembly")?;
    fs::write(env.host.plugins().join("notes.txt"), "not looked at")?;
    env.start_with_web().await?;
    env.host.logged("broken.wasm").await?;
    env.host.logged("not a whole WebAssembly file").await?;
    let failed = env.metrics().await?.sum("pilothouse_plugin_load_failures_total", &[]);
    ensure!(failed == 1.0, "{failed} failures are counted");
    Ok(())
}

/// Even if plugins have to be compiled: when the first one is active, the second one is still being compiled.
async fn a_host_is_ready_when_all_installed_plugins_are_active(env: &mut TestEnv) -> Result<()> {
    let nothing_compiled = tempfile::tempdir()?;
    env.set_up_host(|setup| setup.cache = nothing_compiled.path().to_owned())?;
    env.start(&["app-service", "training-job"]).await?;
    let works = env.host.log().matches("plugin at work").count();
    ensure!(works == 2, "{works} of 2 plugins work");
    Ok(())
}

/// Whatever their files are called.
/// What was used a month ago is removed from the cache at a start.
async fn machine_code_in_use_is_not_compiled_anew_however_long_a_host_runs(env: &mut TestEnv) -> Result<()> {
    let cache = tempfile::tempdir()?;
    env.set_up_host(|setup| setup.cache = cache.path().to_owned())?;
    env.start(&["app-service"]).await?;
    let code = machine_code(cache.path())?;
    ensure!(code.len() == 1, "other code: {code:?}");
    let a_month_ago = SystemTime::now() - Duration::from_secs(31 * 86_400);
    fs::File::open(&code[0])?.set_modified(a_month_ago)?;
    eventually(PATIENCE, "the code in use to be marked as used", async || {
        let modified = code[0].metadata()?.modified()?;
        Ok(Look::of(modified > a_month_ago + Duration::from_secs(86_400), format!("{modified:?}")))
    })
    .await
}

/// The files with machine code in a cache.
fn machine_code(cache: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cwasm") {
            found.push(path);
        }
    }
    Ok(found)
}

async fn plugins_that_need_no_compiler_are_loaded_first(env: &mut TestEnv) -> Result<()> {
    let nothing_compiled = tempfile::tempdir()?;
    env.set_up_host(|setup| setup.cache = nothing_compiled.path().to_owned())?;
    env.start(&["app-service", "sextet"]).await?;
    env.host.stop().await?;
    fs::copy(artifacts::guest("misbehaver")?, env.host.plugins().join("a.wasm"))?;
    env.host.resume().await?;
    env.host.ready().await?;
    let loaded = loaded(env);
    ensure!(loaded.len() == 3 && loaded[2].starts_with("misbehaver"), "the compiler was waited for: {loaded:?}");
    Ok(())
}

/// Though the second one need not be compiled. As soon as the first one goes, the second one has its place.
async fn of_two_files_for_one_kind_the_first_is_loaded(env: &mut TestEnv) -> Result<()> {
    let nothing_compiled = tempfile::tempdir()?;
    env.set_up_host(|setup| setup.cache = nothing_compiled.path().to_owned())?;
    env.start(&["app-service"]).await?;
    env.host.stop().await?;
    fs::copy(artifacts::guest("app-service-next")?, env.host.plugins().join("a.wasm"))?;
    env.host.resume().await?;
    env.host.ready().await?;
    ensure!(loaded(env) == ["app-service 0.2.0"], "the second one was loaded: {:?}", loaded(env));
    fs::remove_file(env.host.plugins().join("a.wasm"))?;
    eventually(PATIENCE, "the second one to be loaded", async || {
        Ok(Look::of(loaded(env).last().is_some_and(|last| last == "app-service 0.1.0"), loaded(env)))
    })
    .await
}

/// The plugins that were loaded since the host started, in order, with their versions.
fn loaded(env: &TestEnv) -> Vec<String> {
    let log = env.host.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let loaded = lines.filter(|line| line["message"] == "plugin loaded");
    loaded.filter_map(|line| Some(format!("{} {}", line["plugin"].as_str()?, line["version"].as_str()?))).collect()
}

/// The plugin is installed before its CustomResourceDefinition.
async fn a_missing_kind_is_waited_for(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    env.install("app-service")?;
    env.host.resume().await?;
    not_ready(env, "apps.example.com/v1 AppService is not installed").await?;
    env.host.logged("apply its CustomResourceDefinition").await?;
    install(env).await?;
    env.host.ready().await?;
    env.namespace.apply(app("web")).await?;
    env.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    Ok(())
}

/// The CustomResourceDefinition is deleted together with all objects, and installed again.
async fn a_removed_kind_is_waited_for(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    install(env).await?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    env.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    let crds = pilothouse_tests::cluster::api(&env.namespace.client(), "CustomResourceDefinition", None)?;
    crds.delete("appservices.apps.example.com", &Default::default()).await?;
    not_ready(env, "apps.example.com/v1 AppService is not installed").await?;
    ensure!(env.namespace.get("Deployment", "web").await?.is_some(), "the host deleted a child");
    eventually(PATIENCE, "the old CRD to be gone", async || {
        let crd = crds.get_opt("appservices.apps.example.com").await?;
        Ok(Look::of(crd.is_none(), crd))
    })
    .await?;
    install(env).await?;
    env.host.ready().await?;
    env.namespace.apply(app("again")).await?;
    env.namespace.until("Deployment", "again", "to be created", |_| true).await?;
    Ok(())
}

/// No gang scheduler is installed. Jobs that need none run nevertheless.
async fn a_missing_optional_child_kind_does_not_block_the_plugin(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.host.logged("scheduling.volcano.sh/v1beta1 PodGroup").await?;
    let job = json!({
        "apiVersion": "ml.example.com/v1alpha1", "kind": "TrainingJob", "metadata": { "name": "job" },
        "spec": { "framework": "pytorch", "workers": 1, "image": "trainer", "command": ["train"] },
    });
    env.namespace.apply(job).await?;
    env.namespace.until("Pod", "job-worker-0", "to be created", |_| true).await?;
    Ok(())
}

/// Without a status subresource the status cannot report the fault, so an Event and the log do. The host notices when the
/// subresource is added.
async fn a_kind_without_a_status_is_reported(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    let crd = fs::read_to_string(artifacts::repository().join(APP_SERVICES))?;
    let mut crd: Value = serde_saphyr::from_str(&crd)?;
    crd["spec"]["versions"][0]["subresources"] = json!({});
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), crd.to_string())?;
    install_crd(&env.namespace.client(), file.path()).await?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let event = env.event("AppService", "web", "StatusSubresourceMissing").await?;
    let message = event["message"].to_string();
    ensure!(message.contains("AppService") && message.contains("CustomResourceDefinition"), "{event}");
    env.host.logged("StatusSubresourceMissing").await?;
    env.namespace.until("Deployment", "web", "to be created all the same", |_| true).await?;
    install(env).await?;
    let observed = |app: &Value| app["status"]["observedGeneration"] == app["metadata"]["generation"];
    env.namespace.until("AppService", "web", "to have a status", observed).await?;
    Ok(())
}

/// The plugin declares a child kind that is not installed. Only the object that needs such a child waits.
async fn a_missing_child_kind_is_reported_and_used_once_it_is_installed(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    let plugin = repacked(&artifacts::guest("misbehaver")?, |manifest| {
        let absent = json!({"apiVersion": "absent.pilothouse.dev/v1", "kind": "Absent"});
        manifest["children"].as_array_mut().into_iter().for_each(|children| children.push(absent.clone()));
    })
    .await?;
    env.host.install(plugin.path(), "misbehaver.wasm")?;
    env.start(&[]).await?;
    env.namespace.apply(misbehaver("hopeful", "absent-child")).await?;
    env.namespace.apply(misbehaver("content", "well")).await?;
    let object = env.stalled("Misbehaver", "hopeful", "ChildKindNotInstalled").await?;
    let message = condition(&object, "Stalled")["message"].to_string();
    ensure!(message.contains("absent.pilothouse.dev/v1 Absent"), "the kind is not named: {message}");
    env.namespace.until("Misbehaver", "content", "to be ready", is_ready).await?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), absent().to_string())?;
    install_crd(&env.namespace.client(), file.path()).await?;
    env.namespace.until("Misbehaver", "hopeful", "to be ready", is_ready).await?;
    Ok(())
}

/// A missing kind that is only looked up is no fault, so the log mentions it once and without a warning.
async fn a_kind_that_is_only_looked_up_may_be_missing(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("content", "well")).await?;
    env.namespace.until("Misbehaver", "content", "to be ready", is_ready).await?;
    let lines = env.log_lines();
    let about: Vec<_> = lines.iter().filter(|line| line.to_string().contains(ABSENT)).collect();
    ensure!(about.len() == 1, "not one line, but {about:#?}");
    ensure!(about[0]["level"] == "INFO", "it is more than information: {about:#?}");
    let warnings: Vec<_> = lines.iter().filter(|line| line["level"] == "WARN").collect();
    ensure!(warnings.is_empty(), "the host warns: {warnings:#?}");
    Ok(())
}

/// The kind may never be installed, so the probes become rare.
async fn a_missing_kind_is_probed_less_and_less_often(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    // Once the host is ready, all its other reads succeed, so each 404 is a probe.
    let probes = async || {
        let absent = [("method", "GET"), ("code", "404")];
        Ok::<_, anyhow::Error>(env.metrics().await?.sum("rest_client_requests_total", &absent))
    };
    let before = probes().await?;
    let began = Instant::now();
    eventually(PATIENCE, &format!("{PROBES} more questions"), async || {
        let now = probes().await?;
        Ok(Look::of(now >= before + PROBES, now))
    })
    .await?;
    let took = began.elapsed();
    ensure!(took >= PROBES_TAKE, "it was asked for {PROBES} times within {took:?}");
    Ok(())
}

/// The CRD of the kind that is not installed.
fn absent() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "absents.absent.pilothouse.dev"},
        "spec": {
            "group": "absent.pilothouse.dev",
            "scope": "Namespaced",
            "names": {"kind": "Absent", "listKind": "AbsentList", "plural": "absents", "singular": "absent"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

async fn install(env: &TestEnv) -> Result<()> {
    let crd = artifacts::repository().join(APP_SERVICES);
    install_crd(&env.namespace.client(), &crd).await
}

/// Waits until `/readyz` says that the host is not ready for this reason.
pub async fn not_ready(env: &TestEnv, why: &str) -> Result<()> {
    eventually(PATIENCE, &format!("/readyz to say '{why}'"), async || {
        let (code, body) = env.host.get("health", "/readyz").await?;
        Ok(Look::of(code == 503 && body.contains(why), body))
    })
    .await
}
