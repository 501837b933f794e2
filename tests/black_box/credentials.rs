//! The host's credentials: the service account of its pod, and tokens that are rotated while it runs.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Secret, ServiceAccount},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use pilothouse_control_plane::Part;
use pilothouse_tests::{
    cluster::PATIENCE,
    needs,
    pod::Pod,
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    suite::{Suite, tests, tests_with},
    test_env::{TestEnv, app},
};

/// The host's service account.
const ACCOUNT: &str = "host";

pub fn register(suite: &mut Suite) {
    tests_with!(suite, needs::own_mounts(), a_pod_finds_its_cluster_and_its_namespace);
    tests!(suite, a_replaced_token_is_not_noticed);
}

async fn a_pod_finds_its_cluster_and_its_namespace(env: &mut TestEnv) -> Result<()> {
    let folder = account(env).await?;
    let pod = Pod { account: folder.path().to_owned(), server: env.cluster.plane.url().to_owned() };
    env.set_up_host(|setup| {
        setup.pod = Some(pod);
        setup.arguments = vec!["--leader-elect".to_owned()];
    })?;
    env.start_with_web().await?;
    for (kind, name) in [("Lease", "pilothouse"), ("ConfigMap", "pilothouse-kinds")] {
        ensure!(env.namespace.get(kind, name).await?.is_some(), "{kind} {name} is in another namespace");
    }
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", env.namespace.name);
    ensure!(!env.writes_of(&user).await?.is_empty(), "the host is somebody else");
    Ok(())
}

/// The old token is bound to a Secret and invalid once that is deleted. The API server is restarted as well, so that the watches
/// start with the new token.
async fn a_replaced_token_is_not_noticed(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await?;
    let folder = account(env).await?;
    let user = json!({"tokenFile": folder.path().join("token")});
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig(env, folder.path(), &user).to_string())?;
    env.set_up_host(|setup| setup.kubeconfig = path)?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    has_replicas(env, 3).await?;

    let old = std::fs::read_to_string(folder.path().join("token"))?;
    replace_token(env, folder.path(), "second").await?;
    env.namespace.delete("Secret", "first").await?;
    refused(env, &kubeconfig(env, folder.path(), &json!({"token": old.trim()}))).await?;
    for (replicas, restart) in [(4, false), (5, true)] {
        if restart {
            env.cluster.plane.kill_part(Part::ApiServer).await?;
            env.cluster.plane.start_part(Part::ApiServer).await?;
        }
        env.namespace.patch("AppService", "web", json!({"spec": {"replicas": replicas}})).await?;
        has_replicas(env, replicas).await?;
        env.namespace.patch("Deployment", "web", json!({"spec": {"replicas": 1}})).await?;
        has_replicas(env, replicas).await?;
    }
    let warnings: Vec<_> =
        env.namespace.list("Event").await?.into_iter().filter(|event| event["type"] == "Warning").collect();
    ensure!(warnings.is_empty(), "it was noticed: {warnings:#?}");
    Ok(())
}

async fn has_replicas(env: &TestEnv, replicas: u32) -> Result<()> {
    let holds = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
    env.namespace.until("Deployment", "web", &format!("to have {replicas} replicas"), holds).await?;
    Ok(())
}

/// Creates a service account with all rights in the test's namespace, and returns a directory with the files that a pod has of it.
async fn account(env: &TestEnv) -> Result<TempDir> {
    let namespace = &env.namespace.name;
    let meta = |name: &str| json!({"name": name});
    env.namespace.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(ACCOUNT)})).await?;
    for name in ["first", "second"] {
        env.namespace.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(name)})).await?;
    }
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": meta(ACCOUNT),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    });
    let bindings = Api::<RoleBinding>::namespaced(env.namespace.client(), namespace);
    bindings.patch(ACCOUNT, &PatchParams::apply("tests").force(), &Patch::Apply(binding)).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("ca.crt"), env.cluster.plane.ca_pem())?;
    std::fs::write(folder.path().join("namespace"), namespace)?;
    replace_token(env, folder.path(), "first").await?;
    Ok(folder)
}

/// Replaces the token by a new one that is bound to this Secret.
async fn replace_token(env: &TestEnv, folder: &Path, secret: &str) -> Result<()> {
    let (client, namespace) = (env.namespace.client(), &env.namespace.name);
    let uid = Api::<Secret>::namespaced(client.clone(), namespace).get(secret).await?.metadata.uid;
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: Some(secret.to_owned()),
        uid,
    };
    let spec = TokenRequestSpec { bound_object_ref: Some(bound), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let accounts = Api::<ServiceAccount>::namespaced(client, namespace);
    let given: TokenRequest = accounts.create_subresource("token", ACCOUNT, &PostParams::default(), &request).await?;
    let token = given.status.context("there is no token")?.token;
    std::fs::write(folder.join(".token"), format!("{token}\n"))?;
    std::fs::rename(folder.join(".token"), folder.join("token"))?;
    Ok(())
}

/// A kubeconfig for this user, with the API server's certificate from the folder.
fn kubeconfig(env: &TestEnv, folder: &Path, user: &Value) -> Value {
    let cluster = json!({"server": env.cluster.plane.url(), "certificate-authority": folder.join("ca.crt")});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": env.namespace.name}}],
        "current-context": "x",
    })
}

/// Waits until the API server refuses the user of this kubeconfig. It caches valid tokens for some seconds.
async fn refused(env: &TestEnv, kubeconfig: &Value) -> Result<()> {
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig.clone())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let secrets = Api::<Secret>::namespaced(Client::try_from(config)?, &env.namespace.name);
    eventually(PATIENCE, "the old token to be refused", async || {
        let answer = secrets.list(&Default::default()).await;
        let refused = matches!(&answer, Err(kube::Error::Api(status)) if status.code == 401);
        Ok(Look::of(refused, answer.map(|list| list.items.len())))
    })
    .await
}
