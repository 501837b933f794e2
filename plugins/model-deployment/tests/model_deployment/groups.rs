//! Servers that span several nodes: when they do, of what groups of Pods consist, and how one kind of workload follows the other.

use crate::case::{case, children, run, with_live};
use llm_serving::testing::{Children, condition, refusal, waits_for};
use pilothouse_sdk::testing::Case;
use pilothouse_sdk::{Error, Kind};
use serde_json::{Value, json};

/// Servers on two nodes each.
const NODES: &str = "tensorParallelSize: 8, pipelineParallelSize: 2";

/// Two of them.
const GROUPS: &str = "replicas: 2, tensorParallelSize: 8, pipelineParallelSize: 2";

struct LeaderWorkerSet;

impl Kind for LeaderWorkerSet {
    const API_VERSION: &'static str = "leaderworkerset.x-k8s.io/v1";
    const KIND: &'static str = "LeaderWorkerSet";
}

/// With a LeaderWorkerSet of so many groups, all of which are ready.
fn with_groups(case: Case, replicas: i32) -> Case {
    case.child(json!({
        "apiVersion": LeaderWorkerSet::API_VERSION, "kind": LeaderWorkerSet::KIND,
        "metadata": { "name": "llama-3-70b-mn", "uid": "groups", "generation": 1 },
        "spec": { "replicas": replicas },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
            "conditions": [{ "type": "Progressing", "status": "False", "reason": "GroupsProgressing" }],
        },
    }))
}

fn group_template(spec: &str) -> Result<Value, Error> {
    Ok(children(spec)?.only("LeaderWorkerSet")?["spec"]["leaderWorkerTemplate"].clone())
}

fn arguments(template: &Value) -> String {
    let args = template["spec"]["containers"][0]["args"].as_array().cloned().unwrap_or_default();
    args.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_server_with_more_gpus_than_a_node_is_a_group() -> Result<(), Error> {
    // The fields, the GPUs of each Pod, and the Pods of a group; none for a StatefulSet.
    let cases = [
        ("tensorParallelSize: 8", "8", None),
        ("tensorParallelSize: 16", "8", Some(2)),
        ("tensorParallelSize: 8, pipelineParallelSize: 2", "8", Some(2)),
        ("tensorParallelSize: 4, pipelineParallelSize: 2", "8", None),
        ("tensorParallelSize: 16, gpusPerNode: 16", "16", None),
        ("tensorParallelSize: 4, gpusPerNode: 2", "2", Some(2)),
        ("pipelineParallelSize: 2, gpusPerNode: 1", "1", Some(2)),
    ];
    for (spec, gpus, size) in cases {
        let children = children(spec)?;
        let template = match size {
            None => children.only("StatefulSet")?["spec"]["template"].clone(),
            Some(size) => {
                let group = &children.only("LeaderWorkerSet")?["spec"]["leaderWorkerTemplate"];
                assert_eq!(group["size"], size, "{spec}");
                assert!(children.only("StatefulSet").is_err(), "{spec}");
                group["leaderTemplate"].clone()
            }
        };
        let limits = &template["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(limits, &json!({ "nvidia.com/gpu": gpus }), "{spec}");
    }
    Ok(())
}

#[test]
fn the_configuration_says_how_many_gpus_a_node_has() -> Result<(), Error> {
    let answer = run(case("tensorParallelSize: 8")?.config(json!({ "gpus": { "perNode": 4 } })))?;
    let children = Children::of(&answer)?;
    assert_eq!(children.only("LeaderWorkerSet")?["spec"]["leaderWorkerTemplate"]["size"], 2);
    Ok(())
}

#[test]
fn the_pods_of_a_group_find_their_leader() -> Result<(), Error> {
    let group = group_template(GROUPS)?;
    let leader = "--model llama-3-70b --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend mp --nnodes 2 \
                  --node-rank $(LWS_WORKER_INDEX) --master-addr $(LWS_LEADER_ADDRESS) --master-port 29500";
    assert_eq!(arguments(&group["leaderTemplate"]), leader);
    assert_eq!(arguments(&group["workerTemplate"]), format!("{leader} --headless"));
    let sglang = group_template(&format!("{GROUPS}, engine: sglang"))?;
    let args = arguments(&sglang["workerTemplate"]);
    let expected = "--dist-init-addr $(LWS_LEADER_ADDRESS):20000 --nnodes 2 --node-rank $(LWS_WORKER_INDEX)";
    assert!(args.contains(expected) && args.contains("--pp-size 2"), "{args}");
    Ok(())
}

#[test]
fn workers_have_no_probes_and_wait_for_the_name_of_their_leader() -> Result<(), Error> {
    let group = group_template(&format!("{GROUPS}, modelSource: {{uri: 'hf://meta-llama/Llama-3-70B'}}"))?;
    let (leader, worker) = (&group["leaderTemplate"]["spec"], &group["workerTemplate"]["spec"]);
    for field in ["ports", "startupProbe", "readinessProbe", "livenessProbe"] {
        assert!(leader["containers"][0].get(field).is_some(), "{field}");
        assert!(worker["containers"][0].get(field).is_none(), "{field}");
    }
    let names = |spec: &Value| -> Vec<Value> {
        spec["initContainers"].as_array().into_iter().flatten().map(|container| container["name"].clone()).collect()
    };
    assert_eq!(names(leader), ["model-download"]);
    assert_eq!(names(worker), ["model-download", "wait-for-leader"], "each node needs the model");
    assert_eq!(worker["initContainers"][1]["command"][3], "$(LWS_LEADER_ADDRESS)");
    Ok(())
}

/// A leader is only ready once its workers are there, and a slow pull of an image must not begin the group anew.
#[test]
fn a_group_starts_together_and_is_recreated_once_it_has_started() -> Result<(), Error> {
    let children = children(GROUPS)?;
    let spec = &children.only("LeaderWorkerSet")?["spec"];
    assert_eq!(spec["startupPolicy"], "LeaderCreated");
    assert_eq!(spec["leaderWorkerTemplate"]["restartPolicy"], "RecreateGroupAfterStart");
    let rolling = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    assert_eq!(spec["rolloutStrategy"]["rollingUpdateConfiguration"], rolling, "no spare GPU is needed");
    Ok(())
}

#[test]
fn clients_talk_to_leaders_only() -> Result<(), Error> {
    let children =
        children(&format!("{GROUPS}, networkPolicy: {{}}, inferencePool: {{endpointPicker: {{name: picker}}}}"))?;
    let all = json!({
        "app.kubernetes.io/instance": "llama-3-70b", "app.kubernetes.io/component": "modeldeployment",
    });
    let mut leaders = all.clone();
    leaders["leaderworkerset.sigs.k8s.io/worker-index"] = json!("0");
    assert_eq!(
        children.only("Service")?["spec"]["selector"],
        leaders,
        "and no headless Service beside the controller's own"
    );
    assert_eq!(children.only("InferencePool")?["spec"]["selector"]["matchLabels"], leaders);
    let policy = &children.only("NetworkPolicy")?["spec"];
    let group = json!({ "from": [{ "podSelector": { "matchLabels": all } }] });
    assert_eq!((&policy["podSelector"]["matchLabels"], &policy["ingress"][1]), (&all, &group));
    Ok(())
}

/// A Pod that goes takes its group along.
#[test]
fn no_more_pods_may_be_missing_than_groups() -> Result<(), Error> {
    let budget = |spec: &str| -> Result<Value, Error> {
        Ok(children(&format!("{NODES}, {spec}"))?.only("PodDisruptionBudget")?["spec"]["maxUnavailable"].clone())
    };
    assert_eq!(budget("replicas: 2")?, 1);
    assert_eq!(budget("replicas: 5, disruptionBudget: {minAvailable: 3}, rollout: {maxUnavailable: 1}")?, 2);
    assert_eq!(budget("replicas: 4, disruptionBudget: {maxUnavailable: 50%}")?, 2);
    Ok(())
}

#[test]
fn autoscalers_scale_groups() -> Result<(), Error> {
    let target =
        json!({ "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama-3-70b-mn" });
    let hpa = children(&format!("{GROUPS}, sla: {{maxLatency: 1s}}"))?;
    assert_eq!(hpa.only("HorizontalPodAutoscaler")?["spec"]["scaleTargetRef"], target);
    let keda = "sla: {maxLatency: 1s}, autoscaling: {autoscaler: keda, keda: {serverAddress: 'http://p'}}";
    assert_eq!(children(&format!("{GROUPS}, {keda}"))?.only("ScaledObject")?["spec"]["scaleTargetRef"], target);
    Ok(())
}

#[test]
fn groups_are_ready_as_their_controller_counts_them() -> Result<(), Error> {
    let answer = run(with_groups(case(GROUPS)?, 2))?;
    assert_eq!(
        [condition(&answer, "Ready"), condition(&answer, "Available")],
        ["True Available", "True ReplicasAvailable"]
    );
    let answer = run(with_groups(case(GROUPS)?, 1))?;
    assert_eq!(condition(&answer, "Ready"), "False Progressing", "no condition of groups tells a failure");
    let status: Value = answer.status()?;
    let selector = status["selector"].as_str().unwrap_or_default();
    assert!(selector.ends_with("leaderworkerset.sigs.k8s.io/worker-index=0"), "{selector}");
    Ok(())
}

#[test]
fn the_old_workload_goes_before_the_new_one_comes() -> Result<(), Error> {
    let workloads = |case: Case| -> Result<[bool; 2], Error> {
        let children = Children::of(&run(case)?)?;
        Ok(["StatefulSet", "LeaderWorkerSet"].map(|kind| children.only(kind).is_ok()))
    };
    let one = "replicas: 2, tensorParallelSize: 8";
    assert_eq!(workloads(with_live(case(GROUPS)?, 2))?, [false, false]);
    assert_eq!(workloads(case(GROUPS)?)?, [false, true]);
    assert_eq!(workloads(with_groups(case(one)?, 2))?, [false, false]);
    assert_eq!(workloads(case(one)?)?, [true, false]);
    Ok(())
}

/// What goes is not what was asked for, and it serves as long as it runs.
#[test]
fn clients_talk_to_the_old_workload_until_it_is_gone() -> Result<(), Error> {
    let one = "replicas: 2, tensorParallelSize: 8";
    let groups = "the StatefulSet 'llama-3-70b' goes before the LeaderWorkerSet 'llama-3-70b-mn' comes, for both need the same GPUs; \
                  if it stays, see its finalizers and its Pods";
    let sets = "the LeaderWorkerSet 'llama-3-70b-mn' goes before the StatefulSet 'llama-3-70b' comes, for both need the same GPUs; \
                if it stays, see its finalizers and its Pods";
    for (case, expected, only_leaders) in
        [(with_live(case(GROUPS)?, 2), groups, false), (with_groups(case(one)?, 2), sets, true)]
    {
        let answer = run(case)?;
        let message = answer.condition("Ready").map(|condition| condition.message.as_str());
        assert_eq!((condition(&answer, "Ready").as_str(), message), ("False AwaitingRemoval", Some(expected)));
        let found = ["Progressing", "Degraded", "Available", "Stalled"].map(|name| condition(&answer, name));
        assert_eq!(found, ["True AwaitingRemoval", "False AwaitingRemoval", "True ReplicasAvailable", ""]);
        let status: Value = answer.status()?;
        assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(2), &json!(2)), "{expected}");
        let children = Children::of(&answer)?;
        let services =
            children.iter().filter(|child| child["metadata"]["labels"]["llm.example.com/service"] == "clients");
        let selectors: Vec<_> =
            services.map(|service| service["spec"]["selector"].get(WORKER_INDEX).is_some()).collect();
        assert_eq!(selectors, [only_leaders], "{expected}");
    }
    Ok(())
}

const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// A Pod of the groups is one of a StatefulSet, which is the LeaderWorkerSet's own, or that of a leader.
#[test]
fn the_pods_of_groups_are_known_by_their_owners() -> Result<(), Error> {
    let owned = |api_version: &str, kind: &str, uid: &str, owner: &str| {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": uid, "namespace": "ml", "uid": uid, "ownerReferences": [{ "uid": owner, "controller": true }],
                "labels": {
                    "leaderworkerset.sigs.k8s.io/name": "llama-3-70b-mn", "app.kubernetes.io/instance": "llama-3-70b",
                    "app.kubernetes.io/component": "modeldeployment",
                },
            },
            "status": { "phase": "Failed", "reason": "Evicted" },
        })
    };
    let set = |uid, owner| owned("apps/v1", "StatefulSet", uid, owner);
    let pod = |uid, owner| owned("v1", "Pod", uid, owner);
    for (bad, expected) in [
        (pod("leader", "leaders"), "False Evicted"),
        (pod("worker", "workers"), "False Evicted"),
        (pod("foreign", "elsewhere"), "True Healthy"),
        (pod("foreign", "of-others"), "True Healthy"),
    ] {
        let mut leader = pod("leader", "leaders");
        leader["status"] = json!({ "phase": "Running" });
        let mut case = with_groups(case(&GROUPS.replace("replicas: 2", "replicas: 3"))?, 2);
        case = case.found(set("leaders", "groups")).found(set("workers", "leader")).found(set("of-others", "other"));
        if bad["metadata"]["name"] != "leader" {
            case = case.found(leader);
        }
        let answer = run(case.found(&bad))?;
        assert_eq!(condition(&answer, "PodsHealthy"), expected, "{}", bad["metadata"]["name"]);
    }
    Ok(())
}

#[test]
fn where_the_kind_is_missing_everything_stays_as_it_is() -> Result<(), Error> {
    let answer = run(with_live(case(GROUPS)?, 2).not_installed::<LeaderWorkerSet>())?;
    assert_eq!(waits_for(&answer), Some("KindNotInstalled"));
    assert!(answer.response.children.is_none());
    assert_eq!(condition(&answer, "KindsInstalled"), "False KindNotInstalled");
    assert_eq!(condition(&answer, "Available"), "True ReplicasAvailable", "what runs goes on");
    assert_eq!(waits_for(&run(case("tensorParallelSize: 8")?.not_installed::<LeaderWorkerSet>())?), None);
    Ok(())
}

#[test]
fn a_command_of_the_user_is_left_alone() -> Result<(), Error> {
    let group = group_template(&format!("{GROUPS}, engine: llama-cpp, command: [run], args: [-x]"))?;
    assert_eq!((arguments(&group["leaderTemplate"]), arguments(&group["workerTemplate"])), ("-x".into(), "-x".into()));
    let refused = run(case(&format!("{GROUPS}, engine: llama-cpp"))?)?;
    let sentence = refusal(&refused);
    assert!(sentence.is_some_and(|it| it.contains("the engine 'llama-cpp' has no stages")), "{sentence:?}");
    Ok(())
}

/// The controller of LeaderWorkerSets uses a Service of the set's name whoever's it is, and wants a StatefulSet of that name.
#[test]
fn somebody_elses_object_of_the_name_of_the_groups_is_told_and_waited_for() -> Result<(), Error> {
    let named = |kind: &str, owner: Option<(&str, &str)>| {
        let owner = owner.map(|(kind, name)| json!({ "kind": kind, "name": name, "uid": "u", "controller": true }));
        let owners: Vec<_> = owner.into_iter().collect();
        json!({
            "apiVersion": if kind == "Service" { "v1" } else { "apps/v1" }, "kind": kind,
            "metadata": { "name": "llama-3-70b-mn", "namespace": "ml", "uid": "other", "ownerReferences": owners },
        })
    };
    let cases = [
        (GROUPS, named("Service", None), Some("is not theirs;")),
        (
            GROUPS,
            named("Service", Some(("LLMDeployment", "llama-3-70b-mn"))),
            Some("but of LLMDeployment 'llama-3-70b-mn'"),
        ),
        (GROUPS, named("Service", Some(("LeaderWorkerSet", "other"))), Some("but of LeaderWorkerSet 'other'")),
        (GROUPS, named("StatefulSet", None), Some("the StatefulSet 'llama-3-70b-mn'")),
        (GROUPS, named("Service", Some(("LeaderWorkerSet", "llama-3-70b-mn"))), None),
        (GROUPS, named("StatefulSet", Some(("LeaderWorkerSet", "llama-3-70b-mn"))), None),
        ("replicas: 2", named("Service", None), None),
    ];
    for (spec, other, told) in cases {
        let answer = run(case(spec)?.found(&other))?;
        let message = answer.condition("GroupNamesFree").map(|found| found.message.clone());
        let is_told = message.as_ref().is_some_and(|message| told.is_some_and(|words| message.contains(words)));
        assert_eq!((message.is_some(), is_told), (told.is_some(), told.is_some()), "{other}: {message:?}");
        let makes_groups = Children::of(&answer)?.only("LeaderWorkerSet").is_ok();
        assert_eq!(makes_groups, spec == GROUPS && told.is_none(), "{other}");
        if told.is_some() {
            assert_eq!(condition(&answer, "Ready"), "False NameConflict", "{other}");
            // What is there already stays, and goes on to be told.
            let answer = run(with_groups(case(spec)?.found(&other), 2))?;
            assert!(Children::of(&answer)?.only("LeaderWorkerSet").is_ok(), "{other}");
            let told = ["Ready", "GroupNamesFree"].map(|name| condition(&answer, name));
            assert_eq!(told, ["True Available", "False NameConflict"], "{other}");
        }
    }
    Ok(())
}
