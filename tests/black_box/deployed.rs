//! Hosts as `deploy/` has them: objects of a manifest or of a chart in the API server, and host processes with the arguments and variables of
//! the Deployment there and with a token of its service account, and nothing more. Installs no plugin.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use pilothouse_tests::{artifacts, cluster::api, host::Setup};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{plugin_objects::text, test_env::TestEnv};

/// A deployed host, and how to run it here.
pub struct Deployed {
    /// The namespace and the name of its service account.
    pub account: (String, String),
    setup: Setup,
    folder: TempDir,
}

impl Deployed {
    /// The Deployment of this name and namespace.
    ///
    /// # Errors
    /// If there is none, or its host cannot run outside of a cluster.
    pub async fn read(env: &TestEnv, namespace: &str, name: &str) -> Result<Self> {
        let deployment = api(&env.namespace.client(), "Deployment", Some(namespace))?.get(name).await?;
        let pod = deployment.data["spec"]["template"]["spec"].clone();
        let account = (namespace.to_owned(), text(&pod["serviceAccountName"]).to_owned());
        let (folder, kubeconfig) = kubeconfig(env, &account).await?;
        let mut setup = Setup { kubeconfig, arguments: Vec::new(), namespace: None, ..env.namespace.setup() };
        take_arguments(&mut setup, &pod["containers"][0]["args"])?;
        take_variables(&mut setup, &pod["containers"][0]["env"], namespace)?;
        Ok(Self { account, setup, folder })
    }

    /// How a process is started as one of its Pods would be.
    pub fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// The kubeconfig with the token.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The name that the API server knows the account by.
    pub fn user(&self) -> String {
        user(&self.account.0, &self.account.1)
    }
}

/// The name that the API server knows a service account by.
pub fn user(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// The arguments of the container. Folders of a container are those of the test.
fn take_arguments(setup: &mut Setup, arguments: &Value) -> Result<()> {
    let arguments: Vec<_> = arguments.as_array().context("no arguments")?.iter().map(text).collect();
    let [command, arguments @ ..] = &arguments[..] else { bail!("no command") };
    anyhow::ensure!(*command == "run", "the command is {command}");
    let is_folder = |argument: &&&str| argument.starts_with("--cache-dir=") || argument.starts_with("--plugins=");
    setup.arguments.extend(arguments.iter().filter(|argument| !is_folder(argument)).map(|it| (*it).to_owned()));
    Ok(())
}

/// The variables of the container, as the arguments that mean the same.
fn take_variables(setup: &mut Setup, variables: &Value, namespace: &str) -> Result<()> {
    for variable in variables.as_array().into_iter().flatten() {
        match text(&variable["name"]) {
            "POD_NAMESPACE" => setup.arguments.push(format!("--host-namespace={namespace}")),
            "WATCH_NAMESPACE" => setup.namespace = Some(text(&variable["value"]).to_owned()),
            // The tests read the log as JSON and at their own level.
            "LOG_LEVEL" | "LOG_FORMAT" => {}
            other => bail!("the tests do not know the variable {other}"),
        }
    }
    Ok(())
}

/// Applies `deploy/pilothouse.yaml`, with the test's namespace as the host's.
///
/// # Errors
/// If the API server refuses an object.
pub async fn apply_manifest(env: &TestEnv) -> Result<()> {
    let manifest = std::fs::read_to_string(artifacts::repository().join("deploy/pilothouse.yaml"))?;
    let manifest = manifest.replace("namespace: \"pilothouse\"\n", &format!("namespace: {}\n", env.namespace.name));
    for object in serde_saphyr::from_multiple::<Value>(&manifest)? {
        if object["kind"] != "Namespace" {
            apply(env, &object, &PatchParams::apply("tests").force()).await?;
        }
    }
    Ok(())
}

/// Applies an object of any kind, in the namespace that it names.
///
/// # Errors
/// If the API server refuses it.
pub async fn apply(env: &TestEnv, object: &Value, how: &PatchParams) -> Result<()> {
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(env.namespace.client(), namespace, &resource),
        None => Api::all_with(env.namespace.client(), &resource),
    };
    let name = text(&object["metadata"]["name"]);
    let applied = api.patch(name, how, &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("failed to apply {kind} '{name}'"))
}

/// A kubeconfig with a token of a service account, which is named with its namespace, and its folder.
///
/// # Errors
/// If there is no such account.
pub async fn kubeconfig(env: &TestEnv, account: &(String, String)) -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(folder.path().join("ca.crt"), env.cluster.plane.ca_pem())?;
    std::fs::write(&kubeconfig, kubeconfig_of(env, folder.path(), &token(env, account).await?).to_string())?;
    Ok((folder, kubeconfig))
}

async fn token(env: &TestEnv, account: &(String, String)) -> Result<String> {
    let (namespace, name) = account;
    let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
    let accounts = Api::<ServiceAccount>::namespaced(env.namespace.client(), namespace);
    let given: TokenRequest = accounts.create_subresource("token", name, &PostParams::default(), &request).await?;
    Ok(given.status.context("there is no token")?.token)
}

fn kubeconfig_of(env: &TestEnv, folder: &Path, token: &str) -> Value {
    let cluster = json!({"server": env.cluster.plane.url(), "certificate-authority": folder.join("ca.crt")});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    })
}
