//! Charts installed by Helm, with hosts that have the token of the chart's own account and nothing more. Who wrote what is read from the API
//! server's audit log.

use anyhow::{Context, Result, ensure};
use http::Request;
use jiff::Timestamp;
use pilothouse_tests::{
    artifacts,
    cluster::{api, condition, create_namespace, install_crd},
    gzip::gzipped,
    helm::{Helm, Release},
    host::Host,
    third_party::PYTORCH_JOB,
};
use serde_json::{Value, json};

use super::{PLUGINS, reference_plugins};
use crate::{
    deployed::{self, Deployed},
    llm::words::{model_deployment, server, serves},
    plugin_accounts::{put_rules, rules_without},
    plugin_objects::{store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
    training_job::words,
};

/// The name of the release, of its Deployment and of its account.
const HOST: &str = "pilothouse";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_reference_plugin_works_with_its_own_account,
        a_verb_taken_out_of_the_charts_rights_is_told_and_comes_back,
        the_other_host_takes_over_and_writes_nothing_twice,
        the_api_server_has_a_line_of_their_own_for_the_accounts,
        the_llm_operator_is_installed_as_the_seed_says,
    );
}

/// In one namespace of the shared cluster: its nodes run the Pods.
async fn every_reference_plugin_works_with_its_own_account(env: &mut TestEnv) -> Result<()> {
    let own = env.namespace.name.clone();
    install_crd(&env.namespace.client(), &PYTORCH_JOB.fetch().await?).await?;
    let watch = format!("watchNamespace={own}");
    let plugins = reference_plugins()?;
    let deployed = install(env, &["--values", &plugins, "--set", &watch]).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    for plugin in PLUGINS {
        env.host.logged(&format!(r#""the host has all rights that the plugin needs","plugin":"{plugin}""#)).await?;
    }
    env.namespace.apply(app("shop")).await?;
    env.at_rest("shop").await?;
    env.namespace.apply(server("llama", json!({}))).await?;
    serves(env, "LLMModel", "llama").await?;
    env.namespace.apply(model_deployment("chat", json!({}))).await?;
    serves(env, "ModelDeployment", "chat").await?;
    for object in sample("llmdeployment")? {
        env.namespace.apply(object).await?;
    }
    serves(env, "LLMDeployment", "chat-service").await?;
    env.namespace.until("LLMModel.llm.example.com", "gpt-small", "to be ready", is_ready).await?;
    trains(env).await?;
    trains_with_pytorch(env).await?;
    for (plugin, children) in [
        ("app-service", &["deployments/ shop", "services/ shop"][..]),
        ("training-job", &["pods/ mnist-worker-0", "configmaps/ mnist-hyperparameters", "services/ mnist"]),
        ("pytorch-job", &["pods/ vision-master-0", "pods/ vision-worker-1", "services/ vision-worker-0"]),
        ("ai-llm-model", &["deployments/ llmmodel-llama"]),
        ("llm-deployment", &["deployments/ chat-service", "services/ chat-service"]),
        ("model-deployment", &["statefulsets/ chat", "services/ chat"]),
    ] {
        let account = deployed::user(&own, &format!("pilothouse-plugin-{plugin}"));
        let writes = env.writes_of(&account).await?;
        for child in children {
            ensure!(writes.iter().any(|write| write.contains(child)), "{plugin} did not write {child}: {writes:#?}");
        }
    }
    // The host itself writes about objects, and what it keeps for itself.
    let hosts = env.writes_of(&deployed.user()).await?;
    let may = |write: &String| {
        [
            "/status ",
            " events/ ",
            " leases/ pilothouse ",
            " configmaps/ pilothouse-kinds ",
            " trainingjobs/ mnist ",
            " pytorchjobs/ vision ",
        ]
        .iter()
        .any(|part| write.contains(part))
            || write.starts_with("create leases/ ")
    };
    let others: Vec<_> = hosts.iter().filter(|write| !may(write)).collect();
    ensure!(others.is_empty() && !hosts.is_empty(), "the host itself wrote {others:#?}");
    env.host.stop().await
}

/// From its claim to its end and beyond: the finalizer comes and goes, and the job is deleted when its time is over.
async fn trains(env: &TestEnv) -> Result<()> {
    words::claim(env, "data").await?;
    let policy = json!({"ttlSecondsAfterFinished": 2});
    let spec = json!({"dataVolume": {"claimName": "data"}, "hyperparameters": {"rate": 0.1}, "runPolicy": policy});
    env.namespace.apply(words::job(spec)).await?;
    words::runs(env, words::JOB).await?;
    for pod in ["mnist-worker-0", "mnist-worker-1"] {
        words::exit(env, pod, 0).await?;
    }
    words::has(env, words::JOB, "Succeeded", "TrainingJobSucceeded").await?;
    env.namespace.until_gone("TrainingJob", words::JOB).await
}

/// The same for a job of the training operator's kind.
async fn trains_with_pytorch(env: &TestEnv) -> Result<()> {
    let file = artifacts::repository().join("plugins/pytorch-job/samples/mnist.yaml");
    let mut job: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    job["metadata"]["name"] = json!("vision");
    job["spec"]["runPolicy"] = json!({"ttlSecondsAfterFinished": 2});
    env.namespace.apply(job).await?;
    let all_run = |job: &Value| job["status"]["replicaStatuses"]["Worker"]["active"] == 2;
    env.namespace.until("PyTorchJob", "vision", "to run with its workers", all_run).await?;
    words::exit(env, "vision-master-0", 0).await?;
    env.namespace.until_gone("PyTorchJob", "vision").await
}

/// From the role of the plugin's account, and from that of the host.
pub async fn a_verb_taken_out_of_the_charts_rights_is_told_and_comes_back(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await?;
    let only = reference_plugin("app-service")?;
    let deployed = install(env, &["--set-json", &only]).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    reconciled(env, "shop").await?;
    let scale = async |replicas: u32| {
        env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": replicas}})).await.map(drop)
    };
    let scaled = async |replicas: u32| {
        let has = |it: &Value| it["spec"]["replicas"] == replicas;
        env.namespace.until("Deployment", "shop", &format!("to have {replicas} replicas"), has).await.map(drop)
    };

    let of_account = "pilothouse-plugin-app-service.account";
    let before = rules_without(env, of_account, "patch").await?;
    scale(2).await?;
    let account = deployed::user(&env.namespace.name, "pilothouse-plugin-app-service");
    let forbidden = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["reason"] == "Forbidden" && text(&ready["message"]).contains(&account)
    };
    env.namespace.until("AppService", "shop", "to say that its account may not", forbidden).await?;
    put_rules(env, of_account, before).await?;
    scaled(2).await?;

    let of_host = "pilothouse-plugin-app-service";
    let before = rules_without(env, of_host, "patch").await?;
    scale(3).await?;
    // What cannot be written on the object is told beside it.
    let event = env.event("AppService", "shop", "StatusForbidden").await?;
    ensure!(text(&event["message"]).contains(&deployed.user()), "it does not say who may not: {event}");
    scaled(3).await?;
    put_rules(env, of_host, before).await?;
    let said = |object: &Value| condition(object, "Ready")["observedGeneration"] == object["metadata"]["generation"];
    env.namespace.until("AppService", "shop", "to have a status of its generation", said).await?;
    env.host.stop().await
}

/// Two hosts as the Deployment has them, with the durations of its Lease. The one that leads is killed.
async fn the_other_host_takes_over_and_writes_nothing_twice(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/appservices.apps.example.com.yaml"];
    env.move_to_api_server_with(&crds).await?;
    let only = reference_plugin("app-service")?;
    let deployed = install(env, &["--set-json", &only]).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.logged("this host leads").await?;
    let mut second = Host::prepare(deployed.setup())?;
    second.resume().await?;
    second.logged("standing by").await?;
    for host in [&env.host, &second] {
        host.logged(r#""the host has all rights that the plugin needs","plugin":"app-service""#).await?;
    }
    reconciled(env, "before").await?;
    env.host.kill().await?;
    let lost = lease(env).await?;
    env.namespace.apply(app("after")).await?;
    second.logged("this host leads").await?;
    env.namespace.until("Deployment", "after", "to be there", |_| true).await?;
    let taken = lease(env).await?;
    // By what stands in the Lease: how busy the machine of the tests is makes no difference.
    let gap = time(&taken["acquireTime"])?.duration_since(time(&lost["renewTime"])?);
    ensure!(gap.as_secs() < 20 && taken["leaseTransitions"] == 1, "taken over after {gap:?}: {taken}");
    let writes = env.writes_of(&deployed::user(&env.namespace.name, "pilothouse-plugin-app-service")).await?;
    for child in ["deployments/ before", "services/ before", "deployments/ after", "services/ after"] {
        let count = writes.iter().filter(|write| write.starts_with(&format!("patch {child} "))).count();
        ensure!(count == 1, "{count} writes of {child}: {writes:#?}");
    }
    second.stop().await
}

/// By what the API server counts of the requests that it has worked on.
async fn the_api_server_has_a_line_of_their_own_for_the_accounts(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await?;
    let only = reference_plugin("app-service")?;
    let deployed = install(env, &["--set-json", &only, "--set", "priorityAndFairness.enabled=true"]).await?;
    for schema in ["pilothouse", "pilothouse-leases"] {
        let has_its_level = |schema: &Value| condition(schema, "Dangling")["status"] == "False";
        env.namespace.until("FlowSchema", schema, "to have its priority level", has_its_level).await?;
    }
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    reconciled(env, "shop").await?;
    let metrics = env.namespace.client().request_text(Request::get("/metrics").body(Vec::new())?).await?;
    for (schema, level) in [("pilothouse", "pilothouse"), ("pilothouse-leases", "leader-election")] {
        let dispatched = format!(
            r#"apiserver_flowcontrol_dispatched_requests_total{{flow_schema="{schema}",priority_level="{level}"}} "#
        );
        let count = metrics.lines().find_map(|line| line.strip_prefix(&dispatched));
        let count: u64 = count.with_context(|| format!("no request by {schema} with {level}"))?.parse()?;
        ensure!(count > 0, "no request by {schema} with {level}");
    }
    env.host.stop().await
}

/// `kubectl create namespace llm-system`, then the CRDs, then `helm install llm-operator … --namespace llm-system`; the examples are
/// applied elsewhere. And the same in the namespace of the examples, where the seed looks for the Role.
async fn the_llm_operator_is_installed_as_the_seed_says(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    create_namespace(&env.namespace.client(), "llm-system").await?;
    let (helm, admin) = (Helm::get().await?, env.cluster.plane.kubeconfig_path());
    let release = Release { chart: "llm-operator", name: "llm-operator", namespace: "llm-system", values: &[] };
    helm.install(release, &admin).await?;
    let deployed = Deployed::read(env, "llm-system", "llm-operator").await?;
    ensure!(deployed.account == ("llm-system".to_owned(), "llm-operator".to_owned()), "another account");
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    for object in sample("llmdeployment")? {
        env.namespace.apply(object).await?;
    }
    for kind in ["Deployment", "Service"] {
        env.namespace.until(kind, "chat-service", "to be there", |_| true).await?;
    }
    let role = api(&env.namespace.client(), "Role", Some("llm-system"))?.get("llm-operator").await?;
    ensure!(role.data["rules"].to_string().contains("llmdeployments/status"), "{:?}", role.data);
    let deployment = api(&env.namespace.client(), "Deployment", Some("llm-system"))?.get("llm-operator").await?;
    let container = &deployment.data["spec"]["template"]["spec"]["containers"][0];
    ensure!(deployment.data["spec"]["replicas"] == 1 && container["name"] == "operator", "{:?}", deployment.data);
    env.host.stop().await
}

/// Stores the components, compressed since the larger ones have little room to grow in a ConfigMap, and installs the chart of the host in the
/// test's namespace.
async fn install(env: &TestEnv, values: &[&str]) -> Result<Deployed> {
    for plugin in PLUGINS {
        store(env, plugin, &[&gzipped(&std::fs::read(artifacts::plugin(plugin)?)?)?]).await?;
    }
    let (own, admin) = (env.namespace.name.clone(), env.cluster.plane.kubeconfig_path());
    let release = Release { chart: "pilothouse", name: HOST, namespace: &own, values };
    Helm::get().await?.install(release, &admin).await?;
    Deployed::read(env, &own, HOST).await
}

/// What of the values for the reference plugins is about one of them, for `--set-json`.
fn reference_plugin(name: &str) -> Result<String> {
    let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(reference_plugins()?)?)?;
    let mut plugins = values["plugins"].as_array().into_iter().flatten();
    let plugin = plugins.find(|plugin| plugin["name"] == name).with_context(|| format!("no values for {name}"))?;
    Ok(format!("plugins={}", json!([plugin])))
}

fn sample(name: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(artifacts::repository().join(format!("crds/samples/{name}.yaml")))?;
    Ok(serde_saphyr::from_multiple(&text)?)
}

/// Creates an object and waits until its children are there and its status says so.
async fn reconciled(env: &TestEnv, name: &str) -> Result<()> {
    env.namespace.apply(app(name)).await?;
    let said = |object: &Value| condition(object, "Ready")["observedGeneration"] == object["metadata"]["generation"];
    env.namespace.until("AppService", name, "to have a status", said).await?;
    env.namespace.until("Service", name, "to be there", |_| true).await.map(drop)
}

async fn lease(env: &TestEnv) -> Result<Value> {
    Ok(env.namespace.get("Lease", HOST).await?.context("there is no Lease")?["spec"].clone())
}

fn time(value: &Value) -> Result<Timestamp> {
    Ok(text(value).parse()?)
}
