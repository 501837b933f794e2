//! What the status says: how far the rollout is, what is wrong with a Pod, and Events about what changed.

use crate::case::{case, run};
use llm_serving::api::ServingStatus;
use llm_serving::testing::{condition, events};
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::{Answer, Case};

const COMPLETE: &str = "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2";
const HALF: &str = "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1";
const STUCK: &str = "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: [\
                     {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too slow}]";

/// A model of two Pods whose Deployment has this status.
fn with_deployment(status: &str) -> Result<Case, Error> {
    Ok(case("replicas: 2")?.child_yaml(&format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: llmmodel-chat, uid: deployment, generation: 1}}, \
         status: {{{status}}}}}"
    )).found(crate::case::parse(&format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: llmmodel-chat-1, namespace: ml, uid: set, labels: {LABELS}, \
         ownerReferences: [{{uid: deployment, controller: true}}]}}}}"
    ))?))
}

/// The labels of the Pods of the model.
const LABELS: &str = "{app.kubernetes.io/component: llmmodel, app.kubernetes.io/instance: llmmodel-chat}";

/// A Pod of the model in this state.
fn pod(name: &str, status: &str) -> Result<serde_json::Value, Error> {
    pod_of(name, "{uid: set, controller: true}", status)
}

/// A Pod with the labels of the model, of this owner.
fn pod_of(name: &str, owner: &str, status: &str) -> Result<serde_json::Value, Error> {
    crate::case::parse(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: ml, labels: {LABELS}, ownerReferences: [{owner}]}}, \
         status: {{{status}}}}}"
    ))
}

const OOM: &str = "phase: Running, containerStatuses: [{name: model, ready: false, lastState: {terminated: {exitCode: 137, \
                   reason: OOMKilled}}}]";

#[test]
fn ready_follows_the_deployment() -> Result<(), Error> {
    let cases = [
        ("", "False Progressing", "True Progressing", ""),
        (HALF, "False Progressing", "True Progressing", ""),
        (COMPLETE, "True Available", "False Available", ""),
        (STUCK, "False ProgressDeadlineExceeded", "False ProgressDeadlineExceeded", "True ProgressDeadlineExceeded"),
    ];
    const PAUSED: &str = "observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [\
                          {type: Progressing, status: Unknown, reason: DeploymentPaused, message: Deployment is paused}]";
    let paused = [(PAUSED, "False DeploymentPaused", "True DeploymentPaused", "")];
    for (status, ready, progressing, stalled) in cases.into_iter().chain(paused) {
        let answer = run(with_deployment(status)?)?;
        let found = ["Ready", "Progressing", "Stalled"].map(|name| condition(&answer, name));
        assert_eq!(found, [ready, progressing, stalled], "{status}");
    }
    Ok(())
}

/// While a rollout adds Pods before it removes others, as many are ready as there shall be, and some of them are of yesterday.
#[test]
fn pods_of_an_old_revision_do_not_count() -> Result<(), Error> {
    let cases = [
        ("observedGeneration: 1, replicas: 3, updatedReplicas: 1, readyReplicas: 3", "False Progressing"),
        ("observedGeneration: 1, replicas: 3, updatedReplicas: 2, readyReplicas: 2", "False Progressing"),
        ("observedGeneration: 0, replicas: 2, updatedReplicas: 2, readyReplicas: 2", "False Progressing"),
        ("observedGeneration: 1, replicas: 3, updatedReplicas: 2, readyReplicas: 3", "True Available"),
    ];
    for (status, expected) in cases {
        assert_eq!(condition(&run(with_deployment(status)?)?, "Ready"), expected, "{status}");
    }
    Ok(())
}

#[test]
fn the_trouble_of_a_pod_is_told_with_its_name() -> Result<(), Error> {
    let answer = run(with_deployment(HALF)?.found(pod("chat-a", OOM)?))?;
    assert_eq!(condition(&answer, "PodsHealthy"), "False OOMKilled");
    let message =
        |answer: &Answer, name| answer.condition(name).map(|condition| condition.message.clone()).unwrap_or_default();
    assert_eq!(message(&answer, "PodsHealthy"), "Pod chat-a, container model: OOMKilled, exit code 137");
    assert_eq!(condition(&answer, "Ready"), "False OOMKilled");
    assert_eq!(
        message(&answer, "Ready"),
        "1 of 2 replicas ready; Pod chat-a, container model: OOMKilled, exit code 137"
    );
    Ok(())
}

/// Anybody may give a Pod any label.
#[test]
fn a_pod_of_somebody_else_is_nothing_to_the_model() -> Result<(), Error> {
    for owner in ["", "{uid: other, controller: true}", "{uid: set, controller: false}", "{uid: set}"] {
        let case = with_deployment(HALF)?.found(pod_of("chat-b", owner, OOM)?);
        assert_eq!(condition(&run(case)?, "PodsHealthy"), "True Healthy", "{owner}");
        let case = with_deployment(HALF)?.found(pod_of("chat-a", owner, OOM)?).found(pod("chat-b", OOM)?);
        let answer = run(case)?;
        let message = answer.condition("PodsHealthy").map(|condition| condition.message.as_str());
        assert_eq!(message, Some("Pod chat-b, container model: OOMKilled, exit code 137"), "{owner}");
    }
    Ok(())
}

/// What kubectl shows is what there is, whatever becomes of the object.
#[test]
fn an_invalid_model_goes_on_to_be_counted() -> Result<(), Error> {
    let old = crate::case::parse("{replicas: 7, readyReplicas: 7, selector: a=b, url: 'http://a', loraAdapters: [x]}")?;
    let service = "{apiVersion: v1, kind: Service, metadata: {name: llmmodel-chat, uid: service}}";
    for (status, counts, available) in
        [(HALF, (2, 1), "True ReplicasAvailable"), ("observedGeneration: 1", (0, 0), "False NoReplicasAvailable")]
    {
        let deployment = crate::case::parse(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: llmmodel-chat, uid: d}}, status: {{{status}}}}}"
        ))?;
        let answer = run(case("replicas: -1")?.child(deployment).child_yaml(service).status(&old))?;
        let status: ServingStatus = answer.status()?;
        assert_eq!((status.replicas, status.ready_replicas), counts);
        assert_eq!((status.selector.as_str(), status.url.as_str()), ("a=b", "http://a"), "the rest stays");
        assert_eq!((condition(&answer, "Available").as_str(), condition(&answer, "Ready").as_str()), (available, ""));
    }
    let gone: ServingStatus = run(case("replicas: -1")?.status(&old))?.status()?;
    assert_eq!((gone.replicas, gone.ready_replicas, gone.url.as_str()), (0, 0, ""), "neither Pods nor a Service");
    Ok(())
}

/// A budget that lets no Pod be missing is not refused where a rollout may add one, but it stops all drains.
#[test]
fn a_budget_that_allows_no_disruption_is_told() -> Result<(), Error> {
    let cases = [
        ("replicas: 2, disruptionBudget: {minAvailable: 2}", "False BudgetAllowsNone"),
        ("replicas: 2, disruptionBudget: {minAvailable: 51%}", "False BudgetAllowsNone"),
        ("replicas: 2, disruptionBudget: {maxUnavailable: 0}", "False BudgetAllowsNone"),
        (
            "replicas: 2, gpuCount: 1, rollout: {maxSurge: 1}, disruptionBudget: {minAvailable: 2}",
            "False BudgetAllowsNone",
        ),
        ("replicas: 2, disruptionBudget: {minAvailable: 1}", ""),
        ("replicas: 0, disruptionBudget: {minAvailable: 1}", ""),
        ("replicas: 2", ""),
        ("replicas: 1", ""),
    ];
    for (spec, expected) in cases {
        assert_eq!(condition(&run(case(spec)?)?, "DisruptionAllowed"), expected, "{spec}");
    }
    Ok(())
}

#[test]
fn a_download_that_fails_is_told_with_pod_and_stage() -> Result<(), Error> {
    let status = "phase: Pending, initContainerStatuses: [{name: model-download, state: {waiting: {reason: CrashLoopBackOff}}, \
                  lastState: {terminated: {exitCode: 124, reason: Error}}}]";
    let answer = run(with_deployment(HALF)?.found(pod("chat-a", status)?))?;
    assert_eq!(condition(&answer, "PodsHealthy"), "False ModelDownloadFailed");
    let message = answer.condition("PodsHealthy").map(|condition| condition.message.as_str());
    assert_eq!(message, Some("Pod chat-a, download of the model: CrashLoopBackOff, its deadline passed"));
    Ok(())
}

/// While all is well, no change of a Pod calls the plugin.
#[test]
fn pods_of_a_complete_server_are_not_looked_at() -> Result<(), Error> {
    let answer = run(with_deployment(COMPLETE)?.found(pod("chat-a", OOM)?))?;
    assert_eq!(condition(&answer, "PodsHealthy"), "True Healthy");
    Ok(())
}

#[test]
fn an_event_tells_a_change_once() -> Result<(), Error> {
    let with_old = |case: Case, ready: &str, healthy: &str| -> Result<Case, Error> {
        // The status of the object comes with the request.
        let status = crate::case::parse(&format!(
            "{{conditions: [{{type: Ready, status: '{ready}', reason: Available, message: m}}, \
             {{type: PodsHealthy, status: '{healthy}', reason: OOMKilled, message: m}}]}}"
        ))?;
        Ok(case.status(status))
    };
    let new = run(with_deployment(COMPLETE)?)?;
    assert_eq!(events(&new), ["Normal ModelServerReady"]);
    let same = run(with_old(with_deployment(COMPLETE)?, "True", "True")?)?;
    assert!(events(&same).is_empty());
    let troubled = with_deployment(HALF)?.found(pod("chat-a", OOM)?);
    let fallen = run(with_old(troubled, "True", "True")?)?;
    assert_eq!(events(&fallen), ["Warning ModelServerNotReady", "Warning OOMKilled"]);
    let still = with_deployment(HALF)?.found(pod("chat-a", OOM)?);
    assert!(events(&run(with_old(still, "False", "False")?)?).is_empty());
    Ok(())
}

#[test]
fn the_status_has_counts_selector_and_address() -> Result<(), Error> {
    let service = "{apiVersion: v1, kind: Service, metadata: {name: llmmodel-chat, uid: service}}";
    let status: ServingStatus = run(with_deployment(HALF)?.child_yaml(service))?.status()?;
    let expected = ServingStatus {
        replicas: 2,
        ready_replicas: 1,
        selector: "app.kubernetes.io/component=llmmodel,app.kubernetes.io/instance=llmmodel-chat".to_owned(),
        url: "http://llmmodel-chat.ml.svc:8000".to_owned(),
        lora_adapters: Vec::new(),
    };
    assert_eq!(status, expected);
    Ok(())
}
