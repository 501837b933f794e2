//! The scripts of the seeds under `tests/scripts`, with the kubectl of this machine.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, needs};
use tokio::process::Command;

use crate::{
    suite::{Suite, tests_with},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests_with!(suite, needs::kubectl(), the_scripts_of_the_seeds_pass);
}

async fn the_scripts_of_the_seeds_pass(env: &mut TestEnv) -> Result<()> {
    run(env, "01-test-crd.sh").await?;
    env.start(&["ai-llm-model", "llm-model", "llm-deployment"]).await?;
    run(env, "02-test-operator.sh").await?;
    run(env, "test-all-crd-operator.sh").await?;
    run(env, "cleanup-all-crd-operator.sh").await?;
    for kind in ["LLMModel", "LLMModel.llm.example.com", "LLMDeployment"] {
        ensure!(env.namespace.list(kind).await?.is_empty(), "a {kind} is left");
    }
    Ok(())
}

/// Runs a script in the namespace of the test.
async fn run(env: &TestEnv, script: &str) -> Result<()> {
    let file = artifacts::repository().join("tests/scripts").join(script);
    let mut command = Command::new("bash");
    command.arg(&file).env("KUBECONFIG", env.cluster.plane.kubeconfig_path()).env("NAMESPACE", &env.namespace.name);
    let output = command.stdin(Stdio::null()).output().await.with_context(|| format!("failed to run {script}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{script} fails: {}\n{}", text(&output.stdout), text(&output.stderr));
    Ok(())
}
