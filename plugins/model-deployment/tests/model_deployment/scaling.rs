//! Who decides how many Pods there are, and that a change of that never makes the number jump.

use crate::case::{case, children, named, run, with_live};
use llm_serving::testing::{Children, condition};
use pilothouse_sdk::{
    Error, Handling, Kind, RefusedChild, raw,
    testing::{Answer, Case},
};
use serde_json::{Value, json};

/// The number of Pods in the answer, and whether it is left to others.
fn replicas(answer: &Answer) -> Result<(i64, bool), Error> {
    let stateful_set = Children::of(answer)?.only("StatefulSet")?["spec"]["replicas"].as_i64().unwrap_or_default();
    let listed = answer.response.children.iter().flatten();
    let is_left = listed.flat_map(|child| &child.unmanaged_fields).any(|field| field == "/spec/replicas");
    Ok((stateful_set, is_left))
}

const SLA: &str = "replicas: 2, sla: {maxLatency: 100ms}";
const NONE: &str = "replicas: 2, sla: {maxLatency: 100ms}, autoscaling: {autoscaler: none}";
const EXTERNAL: &str = "replicas: 2, autoscaling: {autoscaler: external}";

/// The spec; the number of Pods that the StatefulSet is asked for, if it exists; the number in the answer, and whether it is left to
/// others.
#[rustfmt::skip]
const HANDOVERS: &[(&str, Option<i32>, (i64, bool))] = &[
    // A StatefulSet that does not exist would have one Pod if nobody said how many.
    (SLA, None, (2, false)),
    (SLA, Some(2), (2, true)),
    (SLA, Some(5), (5, true)),
    // No autoscaler scales what has no Pod.
    (SLA, Some(0), (2, false)),
    (EXTERNAL, None, (2, false)),
    (EXTERNAL, Some(7), (7, true)),
    // Somebody else may scale to nothing: what we have not removed ourselves stays away.
    (EXTERNAL, Some(0), (2, false)),
    ("replicas: 2, autoscaling: {autoscaler: external, minReplicas: 0}", None, (2, false)),
    ("replicas: 2, autoscaling: {autoscaler: external, minReplicas: 0}", Some(0), (0, true)),
    // What is made keeps to the bounds from the beginning.
    ("replicas: 5, sla: {maxLatency: 100ms}, autoscaling: {minReplicas: 1, maxReplicas: 2}", None, (2, false)),
    ("replicas: 1, sla: {maxLatency: 100ms}, autoscaling: {minReplicas: 3, maxReplicas: 4}", None, (3, false)),
    (NONE, Some(5), (2, false)),
    ("replicas: 3", Some(5), (3, false)),
    ("replicas: 2, sla: {maxLatency: 100ms}, suspend: true", Some(5), (0, false)),
    ("replicas: 0, sla: {maxLatency: 100ms}", Some(5), (0, false)),
    ("replicas: 2, sla: {minThroughput: 50, throughputPerReplica: 10}", None, (5, false)),
];

#[test]
fn the_number_of_pods_is_handed_over_without_a_jump() -> Result<(), Error> {
    for (spec, live, expected) in HANDOVERS {
        let case = case(spec)?;
        let case = match live {
            Some(live) => with_live(case, *live),
            None => case,
        };
        assert_eq!(replicas(&run(case)?)?, *expected, "{spec}, live {live:?}");
    }
    Ok(())
}

/// An external autoscaler that has removed the last Pod is not fought. After a suspension the first Pods come from us, for most
/// autoscalers scale nothing that has none.
#[test]
fn what_an_external_autoscaler_removed_stays_away() -> Result<(), Error> {
    let after = |needed: i32| -> Result<(i64, bool), Error> {
        replicas(&run(with_live(case(EXTERNAL)?, 0).status(json!({ "neededReplicas": needed })))?)
    };
    assert_eq!(after(2)?, (0, true));
    assert_eq!(after(0)?, (2, false));
    let suspended = run(with_live(case(&format!("{EXTERNAL}, suspend: true"))?, 0))?;
    assert_eq!(suspended.status::<Value>()?["neededReplicas"], 0, "which is how we know");
    Ok(())
}

/// An autoscaler of ours would scale the workload of somebody else.
#[test]
fn an_autoscaler_comes_when_the_workload_is_there() -> Result<(), Error> {
    let handling = |case: Case| -> Result<Option<Handling>, Error> {
        let children = run(case)?.response.children.unwrap_or_default();
        let is_scaler = |child: &raw::Child| {
            ["HorizontalPodAutoscaler\"", "ScaledObject\""].iter().any(|kind| child.object.contains(kind))
        };
        Ok(children.into_iter().find(|child| is_scaler(child)).map(|child| child.handling))
    };
    let refused = |case: Case, reason: &str| {
        case.refused(RefusedChild {
            kind: raw::KindRef { api_version: "apps/v1".to_owned(), kind: "StatefulSet".to_owned() },
            namespace: Some("ml".to_owned()),
            name: "llama-3-70b".to_owned(),
            reason: reason.to_owned(),
            message: "no".to_owned(),
        })
    };
    for spec in [SLA, KEDA] {
        assert_eq!(handling(with_live(case(spec)?, 2))?, Some(Handling::Apply), "{spec}");
        assert_eq!(handling(case(spec)?)?, Some(Handling::Keep), "neither made nor removed: {spec}");
        assert_eq!(handling(refused(case(spec)?, "NameConflict"))?, None, "{spec}");
        assert_eq!(handling(refused(case(spec)?, "Forbidden"))?, Some(Handling::Keep), "{spec}");
    }
    Ok(())
}

#[test]
fn an_autoscaler_is_there_where_it_decides() -> Result<(), Error> {
    let cases = [
        (SLA, true),
        ("replicas: 2, autoscaling: {maxReplicas: 4}", true),
        (NONE, false),
        (EXTERNAL, false),
        ("replicas: 2", false),
        ("replicas: 2, sla: {maxLatency: 100ms}, suspend: true", false),
        ("replicas: 2, sla: {maxLatency: 100ms}, engine: container, image: 'a:1'", false),
    ];
    for (spec, expected) in cases {
        assert_eq!(children(spec)?.only("HorizontalPodAutoscaler").is_ok(), expected, "{spec}");
    }
    Ok(())
}

#[test]
fn bounds_follow_from_what_is_needed() -> Result<(), Error> {
    let bounds = |spec: &str| -> Result<[Value; 2], Error> {
        let children = children(spec)?;
        let hpa = &children.only("HorizontalPodAutoscaler")?["spec"];
        Ok(["minReplicas", "maxReplicas"].map(|field| hpa[field].clone()))
    };
    assert_eq!(bounds("replicas: 4, sla: {maxLatency: 1s}")?, [4, 8]);
    assert_eq!(bounds("sla: {maxLatency: 1s, minThroughput: 50, throughputPerReplica: 10}")?, [5, 10]);
    assert_eq!(bounds("replicas: 4, sla: {maxLatency: 1s}, autoscaling: {minReplicas: 1, maxReplicas: 3}")?, [1, 3]);
    Ok(())
}

/// llama.cpp measures no latency; the queue is all there is to scale by.
#[test]
fn an_engine_without_latency_is_scaled_by_its_queue() -> Result<(), Error> {
    let children = children("replicas: 2, engine: llama-cpp, sla: {maxLatency: 1s}")?;
    let metrics = children.only("HorizontalPodAutoscaler")?["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = metrics.iter().map(|metric| &metric["external"]["metric"]["name"]).collect();
    assert_eq!(names, ["llamacpp_requests_deferred"]);
    Ok(())
}

const KEDA: &str = "replicas: 2, sla: {maxLatency: 100ms}, autoscaling: {autoscaler: keda, keda: {serverAddress: 'http://prometheus:9090'}}";

/// A child that exists, of which only that matters.
fn existing(kind: &str, api_version: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": "llama-3-70b", "namespace": "ml", "uid": "u" },
    })
}

#[test]
fn keda_asks_a_prometheus_for_the_engines_own_metrics() -> Result<(), Error> {
    let children = children(KEDA)?;
    let spec = &children.only("ScaledObject")?["spec"];
    let selector = "namespace=\"ml\",service=\"llama-3-70b\"";
    let query = format!(
        "(histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{{{selector}}}[2m]))) >= 0) \
         or 0 * sum(vllm:num_requests_waiting{{{selector}}})"
    );
    let trigger = |metric_type: &str, query: &str, threshold: &str| {
        json!({
            "type": "prometheus", "metricType": metric_type,
            "metadata": {
                "serverAddress": "http://prometheus:9090", "query": query, "threshold": threshold, "ignoreNullValues": "false",
            },
        })
    };
    let queue = format!("sum(vllm:num_requests_waiting{{{selector}}})");
    assert_eq!(spec["triggers"], json!([trigger("Value", &query, "0.1"), trigger("AverageValue", &queue, "5")]));
    assert_eq!((&spec["minReplicaCount"], &spec["maxReplicaCount"]), (&2.into(), &4.into()));
    assert_eq!(spec["advanced"]["horizontalPodAutoscalerConfig"]["name"], "llama-3-70b.keda");
    assert!(children.only("HorizontalPodAutoscaler").is_err(), "only one is in charge");
    Ok(())
}

/// A HorizontalPodAutoscaler under the name that KEDA's has, of this owner.
fn named_as_kedas(owner: &str, name: &str) -> Value {
    let mut hpa = existing("HorizontalPodAutoscaler", "autoscaling/v2");
    hpa["metadata"]["name"] = "llama-3-70b.keda".into();
    hpa["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": owner, "name": name, "uid": "u", "controller": true }]);
    let current = json!({ "metric": { "name": "s0-prometheus" }, "current": { "value": "42m" } });
    hpa["status"] = json!({ "currentMetrics": [{ "type": "External", "external": current }] });
    hpa
}

/// KEDA writes whatever has the name, and makes it its own: that of another object must not.
#[test]
fn no_object_has_the_autoscaler_that_keda_makes_for_another_one() -> Result<(), Error> {
    let children = children(KEDA)?;
    let of_keda = &children.only("ScaledObject")?["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["name"];
    let of_keda = of_keda.as_str().unwrap_or_default();
    for name in [of_keda, "llama-3-70b-keda", "keda-hpa-llama-3-70b"] {
        let answer = run(named(name, SLA)?)?;
        let own = Children::of(&answer)?.only("HorizontalPodAutoscaler")?["metadata"]["name"].clone();
        assert_ne!(own, of_keda, "{name}");
    }
    Ok(())
}

/// Somebody may have an autoscaler of something else under that name.
#[test]
fn an_autoscaler_that_keda_did_not_make_of_this_object_is_nothing_to_it() -> Result<(), Error> {
    for (owner, name) in [("ModelDeployment", "llama-3-70b.keda"), ("ScaledObject", "other")] {
        let answer = run(with_live(case(SLA)?.found(named_as_kedas(owner, name)), 2))?;
        assert!(Children::of(&answer)?.only("HorizontalPodAutoscaler").is_ok(), "{owner} {name}");
        let answer = run(with_live(case(KEDA)?.found(named_as_kedas(owner, name)), 2))?;
        assert_eq!(condition(&answer, "SLAUnverified"), "True NotObserved", "{owner} {name}");
    }
    let answer = run(with_live(case(KEDA)?.found(named_as_kedas("ScaledObject", "llama-3-70b")), 2))?;
    assert_eq!(condition(&answer, "SLAMet"), "True WithinSLA");
    Ok(())
}

/// Somebody has to be in charge until the new one can be.
#[test]
fn without_keda_the_autoscaler_at_work_stays() -> Result<(), Error> {
    let from_zero = "sla: {maxLatency: 1s}, autoscaling: {autoscaler: keda, minReplicas: 0, keda: {serverAddress: 'http://p', \
                     triggers: [{type: prometheus}]}}";
    for (spec, min) in [(KEDA, 2), (from_zero, 1)] {
        let case = without_keda(case(spec)?).child(existing("HorizontalPodAutoscaler", "autoscaling/v2"));
        let answer = run(with_live(case, 5))?;
        let children = Children::of(&answer)?;
        assert_eq!(children.only("HorizontalPodAutoscaler")?["spec"]["minReplicas"], min, "{spec}");
        assert_eq!(condition(&answer, "KindsInstalled"), "False KindNotInstalled");
        let children = Children::of(&run(without_keda(self::case(spec)?))?)?;
        assert!(children.only("HorizontalPodAutoscaler").is_err(), "nobody asked for one: {spec}");
    }
    Ok(())
}

struct ScaledObject;

impl Kind for ScaledObject {
    const API_VERSION: &'static str = "keda.sh/v1alpha1";
    const KIND: &'static str = "ScaledObject";
}

fn without_keda(case: Case) -> Case {
    case.not_installed::<ScaledObject>()
}

/// The number that an autoscaler found stays when it goes, until the user gives another one.
#[test]
fn an_autoscaler_that_goes_leaves_the_number_of_pods() -> Result<(), Error> {
    let hpa = || existing("HorizontalPodAutoscaler", "autoscaling/v2");
    let status = |needed: i32, kept: Option<i32>| json!({ "neededReplicas": needed, "keptReplicas": kept });
    let kept =
        |answer: &Answer| -> Result<Option<i64>, Error> { Ok(answer.status::<Value>()?["keptReplicas"].as_i64()) };
    for spec in ["replicas: 1", "replicas: 1, sla: {maxLatency: 1s}, autoscaling: {autoscaler: none}"] {
        // First the number is remembered, and only then the autoscaler goes.
        let first = run(with_live(case(spec)?.child(hpa()), 8).status(status(1, None)))?;
        assert_eq!((replicas(&first)?, kept(&first)?), ((8, true), Some(8)), "{spec}");
        assert!(Children::of(&first)?.only("HorizontalPodAutoscaler").is_ok(), "{spec}");
        assert_eq!(first.response.requeue_after, Some(0), "nothing else leads to the next call: {spec}");
        let second = run(with_live(case(spec)?.child(hpa()), 8).status(status(1, Some(8))))?;
        assert_eq!((replicas(&second)?, kept(&second)?), ((8, true), Some(8)), "{spec}");
        assert!(Children::of(&second)?.only("HorizontalPodAutoscaler").is_err(), "{spec}");
        assert_eq!(second.response.requeue_after, None, "{spec}");
        let later = run(with_live(case(spec)?, 8).status(status(1, Some(8))))?;
        assert_eq!((replicas(&later)?, kept(&later)?), ((8, true), Some(8)), "{spec}");
    }
    // Another number is meant; and nothing is kept of what the autoscaler had left as it was.
    let other = run(with_live(case("replicas: 3")?, 8).status(status(1, Some(8))))?;
    assert_eq!((replicas(&other)?, kept(&other)?), ((3, false), None));
    let other = run(with_live(case("replicas: 3")?.child(hpa()), 8).status(status(1, None)))?;
    assert_eq!((replicas(&other)?, kept(&other)?), ((3, false), None));
    let same = run(with_live(case("replicas: 1")?, 1).status(status(1, Some(8))))?;
    assert_eq!((replicas(&same)?, kept(&same)?), ((1, false), None));
    let suspended = run(with_live(case("replicas: 1, suspend: true")?, 8).status(status(1, Some(8))))?;
    assert_eq!((replicas(&suspended)?, kept(&suspended)?), ((0, false), None));
    Ok(())
}

/// Also where no autoscaler is there any more at the moment of the change: an external one, or one of ours on its way to another.
#[test]
fn who_decided_before_leaves_the_number_of_pods_as_well() -> Result<(), Error> {
    let after = |autoscaler: &str| -> Result<(i64, bool), Error> {
        let status = json!({ "neededReplicas": 2, "autoscaler": autoscaler });
        replicas(&run(with_live(case("replicas: 2")?, 7).status(status))?)
    };
    for autoscaler in ["hpa", "keda", "external"] {
        assert_eq!(after(autoscaler)?, (7, true), "{autoscaler}");
    }
    assert_eq!(after("none")?, (2, false), "somebody has changed what the spec decides");
    for (spec, autoscaler) in [(SLA, "hpa"), (KEDA, "keda"), (EXTERNAL, "external"), (NONE, "none")] {
        let status = run(with_live(case(spec)?, 2))?.status::<Value>()?;
        assert_eq!(status["autoscaler"], autoscaler, "which is how we know: {spec}");
    }
    Ok(())
}

/// A finalizer may keep it, such as KEDA's once KEDA is gone.
#[test]
fn an_autoscaler_that_does_not_go_is_told() -> Result<(), Error> {
    let hpa = || existing("HorizontalPodAutoscaler", "autoscaling/v2");
    let scaled_object = || existing("ScaledObject", "keda.sh/v1alpha1");
    let cases = [
        (SLA, scaled_object(), "ScaledObject"),
        (NONE, scaled_object(), "ScaledObject"),
        (EXTERNAL, scaled_object(), "ScaledObject"),
        (KEDA, hpa(), "HorizontalPodAutoscaler"),
    ];
    for (spec, old, kind) in cases {
        let answer = run(with_live(case(spec)?.child(old), 5))?;
        assert_eq!(condition(&answer, "OnlyOneAutoscaler"), "Unknown AwaitingRemoval", "{spec}");
        let told = answer.condition("OnlyOneAutoscaler").map(|condition| condition.message.clone());
        assert!(told.is_some_and(|told| told.contains(kind)), "{spec}");
    }
    for (spec, own) in [(SLA, hpa()), (KEDA, scaled_object())] {
        assert_eq!(condition(&run(with_live(case(spec)?.child(own), 5))?, "OnlyOneAutoscaler"), "", "{spec}");
    }
    let without_keda = run(with_live(without_keda(case(KEDA)?).child(hpa()), 5))?;
    assert_eq!(condition(&without_keda, "OnlyOneAutoscaler"), "", "it stays until KEDA is there");
    Ok(())
}

/// Drains ask the budget, also for the Pods that an autoscaler added.
#[test]
fn what_an_autoscaler_may_make_more_of_has_a_disruption_budget() -> Result<(), Error> {
    let cases = [
        ("sla: {maxLatency: 100ms}", true),
        ("autoscaling: {autoscaler: external}", true),
        ("sla: {maxLatency: 100ms}, autoscaling: {maxReplicas: 1}", false),
        ("replicas: 1", false),
    ];
    for (spec, expected) in cases {
        let budget = children(spec)?.only("PodDisruptionBudget").map(|budget| budget["spec"]["maxUnavailable"].clone());
        assert_eq!(budget.ok(), expected.then(|| 1.into()), "{spec}");
    }
    Ok(())
}

#[test]
fn the_old_autoscaler_goes_before_the_new_one_comes() -> Result<(), Error> {
    let kinds = |case: pilothouse_sdk::testing::Case| -> Result<[bool; 2], Error> {
        let children = Children::of(&run(with_live(case, 5))?)?;
        Ok(["HorizontalPodAutoscaler", "ScaledObject"].map(|kind| children.only(kind).is_ok()))
    };
    let hpa = existing("HorizontalPodAutoscaler", "autoscaling/v2");
    let scaled_object = existing("ScaledObject", "keda.sh/v1alpha1");
    let of_keda = named_as_kedas("ScaledObject", "llama-3-70b");
    assert_eq!(kinds(case(KEDA)?.child(hpa))?, [false, false]);
    assert_eq!(kinds(case(KEDA)?)?, [false, true]);
    assert_eq!(kinds(case(SLA)?.child(scaled_object))?, [false, false]);
    assert_eq!(kinds(case(SLA)?.found(of_keda))?, [false, false], "KEDA's own autoscaler is still there");
    assert_eq!(kinds(case(SLA)?)?, [true, false]);
    Ok(())
}

#[test]
fn keda_scales_to_nothing_and_back_by_a_trigger_that_does_not_vanish() -> Result<(), Error> {
    let spec = "sla: {maxLatency: 1s}, autoscaling: {autoscaler: keda, minReplicas: 0, keda: {serverAddress: 'http://p', \
                triggers: [{type: prometheus, metadata: {query: router}}]}}";
    assert_eq!(replicas(&run(with_live(case(spec)?, 0))?)?, (0, true), "what has no Pod is KEDA's affair");
    let children = children(spec)?;
    let triggers = children.only("ScaledObject")?["spec"]["triggers"].as_array().cloned().unwrap_or_default();
    assert_eq!((triggers.len(), &triggers[2]["metadata"]["query"]), (3, &"router".into()));
    Ok(())
}

/// KEDA's ScaledObject of the object with these annotations and these conditions.
fn scaled_object(annotations: Value, conditions: Value) -> Value {
    let mut object = existing("ScaledObject", "keda.sh/v1alpha1");
    object["metadata"]["annotations"] = annotations;
    object["status"]["conditions"] = conditions;
    object
}

#[test]
fn who_pauses_keda_says_how_many_pods_there_are() -> Result<(), Error> {
    let paused = || scaled_object(json!({ "autoscaling.keda.sh/paused-replicas": "0" }), json!([]));
    for live in [0, 1, 9] {
        let answer = run(with_live(case(KEDA)?.child(paused()), live))?;
        assert_eq!(replicas(&answer)?, (live.into(), true), "a user has paused it at {live}");
        assert_eq!(condition(&answer, "SLAMet"), "Unknown AutoscalerPaused", "{live}");
        assert!(Children::of(&answer)?.only("ScaledObject").is_ok(), "it goes on with the ScaledObject");
    }
    let resumed = run(with_live(case(KEDA)?.child(scaled_object(json!({}), json!([]))), 0))?;
    assert_eq!(replicas(&resumed)?, (2, false), "no autoscaler makes the first Pods");
    let other = run(with_live(case(SLA)?.child(paused()), 0))?;
    assert_eq!(replicas(&other)?, (2, false), "KEDA does not decide any more");
    Ok(())
}

#[test]
fn what_keda_finds_wrong_is_told_where_it_makes_no_autoscaler() -> Result<(), Error> {
    let wrong =
        json!([{ "type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed", "message": "no trigger" }]);
    let not_ready = || scaled_object(json!({}), wrong.clone());
    let answer = run(with_live(case(KEDA)?.child(not_ready()), 2))?;
    assert_eq!(condition(&answer, "SLAUnverified"), "True ScaledObjectNotReady");
    let told = answer.condition("SLAUnverified");
    assert!(told.is_some_and(|condition| condition.message.ends_with(": no trigger")), "{told:?}");
    let decides = with_live(case(KEDA)?.child(not_ready()).found(named_as_kedas("ScaledObject", "llama-3-70b")), 2);
    assert_ne!(condition(&run(decides)?, "SLAUnverified"), "True ScaledObjectNotReady", "its autoscaler says more");
    Ok(())
}
