//! What users add to the Pods of a job, on a real API server: what fast networks need reaches the Pods, and what would break a job is refused.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, environment, job, named, pods, runs, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, what_users_add_reaches_the_pods, a_template_that_would_break_the_job_is_refused);
}

async fn what_users_add_reaches_the_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let linux = json!([{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]);
    let affinity = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": linux},
    }});
    let trains = json!({
        "name": "pytorch", "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    });
    let template = json!({
        "metadata": {"labels": {"team": "vision"}, "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}},
        "spec": {
            "hostNetwork": true, "affinity": affinity, "volumes": [{"name": "scratch", "emptyDir": {}}],
            "initContainers": [{"name": "fetch", "image": "example.com/fetch:1"}],
            "containers": [{"name": "logs", "image": "example.com/logs:1"}, trains],
        },
    });
    env.namespace.apply(job(json!({"workers": 1, "podTemplate": template}))).await?;
    runs(env, JOB).await?;
    let pod = env.namespace.get("Pod", "mnist-worker-0").await?.unwrap_or_default();
    let (metadata, spec, trains) = (&pod["metadata"], &pod["spec"], &pod["spec"]["containers"][0]);
    ensure!(metadata["labels"]["team"] == "vision" && metadata["labels"]["ml.example.com/job-name"] == JOB, "{pod}");
    ensure!(metadata["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma", "{pod}");
    ensure!(spec["hostNetwork"] == true && spec["dnsPolicy"] == "ClusterFirstWithHostNet", "{pod}");
    ensure!(spec["affinity"] == affinity && spec["initContainers"][0]["name"] == "fetch", "{pod}");
    ensure!(trains["name"] == "pytorch" && spec["containers"][1]["name"] == "logs", "{pod}");
    ensure!(trains["securityContext"]["capabilities"]["add"] == json!(["IPC_LOCK"]), "{pod}");
    let variables = environment(&pod);
    ensure!(variables["NCCL_DEBUG"] == "INFO" && variables["RANK"] == "0", "{variables:?}");

    // No node here has such devices, so it waits for its claim.
    let claims = json!({"spec": {
        "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "rdma"}],
        "containers": [{"name": "pytorch", "resources": {"claims": [{"name": "nic"}]}}],
    }});
    env.namespace.apply(named("claims", json!({"workers": 1, "podTemplate": claims}))).await?;
    let asks = |pod: &Value| {
        let spec = &pod["spec"];
        spec["resourceClaims"][0]["resourceClaimTemplateName"] == "rdma"
            && spec["containers"][0]["resources"]["claims"][0]["name"] == "nic"
    };
    env.namespace.until("Pod", "claims-worker-0", "to ask for devices", asks).await?;
    Ok(())
}

async fn a_template_that_would_break_the_job_is_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let rank = json!([{"name": "pytorch", "env": [{"name": "RANK", "value": "7"}]}]);
    for (template, field) in [
        (json!({"spec": {"containers": rank}}), "podTemplate.spec.containers[pytorch].env[RANK]"),
        (json!({"spec": {"hostname": "other"}}), "podTemplate.spec.hostname"),
        (
            json!({"metadata": {"labels": {"ml.example.com/job-name": "other"}}}),
            "podTemplate.metadata.labels.ml.example.com/job-name",
        ),
    ] {
        env.namespace.apply(job(json!({"podTemplate": &template}))).await?;
        let told = |job: &Value| condition(job, "Ready")["message"].to_string().contains(field);
        env.namespace.until("TrainingJob", JOB, &format!("to name {field}"), told).await?;
        waits(env, JOB, "Invalid").await?;
        ensure!(pods(env).await?.is_empty(), "a Pod was made of {template}");
    }
    Ok(())
}
