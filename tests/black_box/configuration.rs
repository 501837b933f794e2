//! The configuration of plugins: `pilothouse run --config NAME=FILE` passes a file's content to the plugin of that name with
//! every request.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    command::{file, pilothouse, with_schema},
    suite::{Suite, tests},
    test_env::{TestEnv, misbehaver},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plugin_is_given_its_configuration,
        each_plugin_is_given_its_own_configuration,
        run_says_what_is_wrong_with_a_configuration,
        a_plugin_is_not_given_a_configuration_that_does_not_fit,
    );
}

/// The file may be YAML or JSON.
async fn a_plugin_is_given_its_configuration(env: &mut TestEnv) -> Result<()> {
    let wanted = json!({"tier": "gold", "limits": {"replicas": 5}, "regions": ["north", null]});
    let yaml = "tier: gold\nlimits:\n  replicas: 5\nregions: [north, null]\n";
    let folder = tempfile::tempdir()?;
    for (name, text) in [("config.yaml", yaml.to_owned()), ("config.json", wanted.to_string())] {
        let path = folder.path().join(name);
        fs::write(&path, text)?;
        let argument = format!("--config=misbehaver={}", path.display());
        let given = received_config(env, &[argument]).await?;
        ensure!(given == wanted, "of {name} the plugin is given {given}");
    }
    Ok(())
}

/// The option can be given several times. A plugin for which it is not given has no configuration.
async fn each_plugin_is_given_its_own_configuration(env: &mut TestEnv) -> Result<()> {
    let (own, other) = (file(b"whose: mine")?, file(b"whose: theirs")?);
    let of = |plugin: &str, file: &Path| format!("--config={plugin}={}", file.display());
    let other = of("app-service", other.path());
    let given = received_config(env, &[other.clone(), of("misbehaver", own.path())]).await?;
    ensure!(given == json!({"whose": "mine"}), "the plugin is given {given}");
    let given = received_config(env, &[other]).await?;
    ensure!(given.is_null(), "the plugin is given {given}");
    Ok(())
}

async fn run_says_what_is_wrong_with_a_configuration(env: &mut TestEnv) -> Result<()> {
    let (plugins, kubeconfig) = (env.host.plugins(), env.namespace.setup().kubeconfig);
    let run = async |config: &str| {
        let mut arguments = vec!["run", "--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0", config];
        let (plugins, kubeconfig) = (plugins.to_string_lossy(), kubeconfig.to_string_lossy());
        arguments.extend(["--plugins", &*plugins, "--kubeconfig", &*kubeconfig]);
        pilothouse(arguments).await
    };
    for config in ["--config=misbehaver", "--config==file.yaml", "--config=misbehaver="] {
        let ended = run(config).await?;
        ensure!(ended.code == 2 && ended.errors.contains("NAME=FILE"), "{config}: {ended:?}");
    }
    run("--config=misbehaver=no/such/file.yaml").await?.failed_with(&["no/such/file.yaml", "No such file"])?;
    let malformed = file(b"a: [")?;
    let path = malformed.path().to_string_lossy();
    run(&format!("--config=misbehaver={path}")).await?.failed_with(&[&path, "is not YAML"])?;
    Ok(())
}

/// The manifest has the schema. `render` says the same as `run`.
async fn a_plugin_is_not_given_a_configuration_that_does_not_fit(env: &mut TestEnv) -> Result<()> {
    let plugin = with_schema("misbehaver").await?;
    let (good, bad) = (file(b"colour: red")?, file(b"colour: blue")?);
    let words = ["does not fit the schema", "'/colour'", "not one of"];
    let argument = format!("--config=misbehaver={}", bad.path().display());
    env.set_up_host(|setup| setup.arguments = vec![argument])?;
    env.host.install(plugin.path(), "misbehaver.wasm")?;
    env.host.resume().await?;
    env.host.logged("the plugin was not loaded").await?;
    let log = env.host.log();
    ensure!(words.iter().all(|word| log.contains(word)), "{log}");
    let (object, cache) = (file(misbehaver("curious", "config").to_string().as_bytes())?, env.namespace.setup().cache);
    let render = async |config: &Path| {
        let arguments = [Path::new("render"), plugin.path(), object.path(), Path::new("--config"), config];
        pilothouse(arguments.into_iter().chain([Path::new("--cache-dir"), &cache])).await
    };
    render(bad.path()).await?.failed_with(&words)?;
    let printed = render(good.path()).await?.succeeded()?;
    ensure!(printed.contains("red"), "{printed}");
    Ok(())
}

/// The configuration that the plugin `misbehaver` receives from a host with these arguments. The plugin writes it into its child.
async fn received_config(env: &mut TestEnv, arguments: &[String]) -> Result<Value> {
    if env.host.pid().is_ok() {
        env.host.stop().await?;
        env.namespace.delete("Misbehaver", "curious").await?;
        env.namespace.until_gone("ConfigMap", "curious").await?;
    }
    env.set_up_host(|setup| setup.arguments = arguments.to_vec())?;
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("curious", "config")).await?;
    let child = env.namespace.until("ConfigMap", "curious", "to be created", |_| true).await?;
    let config = child["data"]["config"].as_str().context("no configuration in the child")?;
    Ok(serde_json::from_str(config)?)
}
