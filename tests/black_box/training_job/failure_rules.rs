//! The rules of a job for failed Pods: by exit code, by reason, by condition of the Pod. They go before the restart policy, and before
//! what is known of disruptions.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::condition,
    nodes::{end_by_kubelet, set_pod_status},
};
use serde_json::{Value, json};

use super::words::{JOB, evict, exit, has, is_replaced, named, pods, runs, start_running};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_rule_for_an_exit_code_goes_before_the_policy,
        a_rule_for_a_reason_or_a_condition_goes_before_policy_and_disruptions,
    );
}

/// The worker that fails.
const FAILING: &str = "mnist-worker-1";

async fn a_rule_for_an_exit_code_goes_before_the_policy(env: &mut TestEnv) -> Result<()> {
    let rule = |action: &str, code: u8| json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}});
    let rules = json!([rule("Ignore", 42), rule("FailJob", 3)]);
    let policy = json!({"podFailurePolicy": {"rules": rules}, "backoffLimit": 0});
    start_running(env, json!({"workers": 2, "runPolicy": policy})).await?;
    let before = pods(env).await?;
    exit(env, FAILING, 42).await?;
    is_replaced(env, FAILING, &before[FAILING]).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0 && condition(&job, "Failed").is_null(), "{}", job["status"]);
    exit(env, FAILING, 3).await?;
    has(env, JOB, "Failed", "TrainingJobFailed").await?;
    Ok(())
}

/// How a Pod fails.
enum Failure {
    /// The kernel kills its container for want of memory.
    OutOfMemory,
    /// The kubelet ends it, for this reason.
    ByKubelet(&'static str),
    /// The eviction API marks it and deletes it.
    ByEviction,
    /// Whoever looks after the node gives it this condition, and the program exits with 1.
    WithCondition(&'static str),
}

/// A job with a rule, and what becomes of it.
struct Story {
    name: &'static str,
    policy: &'static str,
    rule: Value,
    failure: Failure,
    /// The restarts that are counted; none if the job fails.
    counted: Option<u64>,
}

async fn a_rule_for_a_reason_or_a_condition_goes_before_policy_and_disruptions(env: &mut TestEnv) -> Result<()> {
    let condition_is =
        |condition: &str, action: &str| json!({"action": action, "onPodConditions": [{"type": condition}]});
    let reason_is = |reason: &str, action: &str| json!({"action": action, "onReasons": [reason]});
    let stories = [
        Story {
            name: "memory",
            policy: "OnFailure",
            rule: reason_is("OOMKilled", "FailJob"),
            failure: Failure::OutOfMemory,
            counted: None,
        },
        Story {
            name: "eviction",
            policy: "Never",
            rule: reason_is("Evicted", "Count"),
            failure: Failure::ByKubelet("Evicted"),
            counted: Some(1),
        },
        Story {
            name: "disruption",
            policy: "OnFailure",
            rule: condition_is("DisruptionTarget", "FailJob"),
            failure: Failure::ByKubelet("Terminated"),
            counted: None,
        },
        Story {
            name: "drain",
            policy: "OnFailure",
            rule: condition_is("DisruptionTarget", "FailJob"),
            failure: Failure::ByEviction,
            counted: None,
        },
        Story {
            name: "device",
            policy: "Never",
            rule: condition_is("example.com/DeviceFault", "Ignore"),
            failure: Failure::WithCondition("example.com/DeviceFault"),
            counted: Some(0),
        },
        Story {
            name: "other",
            policy: "Never",
            rule: condition_is("example.com/DeviceFault", "Ignore"),
            failure: Failure::WithCondition("example.com/NetworkFault"),
            counted: None,
        },
    ];
    env.start(&["training-job"]).await?;
    for Story { name, policy, rule, .. } in &stories {
        let policy = json!({"restartPolicy": policy, "podFailurePolicy": {"rules": [rule]}});
        env.namespace.apply(named(name, json!({"workers": 2, "runPolicy": policy}))).await?;
    }
    for story in stories {
        story.comes_true(env).await.context(story.name)?;
    }
    Ok(())
}

impl Story {
    async fn comes_true(&self, env: &TestEnv) -> Result<()> {
        runs(env, self.name).await?;
        let pod = format!("{}-worker-1", self.name);
        let before = env.namespace.get("Pod", &pod).await?.context("no Pod")?;
        self.failure.happens_to(env, &before).await?;
        let Some(counted) = self.counted else {
            has(env, self.name, "Failed", "TrainingJobFailed").await?;
            return Ok(());
        };
        is_replaced(env, &pod, &before).await?;
        let job = runs(env, self.name).await?;
        ensure!(job["status"]["restartCount"] == counted && condition(&job, "Failed").is_null(), "{}", job["status"]);
        Ok(())
    }
}

impl Failure {
    async fn happens_to(&self, env: &TestEnv, pod: &Value) -> Result<()> {
        let name = pod["metadata"]["name"].as_str().context("no name")?;
        let ended = |code: u8, reason: &str| {
            let mut container = pod["status"]["containerStatuses"][0].clone();
            container["state"] = json!({"terminated": {"exitCode": code, "reason": reason}});
            json!([container])
        };
        let status = match self {
            Self::ByKubelet(reason) => return end_by_kubelet(&env.namespace, name, reason, "by its node").await,
            Self::ByEviction => return evict(env, name).await,
            Self::OutOfMemory => json!({"phase": "Failed", "containerStatuses": ended(137, "OOMKilled")}),
            Self::WithCondition(condition) => {
                let conditions = json!([{"type": condition, "status": "True"}]);
                json!({"phase": "Failed", "conditions": conditions, "containerStatuses": ended(1, "Error")})
            }
        };
        set_pod_status(&env.namespace, name, status).await
    }
}
