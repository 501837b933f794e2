//! Invalid jobs: they are refused with a sentence that says what to do, and never half created.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};
use training_job::api::Phase;

/// More of the spec, and the sentence.
#[rustfmt::skip]
const INVALID_SPECS: &[(&str, &str)] = &[
    ("framework: mxnet, workers: 1",
        "the object does not fit this plugin: spec.framework: unknown variant `mxnet`, expected one of `pytorch`, `tensorflow`, `jax`, `mpi`"),
    ("workers: many", "the object does not fit this plugin: spec.workers: invalid type: string \"many\", expected u32"),
    ("workers: -1", "the object does not fit this plugin: spec.workers: invalid value: integer `-1`, expected u32"),
    ("workers: 0", "spec.workers is 0; give 1 to 1000"),
    ("workers: 1001", "spec.workers is 1001; give 1 to 1000"),
    ("workers: 1, gpuPerWorker: 9", "spec.gpuPerWorker is 9; give 0 to 8"),
    ("workers: 1, image: ''", "spec.image is missing; name the image to train with"),
    ("workers: 1, command: []", "spec.command is missing; give the training command"),
    ("workers: 1, port: 70000", "spec.port is 70000; give 1 to 65535"),
    ("workers: 1, parameterServers: 1", "spec.parameterServers is for framework tensorflow only; remove it"),
    ("framework: tensorflow, workers: 1, parameterServers: 101", "spec.parameterServers is 101; give 0 to 100"),
    ("framework: tensorflow, workers: 1, elastic: {minWorkers: 1, maxWorkers: 2}",
        "spec.elastic is for framework pytorch only; remove it"),
    ("workers: 1, elastic: {minWorkers: 2, maxWorkers: 1}",
        "spec.elastic.minWorkers must be at least 1 and at most spec.elastic.maxWorkers"),
    ("workers: 5, elastic: {minWorkers: 1, maxWorkers: 4}", "spec.workers is 5, but spec.elastic allows 1 to 4"),
    ("framework: mpi, workers: 1", "spec.mpi is missing; name the Secret with the SSH keys in spec.mpi.sshSecretName"),
    ("framework: jax, workers: 1, mpi: {sshSecretName: a}", "spec.mpi is for framework mpi only; remove it"),
    ("framework: mpi, workers: 1, mpi: {sshSecretName: a}, successPolicy: AllWorkers",
        "spec.successPolicy is AllWorkers, but workers of framework mpi never end by themselves; remove it, and the job \
         succeeds with its launcher"),
    ("workers: 1, roles: [{name: worker}]", "spec.roles names worker, which framework pytorch does not have; remove it"),
    ("framework: mpi, workers: 1, mpi: {sshSecretName: a}, roles: [{name: ps}]",
        "spec.roles names ps, which framework mpi does not have; remove it"),
    ("framework: tensorflow, workers: 1, roles: [{name: launcher}]",
        "spec.roles names launcher, which framework tensorflow does not have; remove it"),
    ("framework: jax, workers: 1, env: [{name: JAX_PROCESS_ID, value: '1'}]",
        "spec.env sets JAX_PROCESS_ID, which tells workers apart and is set for each of them; remove it"),
    ("workers: 1, env: [{name: RANK, value: '1'}]",
        "spec.env sets RANK, which tells workers apart and is set for each of them; remove it"),
    ("workers: 1, env: [{name: PET_NNODES, value: '1'}]",
        "spec.env sets PET_NNODES, which tells workers apart and is set for each of them; remove it"),
    ("workers: 1, env: [{name: A}, {name: A}]", "spec.env sets A twice; keep one"),
    ("workers: 1, gpuPerWorker: 1, resources: {limits: {nvidia.com/gpu: 2}}",
        "spec.resources and spec.gpuPerWorker both give nvidia.com/gpu; keep spec.gpuPerWorker"),
    ("workers: 1, checkpointDir: /a/../b", "spec.checkpointDir '/a/../b' must be an absolute path without '.' and '..'"),
    ("workers: 1, checkpointDir: a", "spec.checkpointDir 'a' must be an absolute path without '.' and '..'"),
    ("workers: 1, checkpointDir: /dev/shm", "two volumes would be mounted at /dev/shm; give one of them another path"),
    ("workers: 1, configMaps: [{name: a, mountPath: /c}, {name: b, mountPath: /c}]",
        "two volumes would be mounted at /c; give one of them another path"),
    ("workers: 1, runPolicy: {podFailurePolicy: {rules: [{action: Ignore, onReasons: [Evicted]}, {action: Count}]}}",
        "spec.runPolicy.podFailurePolicy.rules[1] says of no failure whether it fits; give it onExitCodes, onReasons or \
         onPodConditions"),
    ("workers: 1, runPolicy: {podFailurePolicy: {rules: [{action: FailJob, onReasons: [], onPodConditions: []}]}}",
        "spec.runPolicy.podFailurePolicy.rules[0] says of no failure whether it fits; give it onExitCodes, onReasons or \
         onPodConditions"),
];

#[test]
fn an_invalid_job_is_refused_with_the_mistake_and_gets_no_children() -> Result<(), Error> {
    for (spec, sentence) in INVALID_SPECS {
        let mut cluster = SimulatedCluster::new(spec)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.verdict, Verdict::Invalid((*sentence).to_owned()), "{spec}");
        assert_eq!(cluster.children.len(), 0, "{spec}");
        assert!(cluster.measurements.is_empty() && cluster.events.is_empty(), "{spec}: it does not count as a job yet");
    }
    Ok(())
}

/// Linux starts no program with a longer variable: the container would never run.
#[test]
fn hyperparameters_that_no_variable_can_hold_are_refused() -> Result<(), Error> {
    const NAME_AND_END: usize = "HYPERPARAMETERS=".len() + 1;
    let json_of = |length: usize| json!({ "a": "x".repeat(length - r#"{"a":""}"#.len()) });
    for (length, fits) in [((128 << 10) - NAME_AND_END, true), ((128 << 10) - NAME_AND_END + 1, false)] {
        let mut cluster = SimulatedCluster::new("workers: 1")?;
        cluster.job["spec"]["hyperparameters"] = json_of(length);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.verdict == Verdict::Done, fits, "{length}");
        if !fits {
            let sentence = "spec.hyperparameters would be a variable of 131073 bytes, and no variable may have more than 131072; \
                            put big values into a ConfigMap and mount it with spec.configMaps";
            assert_eq!(cluster.verdict, Verdict::Invalid(sentence.to_owned()));
            cluster.job["spec"]["env"] = json!([{ "name": "HYPERPARAMETERS", "value": "in the file" }]);
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.verdict, Verdict::Done, "the user has another variable, and the file has room");
        }
    }
    Ok(())
}

/// A name, and the sentence.
#[rustfmt::skip]
const INVALID_NAMES: &[(&str, &str)] = &[
    ("a234567890123456789012345678901234567890123456789012-4",
        "metadata.name is 54 characters long; names of Pods are made of it, so it can have at most 53"),
    ("1st", "metadata.name '1st' is the name of a Service, so it must begin with a letter and hold only lower-case letters, \
             digits and '-'"),
    ("a.b", "metadata.name 'a.b' is the name of a Service, so it must begin with a letter and hold only lower-case letters, \
             digits and '-'"),
];

#[test]
fn names_that_pods_cannot_have_are_refused() -> Result<(), Error> {
    for (name, sentence) in INVALID_NAMES {
        let mut cluster = SimulatedCluster::new("workers: 100")?;
        cluster.job["metadata"]["name"] = json!(name);
        cluster.reconcile_until_stable()?;
        assert_eq!(
            (&cluster.verdict, cluster.children.len()),
            (&Verdict::Invalid((*sentence).to_owned()), 0),
            "{name}"
        );
    }
    Ok(())
}

/// More of the spec, and the longest name whose Pods all have valid host names.
const LONGEST_NAMES: &[(&str, usize)] = &[
    ("framework: tensorflow, workers: 2", 53),
    ("framework: tensorflow, workers: 2, roles: [{name: evaluator}]", 51),
    ("framework: mpi, workers: 2, mpi: {sshSecretName: a}", 52),
];

#[test]
fn a_role_with_a_long_name_leaves_less_for_the_job() -> Result<(), Error> {
    for (spec, max) in LONGEST_NAMES {
        for (length, is_taken) in [(*max, true), (max + 1, false)] {
            let mut cluster = SimulatedCluster::running(spec)?;
            cluster.job["metadata"]["name"] = json!("a".repeat(length));
            cluster.reconcile_until_stable()?;
            let sentence = format!(
                "metadata.name is {length} characters long; names of Pods are made of it, so it can have at most {max}"
            );
            let expected = if is_taken { Verdict::Done } else { Verdict::Invalid(sentence) };
            assert_eq!(cluster.verdict, expected, "{spec}: {length}");
            assert!(!is_taken || cluster.pod_names().iter().all(|pod| pod.len() <= 63), "{:?}", cluster.pod_names());
        }
    }
    Ok(())
}

#[test]
fn the_longest_name_gives_pods_the_longest_host_names() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 100")?;
    cluster.job["metadata"]["name"] = json!("a".repeat(53));
    cluster.reconcile_until_stable()?;
    let longest = cluster.pod_names().iter().map(|pod| pod.len()).max();
    assert_eq!((longest, cluster.pod_names().len()), (Some(63), 100));
    Ok(())
}

/// Linux starts no program with a variable of more than 128 KiB.
#[test]
fn a_tensorflow_job_whose_replicas_no_variable_can_list_is_refused() -> Result<(), Error> {
    for (length, is_taken) in [(20, true), (52, false)] {
        let mut cluster = SimulatedCluster::new("framework: tensorflow, workers: 1000")?;
        cluster.job["metadata"]["namespace"] = json!("n".repeat(length));
        cluster.job["metadata"]["name"] = json!("a".repeat(length));
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), if is_taken { 1000 } else { 0 }, "{length}: {:?}", cluster.verdict);
        let is_told = matches!(&cluster.verdict, Verdict::Invalid(why) if why.starts_with("TF_CONFIG would have 1"));
        assert_eq!(is_told, !is_taken, "{:?}", cluster.verdict);
    }
    Ok(())
}

#[test]
fn a_job_without_image_and_command_is_refused() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.job["spec"] = json!({ "framework": "pytorch", "workers": 2 });
    cluster.reconcile_until_stable()?;
    assert!(matches!(cluster.verdict, Verdict::Invalid(_)));
    Ok(())
}

#[test]
fn a_running_job_whose_spec_becomes_invalid_goes_on() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    let (children, status) = (cluster.children.clone(), cluster.status()?);
    cluster.job["spec"]["env"] = json!([{ "name": "RANK", "value": "1" }]);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children, children);
    assert_eq!((cluster.phase()?, cluster.condition("Ready").as_str()), (Some(Phase::Running), "False Invalid"));
    cluster.job["spec"]["env"] = Value::Array(Vec::new());
    cluster.reconcile_until_stable()?;
    assert_eq!(
        (cluster.children, cluster.job["status"]["startTime"].as_str()),
        (children, status.start_time.as_deref())
    );
    Ok(())
}

#[test]
fn a_refused_job_starts_once_it_is_corrected() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 0")?;
    cluster.reconcile_until_stable()?;
    cluster.job["spec"]["workers"] = json!(1);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.event_count("TrainingJobCreated")), (1, 1));
    Ok(())
}

#[test]
fn the_status_of_a_job_that_was_made_invalid_says_what_its_pods_do() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.job["spec"]["workers"] = json!(0);
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    let words: Vec<_> = status.worker_statuses.iter().map(|worker| worker.status.as_str()).collect();
    assert_eq!((words, status.active, status.replicas), (vec!["Missing", "Running"], 1, 1));
    Ok(())
}
