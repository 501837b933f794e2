//! The status during a rollout: an object never reports ready for a spec that is not rolled out. Checked for every revision of
//! the status, together with the Deployment at the same revision.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::cluster::{PATIENCE, condition, revision};
use serde_json::{Value, json};

use crate::{
    revisions::Revisions,
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, ready_waits_for_the_rollout, kubectl_waits_for_the_generation_that_was_applied);
}

/// Two rollouts, of an image and of more replicas.
async fn ready_waits_for_the_rollout(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let mut history = History::begin(env).await?;
    for spec in [json!({"image": "example.com/web:2"}), json!({"replicas": 5})] {
        let edited = env.namespace.patch("AppService", "web", json!({"spec": spec})).await?;
        history.until_ready(edited["metadata"]["generation"].as_i64()).await?;
        history.ensure_ready_is_true(env).await?;
    }
    Ok(())
}

/// As in a script: apply, then wait. The wait must not end while the old version is served.
async fn kubectl_waits_for_the_generation_that_was_applied(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    for image in ["example.com/web:1", "example.com/web:2", "example.com/web:3"] {
        let mut app = app("web");
        app["spec"]["image"] = image.into();
        env.namespace.apply(app).await?;
        let waited_for = |app: &Value| kubectl_wait(app, "Ready");
        env.namespace.until("AppService", "web", "to meet condition=Ready", waited_for).await?;
        let deployment = env.namespace.get("Deployment", "web").await?.context("no Deployment")?;
        let (spec, status) = (&deployment["spec"]["template"]["spec"], &deployment["status"]);
        ensure!(spec["containers"][0]["image"] == image, "another image is served: {deployment}");
        ensure!(status["observedGeneration"] == deployment["metadata"]["generation"], "not observed: {deployment}");
        ensure!(status["updatedReplicas"] == 3, "old replicas are served: {deployment}");
    }
    Ok(())
}

/// Whether `kubectl wait --for=condition=NAME` would end at this state. It ignores the case of the name, and a condition counts
/// only if its observed generation, or else that of the status, is the latest one.
fn kubectl_wait(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let is_meant =
        |condition: &&Value| condition["type"].as_str().is_some_and(|found| found.eq_ignore_ascii_case(name));
    conditions.into_iter().find(is_meant).is_some_and(|condition| {
        let named = condition["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
        let is_old = named.is_some_and(|named| Some(named) < object["metadata"]["generation"].as_i64());
        !is_old && condition["status"].as_str().is_some_and(|status| status.eq_ignore_ascii_case("true"))
    })
}

/// All revisions of the object and of its Deployment, as the watches deliver them.
struct History {
    apps: Revisions,
    deployments: Revisions,
}

impl History {
    async fn begin(env: &TestEnv) -> Result<Self> {
        let apps = Revisions::of(env, "AppService", "web").await?;
        Ok(Self { apps, deployments: Revisions::of(env, "Deployment", "web").await? })
    }

    /// Follows the object until it is ready for this generation, and the Deployment up to that moment.
    async fn until_ready(&mut self, generation: Option<i64>) -> Result<()> {
        let generation = generation.context("no generation")?;
        let what = format!("the object to be ready for generation {generation}");
        let follow = async {
            while !self.apps.latest().is_some_and(|app| is_ready(app) && observed(app) == Some(generation)) {
                self.apps.next().await?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, follow).await.context(what)?
    }

    /// Checks that at each revision at which the object is ready, its Deployment was rolled out for its spec.
    async fn ensure_ready_is_true(&mut self, env: &TestEnv) -> Result<()> {
        self.deployments.until(&env.namespace.get("Deployment", "web").await?.context("no Deployment")?).await?;
        for app in self.apps.seen().iter().filter(|app| is_ready(app)) {
            if observed(app) != app["metadata"]["generation"].as_i64() {
                continue; // The condition is about an earlier generation.
            }
            let moment = revision(app)?;
            let earlier = |deployment: &&Value| revision(deployment).is_ok_and(|at| at < moment);
            let deployment = self.deployments.seen().iter().rfind(earlier);
            let deployment = deployment.context("no Deployment before the object was ready")?;
            let (spec, status) = (&deployment["spec"], &deployment["status"]);
            let container = &spec["template"]["spec"]["containers"][0];
            let wanted = &app["spec"]["replicas"];
            ensure!(container["image"] == app["spec"]["image"], "ready with another image: {app}\n{deployment}");
            ensure!(spec["replicas"] == *wanted, "ready with other replicas: {app}\n{deployment}");
            let is_observed = status["observedGeneration"] == deployment["metadata"]["generation"];
            ensure!(is_observed, "ready before the Deployment's change was observed: {app}\n{deployment}");
            let number = |field: &str| status[field].as_i64().unwrap_or_default();
            // Replicas of an older revision may still exist. There must be enough ready ones without them.
            let old = number("replicas") - number("updatedReplicas");
            let done = number("readyReplicas") - old;
            ensure!(Some(done) >= wanted.as_i64(), "ready before all replicas were: {app}\n{deployment}");
        }
        Ok(())
    }
}

fn is_ready(app: &Value) -> bool {
    condition(app, "Ready")["status"] == "True"
}

fn observed(app: &Value) -> Option<i64> {
    condition(app, "Ready")["observedGeneration"].as_i64()
}
