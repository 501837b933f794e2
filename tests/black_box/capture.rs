//! `pilothouse capture`: a case of an object of the cluster passes without the cluster, and has nothing in it of what is in Secrets.

use std::path::Path;

use anyhow::{Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use pilothouse_tests::artifacts;
use serde_json::json;

use crate::{
    command::{Ended, pilothouse},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, scripted},
};

/// What is in the Secret.
const PASSWORD: &str = "correct \"horse\" battery";

pub fn register(suite: &mut Suite) {
    tests!(suite, a_captured_case_passes_without_the_cluster_and_without_secrets, what_cannot_be_captured_is_told,);
}

async fn a_captured_case_passes_without_the_cluster_and_without_secrets(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let secret =
        json!({"password": PASSWORD, "config.json": json!({"auth": {"token": PASSWORD, "port": 6379}}).to_string()});
    let metadata = json!({"name": "login"});
    env.namespace
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": secret}))
        .await?;
    let url = format!("redis://:{PASSWORD}@db:6379");
    let found = json!({"$found": "login", "at": "/data/password"});
    let children = json!([
        {"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "front"}, "data": {"url": url, "copy": found}}},
        {"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}, "data": {"password": found}}},
    ]);
    let lookups = json!([{"kind": "Secret", "name": "login"}, {"kind": "ConfigMap", "name": "missing"}]);
    let mut object = scripted("web", json!({"lookups": lookups, "response": {"children": children}}));
    object["metadata"]["annotations"] = json!({"note": format!("the password is {PASSWORD}")});
    env.namespace.apply(object).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("web.yaml");
    capture(env, "Scripted/web", &file).await?.succeeded()?;
    let text = std::fs::read_to_string(&file)?;
    for secret in [PASSWORD, &PASSWORD.replace('"', "\\\""), STANDARD.encode(PASSWORD).trim_end_matches('=')] {
        ensure!(!text.contains(secret), "{secret} is in the case:\n{text}");
    }
    for kept in ["redacted-", "redis://:redacted-", "name: login", "kind: ConfigMap", "verdict: done", "match: exact"] {
        ensure!(text.contains(kept), "{kept:?} is not in the case:\n{text}");
    }
    let (case, plugin) = (file.as_os_str(), artifacts::guest("scripted")?);
    let passed = pilothouse(["test".as_ref(), case, "--plugin".as_ref(), plugin.as_os_str()]).await?.succeeded()?;
    ensure!(passed.contains("1 cases: 1 passed"), "{passed}");

    // What is there is not overwritten.
    capture(env, "Scripted/web", &file).await?.failed_with(&["is there already"])?;
    ensure!(std::fs::read_to_string(&file)? == text, "the file is another one");
    Ok(())
}

async fn what_cannot_be_captured_is_told(env: &mut TestEnv) -> Result<()> {
    let secret = json!({"password": "web-hunter2"});
    env.namespace
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": secret}))
        .await?;
    let lookups = json!([{"kind": "Secret", "name": "login"}]);
    env.namespace.apply(scripted("my-web-hunter2", json!({"lookups": lookups, "response": {}}))).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("case.yaml");
    for (object, words) in [
        ("Scripted/absent", &["Scripted", "absent", "there is no such object"][..]),
        ("Scripted/my-web-hunter2", &["a value of a Secret is part of a name", "nothing was written"]),
        ("ConfigMap/absent", &["works on objects of test.pilothouse.dev/v1 Scripted", "--plugin"]),
        ("Nonsense/absent", &["the cluster has no kind 'Nonsense'"]),
    ] {
        capture(env, object, &file).await?.failed_with(words)?;
        ensure!(!file.exists(), "{object}: it wrote a file");
    }
    Ok(())
}

/// Captures an object of the test's namespace to a file.
async fn capture(env: &TestEnv, object: &str, file: &Path) -> Result<Ended> {
    let (setup, plugin) = (env.namespace.setup(), artifacts::guest("scripted")?);
    let own = ["capture".as_ref(), object.as_ref(), "--output".as_ref(), file.as_os_str()];
    let place =
        ["--namespace".as_ref(), env.namespace.name.as_ref(), "--kubeconfig".as_ref(), setup.kubeconfig.as_os_str()];
    let with = ["--plugin".as_ref(), plugin.as_os_str(), "--cache-dir".as_ref(), setup.cache.as_os_str()];
    pilothouse(own.into_iter().chain(place).chain(with)).await
}
