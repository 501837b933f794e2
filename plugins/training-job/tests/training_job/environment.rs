//! The environment of workers: which variables they have, for each framework and number of workers.

use crate::world::{World, parse};
use pilothouse_sdk::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The environment of a Pod, as the kubelet would make it.
fn environment(world: &World, pod: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut environment = BTreeMap::new();
    let pod = world.child("Pod", pod)?;
    for variable in pod["spec"]["containers"][0]["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let value = match variable.pointer("/valueFrom/configMapKeyRef") {
            Some(from) => {
                let map = world.child("ConfigMap", from["name"].as_str().unwrap_or_default())?;
                map["data"][from["key"].as_str().unwrap_or_default()].as_str().unwrap_or_default().to_owned()
            }
            None => expanded(variable["value"].as_str().unwrap_or_default(), &environment),
        };
        assert!(environment.insert(name, value).is_none(), "a variable twice: {variable}");
    }
    Ok(environment)
}

/// `$(NAME)` stands for an earlier variable, `$$` for a dollar.
fn expanded(value: &str, before: &BTreeMap<String, String>) -> String {
    let parts: Vec<_> = value.split("$$").collect();
    let expand = |part: &&str| {
        before.iter().fold((*part).to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
    };
    parts.iter().map(expand).collect::<Vec<_>>().join("$")
}

fn made(spec: &str) -> Result<World, Error> {
    let mut world = World::of(spec)?;
    world.settle()?;
    Ok(world)
}

#[test]
fn a_pytorch_worker_knows_its_rank_and_the_master() -> Result<(), Error> {
    for workers in [1, 2, 4, 100] {
        let world = made(&format!("workers: {workers}"))?;
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
            assert_eq!(environment(&world, &format!("mnist-worker-{rank}"))?, expected, "{rank} of {workers}");
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
fn there_is_a_process_for_each_gpu_unless_it_is_said() -> Result<(), Error> {
    for (spec, processes, world_size) in PROCESSES {
        let environment = environment(&made(&format!("workers: 2{spec}"))?, "mnist-worker-1")?;
        assert_eq!(environment["PET_NPROC_PER_NODE"], *processes, "{spec}");
        assert_eq!(environment["WORLD_SIZE"], *world_size, "{spec}");
    }
    Ok(())
}

#[test]
fn an_elastic_worker_knows_where_to_meet_and_not_how_many_there_are() -> Result<(), Error> {
    let spec = "workers: 3, gpuPerWorker: 2, port: 4000, elastic: {minWorkers: 2, maxWorkers: 8, maxRestarts: 5, \
                rendezvousConf: {join_timeout: '60', last_call_timeout: '5'}}";
    let world = made(spec)?;
    let expected = [
        ("PET_MAX_RESTARTS", "5"),
        ("PET_NNODES", "2:8"),
        ("PET_NPROC_PER_NODE", "2"),
        ("PET_RDZV_BACKEND", "c10d"),
        ("PET_RDZV_CONF", "join_timeout=60,last_call_timeout=5"),
        ("PET_RDZV_ENDPOINT", "mnist-worker-0.mnist:4000"),
        ("PET_RDZV_ID", "mnist"),
        ("PYTHONUNBUFFERED", "1"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    for worker in 0..3 {
        assert_eq!(environment(&world, &format!("mnist-worker-{worker}"))?, expected, "all are the same");
    }
    Ok(())
}

/// Workers, parameter servers.
const TENSORFLOW: &[(usize, usize)] = &[(2, 0), (1, 1), (4, 0), (4, 2), (100, 0), (100, 100)];

#[test]
fn a_tensorflow_member_knows_all_members_and_its_place() -> Result<(), Error> {
    for (workers, servers) in TENSORFLOW {
        let world = made(&format!("framework: tensorflow, workers: {workers}, parameterServers: {servers}"))?;
        let addresses = |role: &str, count: usize| -> Vec<String> {
            (0..count).map(|index| format!("mnist-{role}-{index}.mnist.ml.svc:2222")).collect()
        };
        let mut cluster = json!({ "worker": addresses("worker", *workers) });
        if *servers > 0 {
            cluster["ps"] = json!(addresses("ps", *servers));
        }
        for (role, count) in [("worker", *workers), ("ps", *servers)] {
            for index in 0..count {
                let environment = environment(&world, &format!("mnist-{role}-{index}"))?;
                let expected = json!({
                    "cluster": cluster, "environment": "cloud", "task": { "type": role, "index": index },
                });
                assert_eq!(parse(&environment["TF_CONFIG"])?, expected, "{role} {index} of {workers} and {servers}");
                assert_eq!(environment["PYTHONUNBUFFERED"], "1");
            }
        }
    }
    Ok(())
}

#[test]
fn a_tensorflow_job_of_one_has_nobody_to_know() -> Result<(), Error> {
    let environment = environment(&made("framework: tensorflow, workers: 1")?, "mnist-worker-0")?;
    assert_eq!(environment.into_keys().collect::<Vec<_>>(), ["PYTHONUNBUFFERED"]);
    Ok(())
}

#[test]
fn the_members_of_a_big_job_are_named_once_and_not_in_every_pod() -> Result<(), Error> {
    let longest = "a".repeat(53);
    let mut world = World::of("framework: tensorflow, workers: 100, parameterServers: 20")?;
    world.job["metadata"]["name"] = json!(longest);
    world.settle()?;
    assert_eq!(world.names("ConfigMap"), [format!("{longest}-cluster")]);
    let bytes: usize = world.ask()?.response.children.iter().flatten().map(|child| child.object.len()).sum();
    assert!(bytes < 700_000, "{bytes} bytes");
    let environment = environment(&world, &format!("{longest}-ps-19"))?;
    let config = parse(&environment["TF_CONFIG"])?;
    assert_eq!(config["cluster"]["worker"].as_array().map(Vec::len), Some(100));
    assert_eq!(config["task"], json!({ "type": "ps", "index": 19 }));

    let small = made("framework: tensorflow, workers: 100")?;
    assert_eq!(small.names("ConfigMap"), Vec::<&str>::new(), "short names are in every Pod");
    Ok(())
}

#[test]
fn every_job_offers_its_checkpoints_and_hyperparameters() -> Result<(), Error> {
    for framework in ["pytorch", "tensorflow"] {
        let world = made(&format!(
            "framework: {framework}, workers: 2, checkpointDir: /ckpt/a/, \
             hyperparameters: {{learningRate: 0.001, optimizer: 'a$(RANK)', layers: [1, {{size: 2}}]}}"
        ))?;
        let environment = environment(&world, "mnist-worker-1")?;
        assert_eq!(environment["CHECKPOINT_DIR"], "/ckpt/a", "{framework}");
        let expected = json!({ "learningRate": 0.001, "optimizer": "a$(RANK)", "layers": [1, { "size": 2 }] });
        assert_eq!(parse(&environment["HYPERPARAMETERS"])?, expected, "{framework}: dollars included");
        let map = world.child("ConfigMap", "mnist-hyperparameters")?;
        let file = map["data"]["hyperparameters.json"].as_str().unwrap_or_default();
        assert_eq!(parse(file)?, expected, "{framework}");
    }
    Ok(())
}

#[test]
fn the_users_variables_win_and_can_refer_to_ours() -> Result<(), Error> {
    let world = made(
        "workers: 2, hyperparameters: {a: 1}, env: [{name: MASTER_PORT, value: '1'}, \
         {name: PYTHONUNBUFFERED, value: ''}, {name: HYPERPARAMETERS, value: mine}, \
         {name: ME, value: 'rank-$(RANK)'}]",
    )?;
    let environment = environment(&world, "mnist-worker-1")?;
    let value = |name: &str| environment.get(name).map(String::as_str);
    assert_eq!(value("MASTER_PORT"), Some("1"));
    assert_eq!(value("PYTHONUNBUFFERED"), Some(""));
    assert_eq!(value("HYPERPARAMETERS"), Some("mine"));
    assert_eq!(value("ME"), Some("rank-1"));
    Ok(())
}

#[test]
fn variables_come_from_where_the_user_says() -> Result<(), Error> {
    let mut world = World::of(
        "workers: 1, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}, \
         {name: B, valueFrom: {secretKeyRef: {name: token, key: b}}}, \
         {name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}}], \
         envFrom: [{prefix: X_, configMapRef: {name: settings}}, {secretRef: {name: token}}]",
    )?;
    world.found.push(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } }));
    world.settle()?;
    let container = &world.child("Pod", "mnist-worker-0")?["spec"]["containers"][0];
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
