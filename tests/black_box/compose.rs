//! Kinds without code: the plugin `compose`, whose kinds come from its configuration, on a real API server.

use std::{ffi::OsStr, path::PathBuf};

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, PATIENCE, condition},
    gzip::gzipped,
};
use serde_json::{Value, json};

use crate::{
    command::{file, pilothouse},
    plugin_objects::{install_by_command, resume, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// The name of the ConfigMap with the component, which the examples name.
const COMPONENT: &str = "compose";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        one_file_installs_a_kind_without_code,
        a_composition_that_is_wrong_is_told_and_the_one_before_goes_on,
        two_kinds_of_one_component_are_two_plugins,
        a_child_waits_until_the_one_that_it_reads_is_ready,
        a_missing_lookup_of_a_composition_is_awaited,
        install_gives_a_composition_the_rights_of_its_kinds_and_no_more,
        install_refuses_a_composition_that_is_wrong,
        a_file_takes_its_kind_from_the_configuration_of_its_name,
        a_composition_is_tried_out_without_a_cluster,
        an_object_of_a_composition_is_captured,
        the_app_of_a_tutorial_is_ready_once_its_deployment_is_available,
        the_buckets_of_a_tutorial_come_and_go_with_their_names,
    );
}

async fn one_file_installs_a_kind_without_code(env: &mut TestEnv) -> Result<()> {
    let plugin = start_with_shop(env).await?;
    let kind = json!({"apiVersion": "apps.example.com/v1", "kind": "AppService"});
    ensure!(plugin["status"]["reconciles"] == kind, "{}", plugin["status"]);
    let deployment = env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    ensure!(deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/web:1", "{deployment}");
    ensure!(deployment["metadata"]["ownerReferences"][0]["kind"] == "AppService", "{deployment}");
    let reported = |object: &Value| condition(object, "Ready")["message"] == "0 of 3 replicas ready";
    env.namespace.until("AppService", "shop", "to be told of", reported).await?;

    // A change of the object, drift, and what the Deployment's controller reports.
    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 2}})).await?;
    let has = |number: i64| move |object: &Value| object["spec"]["replicas"] == number;
    env.namespace.until("Deployment", "shop", "to have 2 replicas", has(2)).await?;
    env.namespace.patch("Deployment", "shop", json!({"spec": {"replicas": 7}})).await?;
    env.namespace.until("Deployment", "shop", "to have 2 replicas again", has(2)).await?;
    env.namespace.delete("Service", "shop").await?;
    env.namespace
        .until("Service", "shop", "to be made again", |it| it["metadata"]["deletionTimestamp"].is_null())
        .await?;

    // Another composition reconciles all objects.
    let mut config = config_of("app-service.yaml")?;
    config["resources"][1]["template"]["spec"]["ports"][0]["port"] = json!(81);
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"config": config}})).await?;
    let is_81 = |object: &Value| object["spec"]["ports"][0]["port"] == 81;
    env.namespace.until("Service", "shop", "to have the port of the new composition", is_81).await?;
    // A child that it does not name any more goes.
    let resources = json!([config["resources"][0]]);
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"config": {"resources": resources}}})).await?;
    env.namespace.until_gone("Service", "shop").await
}

async fn a_composition_that_is_wrong_is_told_and_the_one_before_goes_on(env: &mut TestEnv) -> Result<()> {
    start_with_shop(env).await?;
    env.namespace.until("Service", "shop", "to be there", |_| true).await?;
    let right = config_of("app-service.yaml")?;
    let mut wrong = right.clone();
    wrong["resources"][1]["template"]["spec"]["type"] = json!("${shema.spec.type}");
    wrong["resources"][0]["readyWhen"] = json!(["${servce.spec.clusterIP != ''}"]);
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"config": wrong}})).await?;
    let is_told = |object: &Value| condition(object, "Stalled")["reason"] == "ConfigInvalid";
    let plugin = env.namespace.until("Plugin", "app-service", "to say what is wrong", is_told).await?;
    let said = text(&condition(&plugin, "Loaded")["message"]).to_owned();
    for words in [
        "resources[1].template.spec.type: `shema.spec.type`: there is nothing called `shema`",
        "did you mean `schema`?",
        "resources[0].readyWhen[0]: `servce.spec.clusterIP != ''`: there is nothing called `servce`",
        "did you mean `service`?",
    ] {
        ensure!(said.contains(words), "it does not say {words:?}: {said}");
    }
    env.namespace.patch("Deployment", "shop", json!({"spec": {"replicas": 7}})).await?;
    let is_3 = |object: &Value| object["spec"]["replicas"] == 3;
    env.namespace.until("Deployment", "shop", "to be put right by the composition before", is_3).await?;
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"config": right}})).await?;
    env.namespace.until("Plugin", "app-service", "to be ready again", is_ready).await.map(drop)
}

async fn two_kinds_of_one_component_are_two_plugins(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    for example in ["app-service.yaml", "llm-deployment.yaml"] {
        apply_example(env, example).await?;
    }
    for plugin in ["app-service", "llm-deployment"] {
        ready(env, plugin).await?;
    }
    env.namespace.apply(app("shop")).await?;
    let child = env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    ensure!(child["metadata"]["labels"]["pilothouse.dev/plugin"] == "app-service", "{child}");

    // What is not granted to one of them stops that one alone.
    let none = json!({"spec": {"grants": {"children": []}}});
    env.namespace.patch("Plugin", "llm-deployment", none).await?;
    let refused = |object: &Value| condition(object, "Loaded")["reason"] == "NotGranted";
    let plugin = env.namespace.until("Plugin", "llm-deployment", "to be refused", refused).await?;
    let said = text(&condition(&plugin, "Loaded")["message"]).to_owned();
    ensure!(said.contains("apps/v1 Deployment") && said.contains("spec.grants.children"), "{said}");
    env.namespace.apply(app("another")).await?;
    env.namespace.until("Deployment", "another", "to be there", |_| true).await?;
    let other = env.namespace.get("Plugin", "app-service").await?.context("it is gone")?;
    ensure!(is_ready(&other), "{}", other["status"]);

    // One of them that goes takes nothing of the other along.
    env.namespace.delete("Plugin", "llm-deployment").await?;
    env.namespace.until_gone("Plugin", "llm-deployment").await?;
    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 2}})).await?;
    env.namespace.until("Deployment", "shop", "to have 2 replicas", |it| it["spec"]["replicas"] == 2).await.map(drop)
}

async fn a_child_waits_until_the_one_that_it_reads_is_ready(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    apply_example(env, "app-service.yaml").await?;
    let map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let first = map("${schema.metadata.name}-first", json!({"image": "${schema.spec.image}"}));
    let second =
        map("${schema.metadata.name}-second", json!({"uid": "${first.metadata.uid}", "go": "${first.data.go}"}));
    let resources = json!([
        {"id": "second", "template": second},
        {"id": "first", "template": first, "readyWhen": ["${first.data.go == 'now'}"]},
    ]);
    let config = json!({"resources": resources, "variables": null, "status": null, "conditions": null});
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"config": config}})).await?;
    ready(env, "app-service").await?;
    env.namespace.apply(app("shop")).await?;
    let first = env.namespace.until("ConfigMap", "shop-first", "to be there", |_| true).await?;
    let waits = |words: &'static str| {
        move |object: &Value| {
            let ready = condition(object, "Ready");
            ready["reason"] == "AwaitingResources" && text(&ready["message"]).contains(words)
        }
    };
    env.namespace.until("AppService", "shop", "to wait for a field", waits("there is no field `go`")).await?;
    // What the composition does not name belongs to others.
    env.namespace.patch("ConfigMap", "shop-first", json!({"data": {"go": "soon"}})).await?;
    env.namespace.until("AppService", "shop", "to wait for readiness", waits("waits until `first` is ready")).await?;
    ensure!(env.namespace.get("ConfigMap", "shop-second").await?.is_none(), "it does not wait");
    env.namespace.patch("ConfigMap", "shop-first", json!({"data": {"go": "now"}})).await?;
    let second = env.namespace.until("ConfigMap", "shop-second", "to be there", |_| true).await?;
    ensure!(second["data"]["uid"] == first["metadata"]["uid"], "{second}");
    env.namespace.until("AppService", "shop", "to be ready", is_ready).await?;
    // It follows, and stays once it is there.
    env.namespace.patch("ConfigMap", "shop-first", json!({"data": {"go": "later"}})).await?;
    env.namespace.until("ConfigMap", "shop-second", "to follow", |it| it["data"]["go"] == "later").await?;
    let unready = |object: &Value| condition(object, "Ready")["reason"] == "NotReady";
    env.namespace.until("AppService", "shop", "not to be ready", unready).await.map(drop)
}

async fn a_missing_lookup_of_a_composition_is_awaited(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    apply_example(env, "llm-deployment.yaml").await?;
    ready(env, "llm-deployment").await?;
    env.namespace
        .apply(json!({
            "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": "chat-service"},
            "spec": {"modelRef": "gpt-small", "replicas": 2},
        }))
        .await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "ModelNotFound";
    env.namespace.until("LLMDeployment", "chat-service", "to wait for its model", waits).await?;
    ensure!(env.namespace.get("Service", "chat-service").await?.is_none(), "it does not wait");
    let model = |image: &str| {
        json!({
            "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMModel", "metadata": {"name": "gpt-small"},
            "spec": {"modelName": "GPT-Small", "image": image, "resources": {"cpu": "2", "memory": "4Gi"}},
        })
    };
    env.namespace.apply(model("registry.example.com/gpt-small:v1")).await?;
    for kind in ["Deployment", "Service", "PodDisruptionBudget"] {
        env.namespace.until(kind, "chat-service", "to be there", |_| true).await?;
    }
    env.namespace.apply(model("registry.example.com/gpt-small:v2")).await?;
    let is_next = |object: &Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/gpt-small:v2"
    };
    env.namespace.until("Deployment", "chat-service", "to have the model's new image", is_next).await.map(drop)
}

async fn install_gives_a_composition_the_rights_of_its_kinds_and_no_more(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let example = example("app-service.yaml");
    let file = example.to_str().context("a path that is no text")?;
    // The CRD comes along.
    install_by_command(env, &artifacts::plugin("compose")?, &["--config", file]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let plugin = env.namespace.get("Plugin", "app-service").await?.context("there is no Plugin")?;
    let children = json!([{"group": "apps", "kind": "Deployment"}, {"group": "", "kind": "Service"}]);
    let grants = &plugin["spec"]["grants"];
    ensure!((&grants["children"], &grants["lookups"]) == (&children, &json!([])), "{grants}");
    let printed =
        install_by_command(env, &artifacts::plugin("compose")?, &["--config", file, "--dry-run"]).await?.succeeded()?;
    let objects = serde_saphyr::from_multiple::<Value>(&printed)?;
    ensure!(objects.iter().any(|it| it["kind"] == "CustomResourceDefinition"), "the CRD does not come along");
    let of_account = |object: &&Value| object["metadata"]["name"] == "pilothouse-plugin-app-service.account";
    let role = objects.iter().filter(|it| it["kind"] == "ClusterRole").find(of_account).context("no role")?;
    let resources: Vec<_> = role["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|rule| rule["resources"].as_array().cloned().unwrap_or_default())
        .collect();
    let allowed = ["deployments", "services", "appservices", "appservices/finalizers"];
    ensure!(resources.iter().all(|it| allowed.contains(&text(it))), "more than it needs: {resources:?}");
    ensure!(resources.contains(&json!("deployments")) && resources.contains(&json!("services")), "{resources:?}");
    Ok(())
}

async fn install_refuses_a_composition_that_is_wrong(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let component = artifacts::plugin("compose")?;
    let mut wrong = config_of("app-service.yaml")?;
    wrong["resources"][0]["template"]["metadata"]["name"] = json!("${service.metadata.name}");
    wrong["resources"][1]["template"]["metadata"]["name"] = json!("${deployment.metadata.name}");
    let wrong = file(wrong.to_string().as_bytes())?;
    let path = wrong.path().to_str().context("a path that is no text")?;
    let refused = install_by_command(env, &component, &["--config", path]).await?;
    refused.failed_with(&["`deployment` reads `service` reads `deployment`: that is a circle"])?;
    let without = install_by_command(env, &component, &[]).await?;
    without.failed_with(&["the kind that this plugin reconciles comes from its configuration", "--config"])?;
    let settings = json!({
        "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "app-service"},
        "spec": {"config": config_of("app-service.yaml")?, "suspended": true},
    });
    let settings = file(settings.to_string().as_bytes())?;
    let path = settings.path().to_str().context("a path that is no text")?;
    let dropped = install_by_command(env, &component, &["--config", path]).await?;
    dropped.failed_with(&["spec.suspended is not read from a file"])?;
    ensure!(env.namespace.list("Plugin").await?.is_empty(), "something was installed");
    Ok(())
}

async fn a_file_takes_its_kind_from_the_configuration_of_its_name(env: &mut TestEnv) -> Result<()> {
    let config = format!("shop={}", example("app-service.yaml").display());
    env.set_up_host(|setup| setup.arguments = vec!["--config".to_owned(), config])?;
    let component = artifacts::plugin("compose")?;
    env.host.install(&component, "shop.wasm")?;
    env.host.install(&component, "compose.wasm")?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.namespace.apply(app("web")).await?;
    let child = env.namespace.until("Deployment", "web", "to be there", |_| true).await?;
    ensure!(child["metadata"]["labels"]["pilothouse.dev/plugin"] == "app-service", "{child}");
    // One without a configuration is no error, for nothing is wrong with it.
    env.host.logged("the plugin takes its kinds from its configuration, and does nothing without one").await?;
    ensure!(!env.host.log().contains("the plugin was not loaded"), "{}", env.host.log());
    Ok(())
}

async fn a_composition_is_tried_out_without_a_cluster(_env: &mut TestEnv) -> Result<()> {
    let component = artifacts::plugin("compose")?;
    let component = component.to_str().context("a path that is no text")?;
    for name in ["app.yaml", "app-service.yaml", "llm-deployment.yaml", "x-buckets.yaml"] {
        let (config, cases) = (example(name), example("cases").join(name));
        let (config, cases) = (config.display().to_string(), cases.display().to_string());
        let tested = pilothouse(["test", &cases, "--plugin", component, "--config", &config]).await?;
        ensure!(tested.code == 0 && tested.output.contains("0 failed"), "{tested:?}");
        let rights = pilothouse(["rbac", component, "--config", &format!("compose={config}")]).await?.succeeded()?;
        let has_buckets = name == "x-buckets.yaml";
        ensure!(rights.contains("deployments") != has_buckets && rights.contains("buckets") == has_buckets, "{rights}");
        ensure!(rights.contains("llmmodels") == (name == "llm-deployment.yaml"), "{rights}");
    }
    let object = file(app("web").to_string().as_bytes())?;
    let object = object.path().display().to_string();
    let config = example("app-service.yaml").display().to_string();
    let rendered = pilothouse(["render", component, &object, "--config", &config]).await?.succeeded()?;
    let children = serde_saphyr::from_multiple::<Value>(&rendered)?;
    let kinds: Vec<_> = children.iter().map(|child| text(&child["kind"])).collect();
    ensure!(kinds == ["Deployment", "Service"], "{kinds:?}");
    let inspected = pilothouse(["inspect", component]).await?.succeeded()?;
    ensure!(inspected.contains("come from its configuration") && !inspected.contains("reconciles:"), "{inspected}");
    Ok(())
}

/// The example that Crossplane's tutorial has.
async fn the_app_of_a_tutorial_is_ready_once_its_deployment_is_available(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    apply_example(env, "app.yaml").await?;
    ready(env, "app").await?;
    let api_version = "example.crossplane.io/v1";
    let object = |image: &str| json!({"apiVersion": api_version, "kind": "App", "metadata": {"name": "my-app"}, "spec": {"image": image}});
    env.namespace.apply(object("nginx")).await?;
    env.namespace.until("Deployment", "my-app", "to be there", |_| true).await?;
    let service = env.namespace.until("Service", "my-app", "to have an address", |_| true).await?;
    let waits = |app: &Value| {
        app["status"]["address"] == service["spec"]["clusterIP"] && condition(app, "Ready")["status"] == "False"
    };
    let app = env.namespace.until("App", "my-app", "to wait for its Deployment", waits).await?;
    ensure!(app["status"]["replicas"] == 0, "{app}");
    let status = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": [{"type": "Available", "status": "True"}],
    });
    let patch = Patch::Merge(json!({"status": status}));
    env.namespace.api("Deployment")?.patch_status("my-app", &PatchParams::default(), &patch).await?;
    let app = env.namespace.until("App", "my-app", "to be ready", is_ready).await?;
    ensure!(app["status"]["replicas"] == 2, "{app}");
    // Another image is rolled out first.
    env.namespace.apply(object("httpd")).await?;
    let is_next = |found: &Value| found["spec"]["template"]["spec"]["containers"][0]["image"] == "httpd";
    env.namespace.until("Deployment", "my-app", "to have the image", is_next).await?;
    let waits = |app: &Value| condition(app, "Ready")["status"] == "False";
    env.namespace.until("App", "my-app", "to wait again", waits).await.map(drop)
}

/// The example that Crossplane's guide to functions has, with the kind of a provider that is not there.
async fn the_buckets_of_a_tutorial_come_and_go_with_their_names(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema},
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.s3.aws.m.upbound.io"},
        "spec": {
            "group": "s3.aws.m.upbound.io", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Bucket", "plural": "buckets", "singular": "bucket"},
        },
    });
    env.namespace.apply(crd).await?;
    apply_example(env, "x-buckets.yaml").await?;
    ready(env, "x-buckets").await?;
    let object = json!({
        "apiVersion": "example.crossplane.io/v1", "kind": "XBuckets", "metadata": {"name": "data"},
        "spec": {"region": "us-east-2", "names": ["raw", "cooked"]},
    });
    env.namespace.apply(object).await?;
    for bucket in ["data-raw", "data-cooked"] {
        let found = env.namespace.until("Bucket", bucket, "to be there", |_| true).await?;
        ensure!(found["spec"]["forProvider"]["region"] == "us-east-2", "{found}");
    }
    let is = |status: &'static str| move |object: &Value| condition(object, "Ready")["status"] == status;
    // A provider says first that a bucket is not there yet.
    let say = async |bucket: &str, status: &str| -> Result<()> {
        let ready = json!({"type": "Ready", "status": status, "reason": "Told"});
        let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
        env.namespace.api("Bucket")?.patch_status(bucket, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    say("data-raw", "True").await?;
    say("data-cooked", "False").await?;
    env.namespace.until("XBuckets", "data", "to wait for a bucket", is("False")).await?;
    say("data-cooked", "True").await?;
    env.namespace.until("XBuckets", "data", "to be ready", is_ready).await?;
    env.namespace.patch("XBuckets", "data", json!({"spec": {"names": ["raw"]}})).await?;
    env.namespace.until_gone("Bucket", "data-cooked").await?;
    env.namespace.until("Bucket", "data-raw", "to stay", |_| true).await.map(drop)
}

async fn an_object_of_a_composition_is_captured(env: &mut TestEnv) -> Result<()> {
    start_with_shop(env).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let component = artifacts::plugin("compose")?;
    let component = component.to_str().context("a path that is no text")?;
    let folder = tempfile::tempdir()?;
    let case = folder.path().join("shop.yaml");
    let case = case.to_str().context("a path that is no text")?;
    let setup = env.namespace.setup();
    let capture = async |object: &str, file: &str, more: &[&str]| {
        let own = ["capture", object, "--plugin", component, "--namespace", &env.namespace.name, "--output", file];
        let own = own.into_iter().chain(more.iter().copied()).map(OsStr::new);
        let place =
            ["--kubeconfig".as_ref(), setup.kubeconfig.as_os_str(), "--cache-dir".as_ref(), setup.cache.as_os_str()];
        pilothouse(own.chain(place)).await
    };

    // The kind is that of the Plugin's configuration, which comes with the case.
    capture("AppService/shop", case, &[]).await?.succeeded()?;
    let text = std::fs::read_to_string(case)?;
    ensure!(text.contains("kind: Deployment") && text.contains("resources:"), "{text}");
    let passed = pilothouse(["test", case, "--plugin", component]).await?.succeeded()?;
    ensure!(passed.contains("1 cases: 1 passed"), "{passed}");
    let config = example("app-service.yaml").display().to_string();
    let twice = pilothouse(["test", case, "--plugin", component, "--config", &config]).await?;
    twice.failed_with(&["the case has a configuration of its own"])?;
    let without = file("object: {apiVersion: v1, kind: Secret, metadata: {name: a}}\n".as_bytes())?;
    let path = without.path().to_str().context("a path that is no text")?;
    pilothouse(["test", path, "--plugin", component]).await?.failed_with(&["and the case has none", "--config"])?;

    // Of a kind that no Plugin has, it comes from a file.
    let other = folder.path().join("other.yaml");
    let other = other.to_str().context("a path that is no text")?;
    capture("ConfigMap/absent", other, &[])
        .await?
        .failed_with(&["the cluster has no Plugin that reconciles v1 ConfigMap"])?;
    env.namespace.delete("Plugin", "app-service").await?;
    env.namespace.until_gone("Plugin", "app-service").await?;
    capture("AppService/shop", other, &[]).await?.failed_with(&["no Plugin that reconciles", "--config"])?;
    capture("AppService/shop", other, &["--config", &config]).await?.succeeded()?;
    let passed = pilothouse(["test", other, "--plugin", component]).await?.succeeded()?;
    ensure!(passed.contains("1 cases: 1 passed"), "{passed}");
    Ok(())
}

/// Moves to an API server of its own, with the component in the host's namespace and no plugin.
async fn start(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    resume(env).await?;
    env.host.ready().await?;
    store(env, COMPONENT, &[&gzipped(&std::fs::read(artifacts::plugin("compose")?)?)?]).await
}

/// The same with the composition of the example, and an object of its kind. Returns the `Plugin` once it is ready.
async fn start_with_shop(env: &mut TestEnv) -> Result<Value> {
    start(env).await?;
    apply_example(env, "app-service.yaml").await?;
    let plugin = ready(env, "app-service").await?;
    env.namespace.apply(app("shop")).await?;
    Ok(plugin)
}

/// Waits until a `Plugin` is ready, which takes the first tests longer: they compile the component all at once.
async fn ready(env: &TestEnv, name: &str) -> Result<Value> {
    let awaited = Awaited { kind: "Plugin", name, what: "to be ready" };
    env.namespace.until_within(6 * PATIENCE, &awaited, is_ready).await
}

fn example(name: &str) -> PathBuf {
    artifacts::repository().join("examples/compose").join(name)
}

fn documents(name: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(&std::fs::read_to_string(example(name))?)?)
}

/// The composition of an example.
pub fn config_of(name: &str) -> Result<Value> {
    let plugin = documents(name)?.into_iter().find(|document| document["kind"] == "Plugin");
    Ok(plugin.context("it has no Plugin")?["spec"]["config"].clone())
}

/// As `kubectl apply -f` does: one document after the other.
async fn apply_example(env: &TestEnv, name: &str) -> Result<()> {
    for document in documents(name)? {
        env.namespace.apply(document).await?;
    }
    Ok(())
}
