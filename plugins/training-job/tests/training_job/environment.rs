//! The environment variables of replicas, for each framework and number of workers.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster, parse};
use pilothouse_sdk::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The environment variables of a Pod, as the kubelet would set them.
fn environment(cluster: &SimulatedCluster, pod: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut environment = BTreeMap::new();
    let pod = cluster.child("Pod", pod)?;
    for variable in pod["spec"]["containers"][0]["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let value = match variable.pointer("/valueFrom/configMapKeyRef") {
            Some(from) => {
                let map = cluster.child("ConfigMap", from["name"].as_str().unwrap_or_default())?;
                map["data"][from["key"].as_str().unwrap_or_default()].as_str().unwrap_or_default().to_owned()
            }
            None => expand(variable["value"].as_str().unwrap_or_default(), &environment),
        };
        assert!(environment.insert(name, value).is_none(), "a variable twice: {variable}");
    }
    Ok(environment)
}

/// Expands references as the kubelet does: `$(NAME)` stands for an earlier variable, `$$` for a dollar.
fn expand(value: &str, earlier: &BTreeMap<String, String>) -> String {
    let parts: Vec<_> = value.split("$$").collect();
    let expand_part = |part: &&str| {
        earlier.iter().fold((*part).to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
    };
    parts.iter().map(expand_part).collect::<Vec<_>>().join("$")
}

fn with_pods(spec: &str) -> Result<SimulatedCluster, Error> {
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.reconcile_until_stable()?;
    Ok(cluster)
}

#[test]
fn a_pytorch_worker_knows_its_rank_and_the_master() -> Result<(), Error> {
    for workers in [1, 2, 4, 100] {
        let cluster = with_pods(&format!("workers: {workers}"))?;
        for rank in 0..workers {
            let expected = [
                ("MASTER_ADDR", "mnist-worker-0.mnist".to_owned()),
                ("MASTER_PORT", "29500".to_owned()),
                ("PET_MASTER_ADDR", "mnist-worker-0.mnist".to_owned()),
                ("PET_MASTER_PORT", "29500".to_owned()),
                ("PET_NNODES", workers.to_string()),
                ("PET_NODE_RANK", rank.to_string()),
                ("PET_NPROC_PER_NODE", "1".to_owned()),
                ("PYTHONUNBUFFERED", "1".to_owned()),
                ("RANK", rank.to_string()),
                ("WORLD_SIZE", workers.to_string()),
            ];
            let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value)).into();
            assert_eq!(environment(&cluster, &format!("mnist-worker-{rank}"))?, expected, "{rank} of {workers}");
        }
    }
    Ok(())
}

/// More of the spec of two workers, and `PET_NPROC_PER_NODE` and `WORLD_SIZE`.
const PROCESSES: &[(&str, &str, &str)] = &[
    ("", "1", "2"),
    (", gpuPerWorker: 8", "8", "2"),
    (", nprocPerNode: 4", "4", "8"),
    (", gpuPerWorker: 8, nprocPerNode: 2", "2", "4"),
];

#[test]
fn a_worker_has_one_process_per_gpu_by_default() -> Result<(), Error> {
    for (spec, processes, world_size) in PROCESSES {
        let environment = environment(&with_pods(&format!("workers: 2{spec}"))?, "mnist-worker-1")?;
        assert_eq!(environment["PET_NPROC_PER_NODE"], *processes, "{spec}");
        assert_eq!(environment["WORLD_SIZE"], *world_size, "{spec}");
    }
    Ok(())
}

#[test]
fn an_elastic_worker_knows_the_rendezvous_and_not_the_number_of_workers() -> Result<(), Error> {
    let spec = "workers: 3, gpuPerWorker: 2, port: 4000, elastic: {minWorkers: 2, maxWorkers: 8, maxRestarts: 5, \
                rendezvousConf: {join_timeout: '60', last_call_timeout: '5'}}";
    let cluster = with_pods(spec)?;
    let expected = [
        ("PET_MAX_RESTARTS", "5"),
        ("PET_NNODES", "2:8"),
        ("PET_NPROC_PER_NODE", "2"),
        ("PET_RDZV_BACKEND", "c10d"),
        ("PET_RDZV_ENDPOINT", "mnist-worker-0.mnist:4000"),
        ("PET_RDZV_ID", "mnist"),
        ("PYTHONUNBUFFERED", "1"),
    ];
    for (worker, is_host) in [(0, true), (1, false), (2, false)] {
        let conf = format!("is_host={is_host},join_timeout=60,last_call_timeout=5");
        let expected: BTreeMap<_, _> = expected
            .into_iter()
            .chain([("PET_RDZV_CONF", conf.as_str())])
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(environment(&cluster, &format!("mnist-worker-{worker}"))?, expected, "worker {worker}");
    }
    Ok(())
}

#[test]
fn who_is_the_host_of_the_rendezvous_can_be_left_to_torchrun() -> Result<(), Error> {
    let spec = "workers: 2, elastic: {minWorkers: 2, maxWorkers: 2, rendezvousConf: {is_host: 'false'}}";
    let cluster = with_pods(spec)?;
    assert_eq!(environment(&cluster, "mnist-worker-0")?["PET_RDZV_CONF"], "is_host=false");
    Ok(())
}

#[test]
fn a_tensorflow_job_may_have_a_chief_and_an_evaluator() -> Result<(), Error> {
    let spec = "framework: tensorflow, workers: 2, parameterServers: 1, gpuPerWorker: 1, roles: [\
                {name: chief, command: [python, coordinate.py]}, {name: evaluator, gpus: 0, image: small}, \
                {name: ps, resources: {requests: {memory: 8Gi}}}]";
    let cluster = with_pods(spec)?;
    let address = |name: &str| format!("mnist-{name}.mnist.ml.svc:2222");
    let expected = json!({
        "worker": [address("worker-0"), address("worker-1")], "ps": [address("ps-0")], "chief": [address("chief-0")],
    });
    let roles = [
        ("worker-1", "worker", 1, "image", "train.py", Some("1")),
        ("ps-0", "ps", 0, "image", "train.py", None),
        ("chief-0", "chief", 0, "image", "coordinate.py", None),
        ("evaluator-0", "evaluator", 0, "small", "train.py", None),
    ];
    for (name, role, index, image, program, gpus) in roles {
        let pod = format!("mnist-{name}");
        let config: Value = serde_json::from_str(&environment(&cluster, &pod)?["TF_CONFIG"])
            .map_err(|error| Error::Test(error.to_string()))?;
        assert_eq!(config["cluster"], expected, "{name}: the others do not know of the evaluator");
        assert_eq!(config["task"], json!({ "type": role, "index": index }), "{name}");
        let container = &cluster.child("Pod", &pod)?["spec"]["containers"][0];
        assert_eq!((&container["image"], &container["command"][1]), (&json!(image), &json!(program)), "{name}");
        assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"].as_str(), gpus, "{name}");
    }
    let memory = &cluster.child("Pod", "mnist-ps-0")?["spec"]["containers"][0]["resources"]["requests"]["memory"];
    assert_eq!(memory, "8Gi");
    Ok(())
}

/// Numbers of workers and parameter servers.
const TENSORFLOW: &[(usize, usize)] = &[(2, 0), (1, 1), (4, 0), (4, 2), (100, 0), (100, 100)];

#[test]
fn a_tensorflow_replica_knows_all_replicas_and_which_one_it_is() -> Result<(), Error> {
    for (workers, servers) in TENSORFLOW {
        let cluster = with_pods(&format!("framework: tensorflow, workers: {workers}, parameterServers: {servers}"))?;
        let addresses = |role: &str, count: usize| -> Vec<String> {
            (0..count).map(|index| format!("mnist-{role}-{index}.mnist.ml.svc:2222")).collect()
        };
        let mut cluster_spec = json!({ "worker": addresses("worker", *workers) });
        if *servers > 0 {
            cluster_spec["ps"] = json!(addresses("ps", *servers));
        }
        for (role, count) in [("worker", *workers), ("ps", *servers)] {
            for index in 0..count {
                let environment = environment(&cluster, &format!("mnist-{role}-{index}"))?;
                let expected = json!({
                    "cluster": cluster_spec, "environment": "cloud", "task": { "type": role, "index": index },
                });
                assert_eq!(parse(&environment["TF_CONFIG"])?, expected, "{role} {index} of {workers} and {servers}");
                assert_eq!(environment["PYTHONUNBUFFERED"], "1");
            }
        }
    }
    Ok(())
}

#[test]
fn a_single_tensorflow_worker_has_no_cluster() -> Result<(), Error> {
    let environment = environment(&with_pods("framework: tensorflow, workers: 1")?, "mnist-worker-0")?;
    assert_eq!(environment.into_keys().collect::<Vec<_>>(), ["PYTHONUNBUFFERED"]);
    Ok(())
}

#[test]
fn the_replicas_of_a_big_job_are_listed_in_one_config_map() -> Result<(), Error> {
    let longest = "a".repeat(53);
    let mut cluster = SimulatedCluster::new("framework: tensorflow, workers: 100, parameterServers: 20")?;
    cluster.job["metadata"]["name"] = json!(longest);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child_names("ConfigMap"), [format!("{longest}-cluster")]);
    let bytes: usize = cluster.call_plugin()?.response.children.iter().flatten().map(|child| child.object.len()).sum();
    assert!(bytes < 700_000, "{bytes} bytes");
    let environment = environment(&cluster, &format!("{longest}-ps-19"))?;
    let config = parse(&environment["TF_CONFIG"])?;
    assert_eq!(config["cluster"]["worker"].as_array().map(Vec::len), Some(100));
    assert_eq!(config["task"], json!({ "type": "ps", "index": 19 }));

    let small = with_pods("framework: tensorflow, workers: 100")?;
    assert_eq!(small.child_names("ConfigMap"), Vec::<&str>::new(), "with short names, every Pod has the list");
    Ok(())
}

#[test]
fn a_jax_worker_knows_the_coordinator_its_process_id_and_how_many_there_are() -> Result<(), Error> {
    for (workers, port) in [(1, 6666), (2, 6666), (100, 1234)] {
        let cluster = with_pods(&format!("framework: jax, workers: {workers}, gpuPerWorker: 8, port: {port}"))?;
        for process in [0, workers - 1] {
            let expected = [
                ("COORDINATOR_ADDRESS", "mnist-worker-0.mnist".to_owned()),
                ("COORDINATOR_PORT", port.to_string()),
                ("JAX_COORDINATOR_ADDRESS", format!("mnist-worker-0.mnist:{port}")),
                ("JAX_NUM_PROCESSES", workers.to_string()),
                ("JAX_PROCESS_ID", process.to_string()),
                ("NUM_PROCESSES", workers.to_string()),
                ("PROCESS_ID", process.to_string()),
                ("PYTHONUNBUFFERED", "1".to_owned()),
            ];
            let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value)).into();
            assert_eq!(environment(&cluster, &format!("mnist-worker-{process}"))?, expected, "{process} of {workers}");
        }
    }
    let cluster = with_pods("framework: jax, workers: 1")?;
    assert_eq!(cluster.child("Service", "mnist")?["spec"]["ports"][0]["port"], 6666);
    Ok(())
}

#[test]
fn every_job_has_its_checkpoint_dir_and_hyperparameters() -> Result<(), Error> {
    for framework in ["pytorch", "tensorflow", "jax"] {
        let cluster = with_pods(&format!(
            "framework: {framework}, workers: 2, checkpointDir: /ckpt/a/, \
             hyperparameters: {{learningRate: 0.001, optimizer: 'a$(RANK)', layers: [1, {{size: 2}}]}}"
        ))?;
        let environment = environment(&cluster, "mnist-worker-1")?;
        assert_eq!(environment["CHECKPOINT_DIR"], "/ckpt/a", "{framework}");
        let expected = json!({ "learningRate": 0.001, "optimizer": "a$(RANK)", "layers": [1, { "size": 2 }] });
        assert_eq!(parse(&environment["HYPERPARAMETERS"])?, expected, "{framework}: dollars included");
        let map = cluster.child("ConfigMap", "mnist-hyperparameters")?;
        let file = map["data"]["hyperparameters.json"].as_str().unwrap_or_default();
        assert_eq!(parse(file)?, expected, "{framework}");
    }
    Ok(())
}

#[test]
fn variables_of_the_user_win_and_can_refer_to_others() -> Result<(), Error> {
    let cluster = with_pods(
        "workers: 2, hyperparameters: {a: 1}, env: [{name: MASTER_PORT, value: '1'}, \
         {name: PYTHONUNBUFFERED, value: ''}, {name: HYPERPARAMETERS, value: mine}, \
         {name: ME, value: 'rank-$(RANK)'}]",
    )?;
    let environment = environment(&cluster, "mnist-worker-1")?;
    let value = |name: &str| environment.get(name).map(String::as_str);
    assert_eq!(value("MASTER_PORT"), Some("1"));
    assert_eq!(value("PYTHONUNBUFFERED"), Some(""));
    assert_eq!(value("HYPERPARAMETERS"), Some("mine"));
    assert_eq!(value("ME"), Some("rank-1"));
    Ok(())
}

#[test]
fn variables_can_come_from_config_maps_secrets_and_fields() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "workers: 1, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}, \
         {name: B, valueFrom: {secretKeyRef: {name: token, key: b}}}, \
         {name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}}], \
         envFrom: [{prefix: X_, configMapRef: {name: settings}}, {secretRef: {name: token}}]",
    )?;
    cluster.other_objects.push(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } }));
    cluster.reconcile_until_stable()?;
    let container = &cluster.child("Pod", "mnist-worker-0")?["spec"]["containers"][0];
    let env: Vec<&Value> = container["env"].as_array().into_iter().flatten().rev().take(3).collect();
    assert_eq!(
        env,
        [
            &json!({ "name": "C", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }),
            &json!({ "name": "B", "valueFrom": { "secretKeyRef": { "name": "token", "key": "b" } } }),
            &json!({ "name": "A", "valueFrom": { "configMapKeyRef": { "name": "mnist-snapshot-settings", "key": "a" } } }),
        ]
    );
    assert_eq!(
        container["envFrom"],
        json!([
            { "prefix": "X_", "configMapRef": { "name": "mnist-snapshot-settings" } },
            { "secretRef": { "name": "token" } },
        ])
    );
    Ok(())
}
