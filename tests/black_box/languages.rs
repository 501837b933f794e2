//! Plugins in other languages than Rust, in a cluster: built as their authors build them, installed by one command, at work under accounts of
//! their own, and taken away again. They are the examples of `plugins/examples`, with a finalizer. Their answers are compared elsewhere.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{condition, install_crd},
    languages::Language,
    project::Project,
};
use serde_json::{Value, json};

use crate::{
    plugin_accounts::{command, install, start, user},
    suite::{Suite, Weight},
    test_env::TestEnv,
};

/// The finalizer of the plugin.
const FINALIZER: &str = "pilothouse.dev/web-site";

/// Its account.
const ACCOUNT: &str = "pilothouse-plugin-web-site";

/// A function of each language that lets an object go once it has no children, and the file that it is in.
const FINALIZERS: [(Language, &str, &str); 4] = [
    (
        Language::Go,
        "finalize.go",
        r#"package main

import (
	"example.com/web-site/pilothouse"
	"example.com/web-site/pilothouse/finalizer"
)

func init() { finalizer.Finalize(finalize) }

func finalize(*pilothouse.Request[Spec]) (*pilothouse.Response, error) {
	return pilothouse.Done().NoChildren(), nil
}"#,
    ),
    (
        Language::C,
        "plugin.c",
        "static void finalize(const ph_request *request, ph_response *response) { ph_no_children(response); }
PH_FINALIZE(finalize)",
    ),
    (
        Language::Python,
        "reconciler.py",
        "from pilothouse import finalizer
Finalizer = finalizer(lambda request: Response(children=[]))",
    ),
    (Language::TypeScript, "plugin.ts", "export const finalizer = { finalize: plugin(() => done().noChildren()) };"),
];

pub fn register(suite: &mut Suite) {
    for (language, file, finalizer) in FINALIZERS {
        let name = format!("a_plugin_in_another_language_lives_in_a_cluster_{}", language.name());
        if language.has_tools() {
            suite.test(module_path!(), &name, Weight::Heavy, async move |env: &mut TestEnv| {
                a_plugin_in_another_language_lives_in_a_cluster(env, language, (file, finalizer)).await
            });
        } else {
            suite.ignored(module_path!(), &name, "its tools are missing; see scripts/languages.sh");
        }
    }
}

async fn a_plugin_in_another_language_lives_in_a_cluster(
    env: &mut TestEnv,
    language: Language,
    (file, finalizer): (&str, &str),
) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    project.become_example()?;
    project.append("plugin.yaml", "finalizes: true")?;
    project.append(file, finalizer)?;
    let built = project.build()?;
    let plugin = project.root().join(built["file"].as_str().with_context(|| built.to_string())?);

    let _deployed = start(env).await?;
    install_crd(&env.namespace.client(), &project.root().join("crd.yaml")).await?;
    // Large ones take a while to compile on a busy machine.
    install(env, &plugin, &["--timeout", "10m"]).await?.succeeded()?;

    env.namespace.apply(website(json!({"image": "example.com/web:1", "replicas": 2}))).await?;
    let is_made = |deployment: &Value| image(deployment) == "example.com/web:1" && deployment["spec"]["replicas"] == 2;
    env.namespace.until("Deployment", "web", "to be made", is_made).await?;
    let reported = |object: &Value| {
        object["status"]["readyReplicas"] == 0 && object["metadata"]["finalizers"] == json!([FINALIZER])
    };
    let object = env.namespace.until("Website", "web", "to have a status and its finalizer", reported).await?;
    let available = condition(&object, "Available");
    ensure!(available["message"] == "0 of 2 Pods are ready", "{available}");

    env.namespace.patch("Website", "web", json!({"spec": {"image": "example.com/web:2", "replicas": 3}})).await?;
    let is_followed =
        |deployment: &Value| image(deployment) == "example.com/web:2" && deployment["spec"]["replicas"] == 3;
    env.namespace.until("Deployment", "web", "to follow the edit", is_followed).await?;
    let own = env.writes_of(&user(env, ACCOUNT)).await?;
    ensure!(own.iter().any(|write| write.starts_with("patch deployments/ web")), "others wrote the child: {own:?}");

    // An object that its plugin finds invalid says why, in the plugin's words.
    env.namespace.patch("Website", "web", json!({"spec": {"image": ""}})).await?;
    env.stalled("Website", "web", "Invalid").await?;

    env.namespace.delete("Website", "web").await?;
    env.namespace.until_gone("Website", "web").await?;
    env.namespace.until_gone("Deployment", "web").await?;
    command(env, &["uninstall", "web-site", "--yes"]).await?.succeeded()?;
    ensure!(env.namespace.get("Plugin", "web-site").await?.is_none(), "the Plugin is there");
    Ok(())
}

fn website(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web"}, "spec": spec})
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}
