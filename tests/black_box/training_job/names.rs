//! Jobs whose children have the same names: the first one has them, the second one says so and starts when they are free. None touches what
//! is another's.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, PATIENCE, condition, install_crd},
    third_party::PYTORCH_JOB,
};
use serde_json::{Value, json};

use super::words::{
    JOB, exit, has, is_left_alone, is_running_with_all, job, name_is_taken, named, only_pods, pods, runs,
    start_running, succeed, text, uids,
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The Pods of the PyTorchJob of the sample.
const PYTORCH_PODS: [&str; 3] = ["mnist-master-0", "mnist-worker-0", "mnist-worker-1"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        names_that_begin_alike_are_different_jobs,
        jobs_of_two_kinds_with_one_name_follow_each_other,
        a_pod_of_somebody_else_is_told_and_left_alone,
        a_config_map_of_another_job_is_told_and_left_alone,
        a_name_of_somebody_else_is_waited_for_without_pods,
        a_service_that_somebody_else_takes_while_a_job_runs_stops_nothing_that_runs,
    );
}

/// Each has its own Pods, however the names are read.
async fn names_that_begin_alike_are_different_jobs(env: &mut TestEnv) -> Result<()> {
    const LONGEST: &str = "a-name-that-is-as-long-as-it-can-be-and-not-one-more";
    env.start(&["training-job"]).await?;
    let almost = format!("{}d", &LONGEST[..LONGEST.len() - 1]);
    let names = ["a", "a-worker", "a-worker-0", "a-ps", "a-worker-0-worker", LONGEST, &almost];
    for name in names {
        env.namespace.apply(named(name, json!({"framework": "tensorflow", "parameterServers": 1}))).await?;
    }
    for name in names {
        runs(env, name).await?;
    }
    let all = pods(env).await?;
    ensure!(all.len() == names.len() * 3, "{:?}", all.keys());
    for name in names {
        let of_job = |pod: &&Value| pod["metadata"]["labels"]["ml.example.com/job-name"] == name;
        let owners = all.values().filter(of_job).filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == name);
        ensure!(owners.count() == 3, "{name} has not its own Pods: {:?}", all.keys());
    }
    // What becomes of one is nothing to the others.
    let before = uids(&all);
    env.namespace.delete("TrainingJob", "a-worker").await?;
    env.namespace.until_gone("TrainingJob", "a-worker").await?;
    let after = uids(&pods(env).await?);
    ensure!(after.len() == before.len() - 3 && after.is_subset(&before), "others have lost Pods");
    Ok(())
}

async fn jobs_of_two_kinds_with_one_name_follow_each_other(env: &mut TestEnv) -> Result<()> {
    install_crd(&env.namespace.client(), &PYTORCH_JOB.fetch().await?).await?;
    env.start(&["training-job", "pytorch-job"]).await?;
    env.namespace.apply(job(json!({}))).await?;
    runs(env, JOB).await?;
    let first = pods(env).await?;
    let file = artifacts::repository().join("plugins/pytorch-job/samples/mnist.yaml");
    env.namespace.apply(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?).await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        ready["reason"] == "NameConflict" && ready["message"].to_string().contains("TrainingJob 'mnist'")
    };
    env.namespace.until("PyTorchJob", JOB, "to say whose its names are", told).await?;
    let now = pods(env).await?;
    for (name, pod) in &first {
        ensure!(now[name]["metadata"]["uid"] == pod["metadata"]["uid"], "{name} was replaced");
        ensure!(
            now[name]["metadata"]["ownerReferences"] == pod["metadata"]["ownerReferences"],
            "{name} was taken over"
        );
    }
    let running = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(condition(&running, "Ready")["status"] == "True", "{}", running["status"]);
    ensure!(running["status"]["restartCount"] == 0, "{}", running["status"]);

    for pod in first.keys() {
        exit(env, pod, 0).await?;
    }
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    let awaited = Awaited { kind: "PyTorchJob", name: JOB, what: "to run" };
    let running = |job: &Value| condition(job, "Ready")["status"] == "True";
    env.namespace.until_within(PATIENCE * 3, &awaited, running).await?;
    only_pods(env, &PYTORCH_PODS).await
}

async fn a_pod_of_somebody_else_is_told_and_left_alone(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mnist-worker-1"},
        "spec": {"containers": [{"name": "own", "image": "example.com/own:1"}]},
    });
    env.namespace.apply(theirs).await?;
    env.namespace.apply(job(json!({}))).await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        let message = ready["message"].to_string();
        ready["status"] == "False" && message.contains("mnist-worker-1") && message.contains("somebody else")
    };
    env.namespace.until("TrainingJob", JOB, "to say that a name is taken", told).await?;
    let pod = env.namespace.get("Pod", "mnist-worker-1").await?.unwrap_or_default();
    ensure!(pod["spec"]["containers"][0]["name"] == "own" && pod["metadata"].get("ownerReferences").is_none(), "{pod}");
    env.namespace.delete("Pod", "mnist-worker-1").await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    succeed(env).await?;
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    Ok(())
}

/// The copy of a ConfigMap that one job refers to has the name of the other one's hyperparameters.
async fn a_config_map_of_another_job_is_told_and_left_alone(env: &mut TestEnv) -> Result<()> {
    const TAKEN: &str = "a-snapshot-x-hyperparameters";
    env.start(&["training-job"]).await?;
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x-hyperparameters"}, "data": {"seed": "7"},
    });
    env.namespace.apply(theirs).await?;
    env.namespace.apply(named("a-snapshot-x", json!({"hyperparameters": {"rate": 0.1}}))).await?;
    runs(env, "a-snapshot-x").await?;
    let first = env.namespace.get("ConfigMap", TAKEN).await?.unwrap_or_default();
    let mounts = json!([{"name": "x-hyperparameters", "mountPath": "/etc/x"}]);
    env.namespace.apply(named("a", json!({"configMaps": mounts}))).await?;
    let told = |job: &Value| condition(job, "Ready")["reason"] == "NameConflict";
    let job = env.namespace.until("TrainingJob", "a", "to say that a name is taken", told).await?;
    let message = text(&condition(&job, "Ready")["message"])?;
    ensure!(message.contains(TAKEN) && message.contains("a-snapshot-x"), "{message}");
    let same = env.namespace.get("ConfigMap", TAKEN).await?.unwrap_or_default();
    ensure!(same["metadata"]["uid"] == first["metadata"]["uid"] && same["data"] == first["data"], "{same}");
    // None of its Pods reads what is another's.
    only_pods(env, &["a-snapshot-x-worker-0", "a-snapshot-x-worker-1"]).await
}

/// Workers would not find each other by somebody else's Service, nor read their own files in somebody else's ConfigMap, and hold their GPUs for
/// nothing.
async fn a_name_of_somebody_else_is_waited_for_without_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let config_map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "7"}});
    let mpi = json!({"framework": "mpi", "workers": 1, "mpi": {"sshSecretName": "keys"}});
    let jobs = [
        ("of-service", json!({"runPolicy": {"backoffLimit": 0}}), their_service("of-service")),
        ("of-parameters", json!({"hyperparameters": {"a": 1}}), config_map("of-parameters-hyperparameters")),
        ("of-hosts", mpi, config_map("of-hosts-hostfile")),
        ("deleted", json!({}), their_service("deleted")),
    ];
    let mut theirs = Vec::new();
    for (name, spec, their) in jobs {
        theirs.push((name, env.namespace.apply(their).await?));
        env.namespace.apply(named(name, spec)).await?;
    }
    for (name, their) in &theirs {
        name_is_taken(env, name, their).await?;
    }
    // A job that goes leaves what is not its own.
    env.namespace.delete("TrainingJob", "deleted").await?;
    env.namespace.until_gone("TrainingJob", "deleted").await?;
    only_pods(env, &[]).await?;
    for (name, their) in &theirs {
        is_left_alone(env, &text(&their["kind"])?, their).await?;
        if *name == "deleted" {
            continue;
        }
        env.namespace.delete(&text(&their["kind"])?, &text(&their["metadata"]["name"])?).await?;
        let starts = |job: &Value| job["status"]["active"].as_u64() >= job["spec"]["workers"].as_u64();
        let awaited = Awaited { kind: "TrainingJob", name, what: "to run" };
        let job = env.namespace.until_within(PATIENCE * 2, &awaited, starts).await?;
        ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    }
    Ok(())
}

async fn a_service_that_somebody_else_takes_while_a_job_runs_stops_nothing_that_runs(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    let before = uids(&pods(env).await?);
    env.host.stop().await?;
    env.namespace.delete("Service", JOB).await?;
    let their = env.namespace.apply(their_service(JOB)).await?;
    env.host.resume().await?;
    name_is_taken(env, JOB, &their).await?;
    ensure!(uids(&pods(env).await?) == before, "Pods were replaced");
    // New ones would not find each other. The old ones go once all else is as the job wants it, as whatever the host deletes.
    exit(env, "mnist-worker-1", 1).await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    ensure!(uids(&pods(env).await?) == before, "there are new Pods");
    is_left_alone(env, "Service", &their).await?;
    env.namespace.delete("Service", JOB).await?;
    let awaited = Awaited { kind: "TrainingJob", name: JOB, what: "to run again" };
    let job = env.namespace.until_within(PATIENCE * 2, &awaited, is_running_with_all).await?;
    ensure!(job["status"]["restartCount"] == 1, "{}", job["status"]);
    Ok(())
}

/// A Service as a user makes it for a program of their own.
fn their_service(name: &str) -> Value {
    let spec = json!({"selector": {"app": "own"}, "ports": [{"port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}
