//! The health of objects as `kubectl wait`, Argo CD and Flux compute it, from their creation to their end: on the way, as the spec says,
//! failed. Each version of an object is looked at, so that a state that is soon over counts as well.

use anyhow::{Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{MODEL, deployment, model, model_deployment, server},
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, health_follows_every_kind_through_its_life, a_described_model_is_healthy_as_long_as_it_can_be_served);
}

/// What kstatus makes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    InProgress,
    Failed,
    Current,
    Terminating,
}

impl Health {
    fn of(object: &Value) -> Self {
        let is = |condition_type: &str, status: &str| condition(object, condition_type)["status"] == status;
        if object["metadata"]["deletionTimestamp"].is_string() {
            Self::Terminating
        } else if object["status"]["observedGeneration"] != object["metadata"]["generation"] {
            Self::InProgress
        } else if is("Stalled", "True") {
            Self::Failed
        } else if is("Reconciling", "True") || !is("Ready", "True") {
            Self::InProgress
        } else {
            Self::Current
        }
    }
}

/// Waits until these were the states of the objects of a kind, from the last one that was waited for on.
async fn was(seen: &Seen<Health>, what: &str, expected: &[Health]) -> Result<()> {
    eventually(PATIENCE, &format!("{expected:?} {what}"), async || {
        let all = seen.all();
        Ok(Look::of(all == expected, all))
    })
    .await?;
    seen.forget();
    Ok(())
}

/// Waits until the change has a Pod. If it were taken back before, its Pod might still come, and go, after the workload had said that it
/// is as its spec says.
async fn a_new_pod_waits(env: &TestEnv) -> Result<()> {
    eventually(PATIENCE, "a new Pod that waits", async || {
        let mut workloads = env.namespace.list("Deployment").await?;
        workloads.extend(env.namespace.list("StatefulSet").await?);
        let waits = workloads.iter().any(|workload| {
            let status = &workload["status"];
            let number = |field: &str| status[field].as_i64().unwrap_or_default();
            status["observedGeneration"] == workload["metadata"]["generation"]
                && number("updatedReplicas") > 0
                && number("availableReplicas") < number("replicas")
        });
        Ok(Look::of(waits, workloads))
    })
    .await
}

/// Creation, a change that takes its time, a mistake, its correction, and the end.
async fn health_follows_every_kind_through_its_life(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    for object in [server("a", json!({})), deployment("b", json!({})), model_deployment("c", json!({}))] {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let seen = Seen::watch(env, &kind, Health::of).await?;
        let what = |moment: &str| format!("of the {kind}, {moment}");
        env.namespace.apply(object).await?;
        was(&seen, &what("created"), &[Health::InProgress, Health::Current]).await?;

        let change = async |spec: Value| env.namespace.patch(&kind, &name, json!({"spec": spec})).await;
        change(json!({"podTemplate": {"metadata": {"annotations": {PENDING: ""}}}})).await?;
        was(&seen, &what("with Pods that wait"), &[Health::Current, Health::InProgress]).await?;
        a_new_pod_waits(env).await?;
        change(json!({"podTemplate": null})).await?;
        was(&seen, &what("with Pods that run"), &[Health::InProgress, Health::Current]).await?;

        change(json!({"podTemplate": {"spec": {"hostname": "one"}}})).await?;
        was(&seen, &what("with a mistake"), &[Health::Current, Health::InProgress, Health::Failed]).await?;
        change(json!({"podTemplate": null})).await?;
        was(&seen, &what("without the mistake"), &[Health::Failed, Health::InProgress, Health::Current]).await?;

        env.namespace.delete(&kind, &name).await?;
        env.namespace.until_gone(&kind, &name).await?;
        ensure!(seen.all() == [Health::Current], "the {kind} changed while it went");
    }
    Ok(())
}

async fn a_described_model_is_healthy_as_long_as_it_can_be_served(env: &mut TestEnv) -> Result<()> {
    env.start(&["llm-model"]).await?;
    let seen = Seen::watch(env, MODEL, Health::of).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    was(&seen, "of a new model", &[Health::InProgress, Health::Current]).await?;
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"engine": "steam"}})).await?;
    was(&seen, "of an engine that nobody knows", &[Health::Current, Health::InProgress, Health::Failed]).await?;
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"engine": null}})).await?;
    was(&seen, "of a known engine", &[Health::Failed, Health::InProgress, Health::Current]).await?;
    env.namespace.delete(MODEL, "gpt-small").await?;
    env.namespace.until_gone(MODEL, "gpt-small").await
}
