//! Two users who change one job at once, each without the other: in whatever order the API server takes it, the job is in the end what its
//! object says, and has the past of no other one.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::LOST;
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{JOB, annotate, clear, exit, is_replaced, job, only_pods, pods, runs, start_running};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The Pods of the job.
const PODS: [&str; 2] = ["mnist-worker-0", "mnist-worker-1"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        two_users_at_once_leave_what_the_object_says,
        a_job_that_is_made_anew_while_old_pods_end_starts_as_a_new_one,
        a_job_whose_finalizer_somebody_took_off_is_made_anew_all_the_same,
        a_job_that_left_its_pods_behind_takes_none_of_another_spec,
        a_label_that_somebody_takes_off_a_pod_comes_back_and_nothing_restarts,
        a_pod_that_was_hidden_from_the_host_is_no_member_of_the_job_that_restarted_without_it,
    );
}

/// What a user does with the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Edit,
    Suspend,
    Resume,
    Delete,
    MakeAnew,
    DeletePod,
}

impl Act {
    /// The other user may have deleted the job, or made it anew.
    async fn act(self, env: &TestEnv, number: usize) -> Result<()> {
        let patch = async |patch: Value| match env.namespace.patch("TrainingJob", JOB, patch).await {
            Err(error) if format!("{error:#}").contains("not found") => Ok(()),
            other => other.map(|_| ()),
        };
        match self {
            Self::Edit => patch(json!({"spec": {"image": format!("example.com/train:edited-{number}")}})).await,
            Self::Suspend => patch(json!({"spec": {"runPolicy": {"suspend": true}}})).await,
            Self::Resume => patch(json!({"spec": {"runPolicy": {"suspend": false}}})).await,
            Self::Delete => delete(env, "TrainingJob", JOB).await,
            Self::DeletePod => delete(env, "Pod", PODS[0]).await,
            Self::MakeAnew => {
                delete(env, "TrainingJob", JOB).await?;
                make(env, &format!("example.com/train:anew-{number}")).await
            }
        }
    }
}

async fn delete(env: &TestEnv, kind: &str, name: &str) -> Result<()> {
    match env.namespace.delete(kind, name).await {
        Err(error) if !format!("{error:#}").contains("not found") => Err(error),
        _ => Ok(()),
    }
}

/// Creates the job, once the old one is gone, unless somebody else does.
async fn make(env: &TestEnv, image: &str) -> Result<()> {
    eventually(PATIENCE, "the name to be free", async || {
        let old = env.namespace.get("TrainingJob", JOB).await?;
        let is_going = old.as_ref().is_some_and(|old| old["metadata"].get("deletionTimestamp").is_some());
        Ok(Look::of(!is_going, old))
    })
    .await?;
    env.namespace.apply(job(json!({"image": image}))).await?;
    Ok(())
}

async fn two_users_at_once_leave_what_the_object_says(env: &mut TestEnv) -> Result<()> {
    use Act::{Delete, DeletePod, Edit, MakeAnew, Resume, Suspend};
    const PAIRS: [(Act, Act); 12] = [
        (Edit, Edit),
        (Edit, Suspend),
        (Suspend, Resume),
        (Resume, DeletePod),
        (Edit, Resume),
        (Edit, Delete),
        (MakeAnew, Edit),
        (Suspend, Delete),
        (MakeAnew, MakeAnew),
        (MakeAnew, Suspend),
        (MakeAnew, DeletePod),
        (Delete, Resume),
    ];
    start_running(env, json!({})).await?;
    for (number, (one, other)) in PAIRS.into_iter().enumerate() {
        let (first, second) = tokio::join!(one.act(env, number), other.act(env, number + 100));
        first.with_context(|| format!("{one:?}"))?;
        second.with_context(|| format!("{other:?}"))?;
        settles(env).await.with_context(|| format!("after {one:?} and {other:?}"))?;
        if env.namespace.get("TrainingJob", JOB).await?.is_none() {
            make(env, "example.com/train:1").await?;
        }
        Act::Resume.act(env, number).await?;
        let running = runs(env, JOB).await.with_context(|| format!("after {one:?} and {other:?}"))?;
        ensure!(running["status"]["restartCount"] == 0, "{one:?} and {other:?}: {}", running["status"]);
    }
    Ok(())
}

/// Waits until all is as the object says, if there is one.
async fn settles(env: &TestEnv) -> Result<()> {
    eventually(PATIENCE, "the job to be what its object says", async || {
        let (object, pods) = (env.namespace.get("TrainingJob", JOB).await?, pods(env).await?);
        let is_settled = match &object {
            None => pods.is_empty(),
            Some(job) if job["metadata"].get("deletionTimestamp").is_some() => false,
            Some(job) if job["spec"]["runPolicy"]["suspend"] == true => {
                pods.is_empty() && condition(job, "Suspended")["status"] == "True"
            }
            Some(job) => {
                let is_of_job = |pod: &Value| {
                    pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
                        && pod["spec"]["containers"][0]["image"] == job["spec"]["image"]
                };
                condition(job, "Ready")["status"] == "True" && pods.keys().eq(PODS) && pods.values().all(is_of_job)
            }
        };
        Ok(Look::of(is_settled, (object, pods)))
    })
    .await
}

/// With another spec, while a restart goes on that has cost something.
async fn a_job_that_is_made_anew_while_old_pods_end_starts_as_a_new_one(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    annotate(env, "mnist-worker-1", LOST, "").await?;
    exit(env, "mnist-worker-0", 1).await?;
    let counts = |job: &Value| job["status"]["restartCount"] == 1;
    env.namespace.until("TrainingJob", JOB, "to restart", counts).await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    let other = job(json!({"image": "example.com/other:2", "workers": 3, "runPolicy": {"backoffLimit": 0}}));
    let made = async {
        env.namespace.until_gone("TrainingJob", JOB).await?;
        env.namespace.apply(other).await
    };
    let freed = async {
        let says = |job: &Value| condition(job, "Ready")["reason"] == "CleaningUp";
        env.namespace.until("TrainingJob", JOB, "to say what it waits for", says).await?;
        clear(env, "mnist-worker-1", LOST).await
    };
    tokio::try_join!(made, freed)?;
    let new = runs(env, JOB).await?;
    ensure!(new["status"]["restartCount"] == 0 && condition(&new, "Restarting").is_null(), "{}", new["status"]);
    only_pods(env, &["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]).await
}

/// Then only the garbage collector cleans up, and the new job waits for the names.
async fn a_job_whose_finalizer_somebody_took_off_is_made_anew_all_the_same(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    let old = pods(env).await?;
    annotate(env, "mnist-worker-1", LOST, "").await?;
    env.host.stop().await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.patch("TrainingJob", JOB, json!({"metadata": {"finalizers": null}})).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    env.namespace.apply(job(json!({"image": "example.com/other:2"}))).await?;
    env.host.resume().await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        ready["status"] == "False" && ready["message"].to_string().contains("mnist-worker-1")
    };
    env.namespace.until("TrainingJob", JOB, "to say what it waits for", told).await?;
    clear(env, "mnist-worker-1", LOST).await?;
    are_new(env, &old).await
}

/// `kubectl delete --cascade=orphan`, and then a job of another spec.
async fn a_job_that_left_its_pods_behind_takes_none_of_another_spec(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    let old = pods(env).await?;
    let api = env.namespace.api("TrainingJob")?;
    let orphan = kube::api::DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..Default::default()
    };
    api.delete(JOB, &orphan).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    env.namespace.apply(job(json!({"image": "example.com/other:2"}))).await?;
    are_new(env, &old).await
}

/// Waits until the job runs with Pods that are none of these.
async fn are_new(env: &TestEnv, old: &std::collections::BTreeMap<String, Value>) -> Result<()> {
    let running = runs(env, JOB).await?;
    ensure!(running["status"]["restartCount"] == 0, "{}", running["status"]);
    only_pods(env, &PODS).await?;
    for (name, pod) in pods(env).await? {
        ensure!(pod["metadata"]["uid"] != old[&name]["metadata"]["uid"], "{name} is the old one's");
        ensure!(pod["spec"]["containers"][0]["image"] == "example.com/other:2", "{pod}");
    }
    Ok(())
}

/// By its labels the Service of the job finds a Pod, and so do those who look at the job.
async fn a_label_that_somebody_takes_off_a_pod_comes_back_and_nothing_restarts(env: &mut TestEnv) -> Result<()> {
    const LABELS: [(&str, &str); 2] = [("ml.example.com/job-name", JOB), ("ml.example.com/replica-type", "worker")];
    start_running(env, json!({"podTemplate": {"metadata": {"labels": {"team": "a"}}}})).await?;
    let old = pods(env).await?;
    let turns = [Value::Null, json!("another"), Value::Null];
    for (turn, (label, value)) in turns.iter().zip(LABELS.iter().cycle()) {
        let change = json!({"metadata": {"labels": {*label: turn}}});
        env.namespace.patch("Pod", PODS[1], change).await?;
        let has_it = |pod: &Value| pod["metadata"]["labels"][*label] == *value;
        env.namespace.until("Pod", PODS[1], &format!("to have its label {label} again"), has_it).await?;
    }
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, "seen").await).await?;
    for (name, pod) in pods(env).await? {
        let fields = |pod: &Value| {
            json!([pod["metadata"]["uid"], pod["spec"], pod["metadata"]["labels"], pod["status"]["phase"]])
        };
        ensure!(fields(&pod) == fields(&old[&name]), "{name} was {}, and is {pod}", old[&name]);
    }
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

/// Without the host's own label a Pod is gone for the host, and comes back when its name is needed. Its process is that of before: the others
/// have been made anew, and would wait for it.
async fn a_pod_that_was_hidden_from_the_host_is_no_member_of_the_job_that_restarted_without_it(
    env: &mut TestEnv,
) -> Result<()> {
    start_running(env, json!({})).await?;
    let old = pods(env).await?;
    let hide = json!({"metadata": {"labels": {"pilothouse.dev/plugin": null}}});
    env.namespace.patch("Pod", PODS[1], hide).await?;
    for name in PODS {
        is_replaced(env, name, &old[name]).await?;
    }
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 0 && job["status"]["disruptionCount"] == 1, "{}", job["status"]);
    only_pods(env, &PODS).await
}
