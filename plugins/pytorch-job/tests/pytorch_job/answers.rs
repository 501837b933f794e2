//! What is made of a job, and what is refused.

use crate::{NOW, children, job, master_and_workers, replicas, with};
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Verdict};
use pytorch_job::reconcile;
use serde_json::{Value, json};

fn answer(object: &Value, children: &[Value]) -> Result<Answer, Error> {
    settled(|| children.iter().fold(Case::of(object).now(NOW), |case, child| case.child(child)))
}

/// The answer once all is there to which the Pods of the job refer.
fn settled(case: impl Fn() -> Case) -> Result<Answer, Error> {
    let begun = children(&case().run(reconcile)?);
    let kinds = ["ConfigMap", "PodGroup", "Service"];
    let referents = begun.iter().filter(|child| kinds.iter().any(|kind| child["kind"] == *kind));
    referents.fold(case(), |case, child| case.child(child)).run(reconcile)
}

fn child(answer: &Answer, kind: &str, name: &str) -> Value {
    let is_it = |child: &Value| child["kind"] == kind && child["metadata"]["name"] == name;
    children(answer).into_iter().find(is_it).unwrap_or_default()
}

/// A variable of a Pod's first container.
fn variable(pod: &Value, name: &str) -> Value {
    let variables = pod["spec"]["containers"][0]["env"].as_array();
    let found = variables.into_iter().flatten().find(|variable| variable["name"] == name);
    found.map(|variable| variable["value"].clone()).unwrap_or_default()
}

#[test]
fn each_replica_has_a_pod_and_a_service_of_its_name() -> Result<(), Error> {
    let answer = answer(&job(master_and_workers(2)), &[])?;
    for (name, role, index, rank) in [
        ("mnist-master-0", "master", "0", "0"),
        ("mnist-worker-0", "worker", "0", "1"),
        ("mnist-worker-1", "worker", "1", "2"),
    ] {
        let (pod, service) = (child(&answer, "Pod", name), child(&answer, "Service", name));
        let selector = json!({
            "training.kubeflow.org/operator-name": "pytorchjob-controller",
            "training.kubeflow.org/job-name": "mnist",
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": index,
        });
        assert_eq!(service["spec"]["selector"], selector, "{name}");
        assert_eq!(service["spec"]["clusterIP"], "None", "{name}");
        assert_eq!(service["spec"]["ports"][0]["port"], 23456, "{name}");
        let leads = &pod["metadata"]["labels"]["training.kubeflow.org/job-role"];
        assert_eq!(*leads, if role == "master" { json!("master") } else { Value::Null }, "{name}");
        let port = json!([{ "name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP" }]);
        assert_eq!(pod["spec"]["containers"][0]["ports"], port, "{name}");
        for (variable_name, value) in [
            ("PYTHONUNBUFFERED", "1"),
            ("MASTER_ADDR", "mnist-master-0"),
            ("PET_MASTER_ADDR", "mnist-master-0"),
            ("MASTER_PORT", "23456"),
            ("PET_MASTER_PORT", "23456"),
            ("WORLD_SIZE", "3"),
            ("RANK", rank),
            ("PET_NODE_RANK", rank),
            ("PET_NNODES", "3"),
            ("PET_NPROC_PER_NODE", "auto"),
        ] {
            assert_eq!(variable(&pod, variable_name), value, "{name} {variable_name}");
        }
        let waits = &pod["spec"]["initContainers"][0]["name"];
        assert_eq!(*waits, if role == "worker" { json!("init-pytorch") } else { Value::Null }, "{name}");
    }
    Ok(())
}

#[test]
fn without_a_master_nobody_is_told_a_rank() -> Result<(), Error> {
    let answer = answer(&job(json!({ "pytorchReplicaSpecs": { "Worker": replicas(2) } })), &[])?;
    let pod = child(&answer, "Pod", "mnist-worker-0");
    for name in ["MASTER_ADDR", "RANK", "WORLD_SIZE"] {
        assert_eq!(variable(&pod, name), Value::Null, "{name}");
    }
    assert_eq!(variable(&pod, "PET_NNODES"), "2");
    assert_eq!(pod["metadata"]["labels"]["training.kubeflow.org/job-role"], "master");
    assert_eq!(pod["spec"]["initContainers"], Value::Null);
    Ok(())
}

#[test]
fn an_elastic_policy_becomes_settings_of_torchrun() -> Result<(), Error> {
    let policy = json!({
        "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d", "rdzvPort": 1234, "rdzvHost": "localhost", "rdzvId": "id",
        "rdzvConf": [{ "key": "a", "value": "1" }, { "key": "b", "value": "2" }], "maxRestarts": 3,
    });
    let spec = json!({ "elasticPolicy": policy, "pytorchReplicaSpecs": { "Worker": replicas(1) } });
    let pod = child(&answer(&job(spec), &[])?, "Pod", "mnist-worker-0");
    for (name, value) in [
        ("PET_MAX_RESTARTS", "3"),
        ("PET_RDZV_BACKEND", "c10d"),
        ("PET_RDZV_ENDPOINT", "localhost:1234"),
        ("PET_RDZV_ID", "id"),
        ("PET_RDZV_CONF", "a=1,b=2"),
        ("PET_NNODES", "1:3"),
    ] {
        assert_eq!(variable(&pod, name), value, "{name}");
    }
    Ok(())
}

#[test]
fn a_bound_that_is_missing_is_the_other_one_or_the_number_of_workers() -> Result<(), Error> {
    for (policy, expected) in [
        (json!({}), "4:4"),
        (json!({ "minReplicas": 1, "maxReplicas": 1 }), "1:1"),
        (json!({ "minReplicas": 2, "maxReplicas": 5 }), "2:5"),
        (json!({ "maxReplicas": 5 }), "5:5"),
        (json!({ "minReplicas": 2 }), "2:2"),
    ] {
        let spec = json!({ "elasticPolicy": policy, "pytorchReplicaSpecs": { "Worker": replicas(4) } });
        let pod = child(&answer(&job(spec), &[])?, "Pod", "mnist-worker-0");
        assert_eq!(variable(&pod, "PET_NNODES"), expected, "{policy}");
    }
    Ok(())
}

#[test]
fn metrics_make_an_autoscaler_that_goes_with_a_suspension() -> Result<(), Error> {
    let metrics = json!([{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization" } } }]);
    let policy = json!({ "minReplicas": 1, "maxReplicas": 3, "metrics": metrics });
    let spec = json!({ "elasticPolicy": policy, "pytorchReplicaSpecs": { "Worker": replicas(2) } });
    let autoscaler = child(&answer(&job(spec.clone()), &[])?, "HorizontalPodAutoscaler", "mnist");
    let target = json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "mnist" });
    assert_eq!(
        autoscaler["spec"],
        json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": metrics })
    );
    let suspended = job(with(spec, json!({ "runPolicy": { "suspend": true } })));
    let first = answer(&suspended, &[])?;
    let state = child(&first, "ConfigMap", "mnist-pytorchjob-state");
    let names: Vec<_> = children(&answer(&suspended, &[state])?).iter().map(|child| child["kind"].clone()).collect();
    assert_eq!(names, ["ConfigMap"], "all that it had is gone, but for what is known of it");
    Ok(())
}

#[test]
fn the_restart_policy_of_a_pod_is_that_of_its_type() -> Result<(), Error> {
    for (given, expected) in [
        (Some("ExitCode"), "Never"),
        (Some("Never"), "Never"),
        (Some("Always"), "Always"),
        (Some("OnFailure"), "OnFailure"),
        (None, "OnFailure"),
    ] {
        let mut spec = master_and_workers(1);
        spec["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = json!(given);
        let answer = answer(&job(spec), &[])?;
        assert_eq!(child(&answer, "Pod", "mnist-worker-0")["spec"]["restartPolicy"], expected, "{given:?}");
        assert_eq!(child(&answer, "Pod", "mnist-master-0")["spec"]["restartPolicy"], "OnFailure", "{given:?}");
    }
    Ok(())
}

#[test]
fn a_scheduler_that_a_template_names_goes_before_that_of_the_gang() -> Result<(), Error> {
    let mut spec = master_and_workers(1);
    spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = json!("own");
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "mnist", "namespace": "ml" }, "status": { "phase": "Inqueue" },
    });
    let case = || Case::of(job(spec.clone())).now(NOW).config(json!({ "gangScheduler": "volcano" })).found(&group);
    let answer = settled(case)?;
    for (name, scheduler) in [("mnist-worker-0", "own"), ("mnist-master-0", "volcano")] {
        let pod = child(&answer, "Pod", name);
        assert_eq!(pod["spec"]["schedulerName"], scheduler, "{name}");
        assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "mnist", "{name}");
    }
    assert_eq!(child(&answer, "PodGroup", "mnist")["spec"]["minMember"], 2);
    Ok(())
}

#[test]
fn the_group_asks_for_what_its_policy_says_or_else_for_what_the_containers_request() -> Result<(), Error> {
    let requests = json!({ "requests": { "cpu": "500m" } });
    for (policy, member, resources) in [
        (json!({}), 3, json!({ "cpu": "1500m" })),
        (json!({ "minAvailable": 2 }), 2, json!({ "cpu": "1000m" })),
        (json!({ "minResources": { "cpu": 4, "memory": "8Gi" } }), 3, json!({ "cpu": 4, "memory": "8Gi" })),
    ] {
        let mut spec = with(master_and_workers(2), json!({ "runPolicy": { "schedulingPolicy": policy } }));
        for replicas in ["Master", "Worker"] {
            let template = &mut spec["pytorchReplicaSpecs"][replicas]["template"];
            template["spec"]["containers"][0]["resources"] = requests.clone();
        }
        for (scheduler, api_version) in
            [("volcano", "scheduling.volcano.sh/v1beta1"), ("scheduler-plugins", "scheduling.x-k8s.io/v1alpha1")]
        {
            let case = Case::of(job(spec.clone())).now(NOW).config(json!({ "gangScheduler": scheduler }));
            let group = child(&case.run(reconcile)?, "PodGroup", "mnist");
            assert_eq!(group["apiVersion"], api_version, "{policy}");
            assert_eq!(group["spec"]["minMember"], member, "{scheduler} {policy}");
            assert_eq!(group["spec"]["minResources"], resources, "{scheduler} {policy}");
        }
    }
    Ok(())
}

#[test]
fn a_variable_of_the_user_gives_way_and_is_there_once() -> Result<(), Error> {
    let mut spec = master_and_workers(1);
    let container = &mut spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{ "name": "RANK", "value": "7" }, { "name": "EPOCHS", "value": "2" }]);
    let pod = child(&answer(&job(spec), &[])?, "Pod", "mnist-worker-0");
    let variables = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    assert_eq!(variables.iter().filter(|variable| variable["name"] == "RANK").count(), 1);
    assert_eq!((variable(&pod, "RANK"), variable(&pod, "EPOCHS")), (json!("1"), json!("2")));
    Ok(())
}

#[test]
fn what_the_webhook_refuses_is_refused() -> Result<(), Error> {
    let containers = |containers: Value| json!({ "pytorchReplicaSpecs": { "Worker": { "template": { "spec": { "containers": containers } } } } });
    let place = "spec.pytorchReplicaSpecs.Worker.template.spec.containers";
    let elastic = json!({ "nProcPerNode": 2 });
    for (name, spec, sentence) in [
        ("0-test", master_and_workers(1),
            "metadata.name '0-test' becomes the name of Services, so it must begin with a letter and hold only lower-case \
             letters, digits and '-'".to_owned()),
        ("mnist", json!({ "pytorchReplicaSpecs": {} }),
            "spec.pytorchReplicaSpecs is empty; give Master, Worker or both".to_owned()),
        ("mnist", containers(json!([])), format!("{place} has none with the name pytorch, which is the one that trains")),
        ("mnist", containers(json!([{ "name": "pytorch", "image": "" }])), format!("{place}[0].image is missing")),
        ("mnist", containers(json!([{ "name": "other", "image": "i" }])),
            format!("{place} has none with the name pytorch, which is the one that trains")),
        ("mnist", json!({ "pytorchReplicaSpecs": { "Master": replicas(2) } }),
            "spec.pytorchReplicaSpecs.Master.replicas must be 1".to_owned()),
        ("mnist", json!({ "pytorchReplicaSpecs": { "Chief": replicas(1) } }),
            "spec.pytorchReplicaSpecs.Chief is no type of replica; give Master or Worker".to_owned()),
        ("mnist", master_and_workers(500),
            "spec.pytorchReplicaSpecs has up to 501 replicas; a job can have at most 500. For more, use a TrainingJob".to_owned()),
        ("mnist", json!({ "pytorchReplicaSpecs": { "Worker": replicas(2_147_483_647) } }),
            "spec.pytorchReplicaSpecs has up to 2147483647 replicas; a job can have at most 500. For more, use a TrainingJob".to_owned()),
        ("mnist", with(master_and_workers(1), json!({ "elasticPolicy": { "maxReplicas": 1000 } })),
            "spec.pytorchReplicaSpecs has up to 1001 replicas; a job can have at most 500. For more, use a TrainingJob".to_owned()),
        ("mnist", with(master_and_workers(1), json!({ "nprocPerNode": "2", "elasticPolicy": elastic })),
            "spec.elasticPolicy.nProcPerNode and spec.nprocPerNode say the same; keep the second".to_owned()),
    ] {
        let mut object = job(spec);
        object["metadata"]["name"] = json!(name);
        assert_eq!(answer(&object, &[])?.verdict(), &Verdict::Invalid(sentence), "{object}");
    }
    let older = with(master_and_workers(1), json!({ "elasticPolicy": elastic }));
    assert_eq!(answer(&job(older), &[])?.verdict(), &Verdict::Done, "the older name alone is taken");
    Ok(())
}

#[test]
fn a_job_that_another_controller_has_ended_is_not_run_again() -> Result<(), Error> {
    for ended in ["Succeeded", "Failed"] {
        let status = json!({
            "conditions": [{ "type": ended, "status": "True", "reason": "r", "message": "m" }], "completionTime": NOW,
        });
        let answer = Case::of(job(master_and_workers(1))).status(status).now(NOW).run(reconcile)?;
        assert_eq!(child(&answer, "Pod", "mnist-master-0"), Value::Null, "{ended}");
    }
    Ok(())
}
