//! Jobs of MPI: what the launcher and the workers have, when the launcher comes, and how a job ends.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::{Value, json};
use training_job::api::Phase;

const LAUNCHER: &str = "mnist-launcher-0";

fn job(spec: &str) -> Result<SimulatedCluster, Error> {
    SimulatedCluster::running(&format!("framework: mpi, command: [mpirun, train], {spec}"))
}

fn variables(container: &Value) -> Vec<String> {
    let all = container["env"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|variable| format!("{}={}", text(&variable["name"]), text(&variable["value"]))).collect()
}

/// More of the spec, the second line of the list of hosts, and the launcher's variables.
#[rustfmt::skip]
const IMPLEMENTATIONS: &[(&str, &str, &[&str])] = &[
    ("mpi: {sshSecretName: keys}", "mnist-worker-1.mnist slots=1", &[
        "PYTHONUNBUFFERED=1",
        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames=true",
        "OMPI_MCA_orte_set_default_slots=1",
        "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=120 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
        "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames=true",
        "PRTE_MCA_plm_ssh_args=-o ConnectionAttempts=120 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "PRTE_ALLOW_RUN_AS_ROOT=1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "NVIDIA_VISIBLE_DEVICES=",
    ]),
    ("mpi: {sshSecretName: keys, implementation: Intel}, gpuPerWorker: 8, port: 2222", "mnist-worker-1.mnist:8", &[
        "PYTHONUNBUFFERED=1",
        "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile",
        "I_MPI_PERHOST=8",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-p 2222 -o ConnectionAttempts=120 -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null",
        "NVIDIA_VISIBLE_DEVICES=",
    ]),
    ("mpi: {sshSecretName: keys, implementation: MPICH}, nprocPerNode: 4, gpuPerWorker: 8, roles: [{name: launcher, gpus: 1}]",
     "mnist-worker-1.mnist:4", &[
        "PYTHONUNBUFFERED=1",
        "HYDRA_HOST_FILE=/etc/mpi/hostfile",
        "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=120 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
    ]),
];

#[test]
fn a_launcher_knows_its_workers_in_the_form_of_its_implementation() -> Result<(), Error> {
    for (spec, line, expected) in IMPLEMENTATIONS {
        let cluster = job(&format!("workers: 2, {spec}"))?;
        let hosts = cluster.child("ConfigMap", "mnist-hostfile")?["data"]["hostfile"].as_str().unwrap_or_default();
        assert_eq!(hosts.lines().nth(1), Some(*line), "{spec}");
        let launcher = &cluster.child("Pod", LAUNCHER)?["spec"]["containers"][0];
        assert_eq!(variables(launcher), *expected, "{spec}");
        let worker = &cluster.child("Pod", "mnist-worker-1")?["spec"]["containers"][0];
        assert_eq!(variables(worker), ["PYTHONUNBUFFERED=1"], "{spec}");
    }
    Ok(())
}

#[test]
fn workers_wait_for_the_launcher_unless_their_role_has_a_command() -> Result<(), Error> {
    for (spec, command) in [
        ("workers: 1", json!(["/usr/sbin/sshd", "-De", "-o", "StrictModes=no"])),
        ("workers: 1, port: 2222", json!(["/usr/sbin/sshd", "-De", "-o", "StrictModes=no", "-p", "2222"])),
        ("workers: 1, roles: [{name: worker, command: [serve]}]", json!(["serve"])),
    ] {
        let cluster = job(&format!("{spec}, mpi: {{sshSecretName: keys}}"))?;
        let of_pod = |pod: &str| Ok::<_, Error>(cluster.child("Pod", pod)?["spec"]["containers"][0]["command"].clone());
        assert_eq!((of_pod("mnist-worker-0")?, of_pod(LAUNCHER)?), (command, json!(["mpirun", "train"])), "{spec}");
    }
    Ok(())
}

#[test]
fn the_keys_of_the_user_are_where_ssh_looks_for_them() -> Result<(), Error> {
    for (given, directory, mode) in
        [("", "/root/.ssh", json!(0o600)), (", sshDirectory: /home/mpi/.ssh", "/home/mpi/.ssh", Value::Null)]
    {
        let cluster = job(&format!("workers: 1, mpi: {{sshSecretName: keys{given}}}"))?;
        for pod in ["mnist-worker-0", LAUNCHER] {
            let spec = &cluster.child("Pod", pod)?["spec"];
            let named = |list: &Value| list.as_array().into_iter().flatten().find(|it| it["name"] == "ssh").cloned();
            let (volume, container) = (named(&spec["volumes"]).unwrap_or_default(), &spec["containers"][0]);
            let secret = &volume["secret"];
            assert_eq!((&secret["secretName"], &secret["defaultMode"]), (&json!("keys"), &mode), "{pod}");
            let mount = named(&container["volumeMounts"]).unwrap_or_default();
            assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&json!(directory), &json!(true)), "{pod}");
        }
    }
    Ok(())
}

#[test]
fn a_launcher_comes_when_all_workers_run_and_the_job_ends_with_it() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("framework: mpi, workers: 2, mpi: {sshSecretName: keys}")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names(), ["mnist-worker-0", "mnist-worker-1"]);
    cluster.set_pod_status("mnist-worker-0", "phase: Running")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2, "one worker does not run yet");
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names(), [LAUNCHER, "mnist-worker-0", "mnist-worker-1"]);
    assert_eq!((cluster.phase()?, cluster.condition("Ready").starts_with("True")), (Some(Phase::Pending), false));
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.phase()?, cluster.event_count("WorkersCreated")), (Some(Phase::Running), 1));
    cluster.end_pod(LAUNCHER, 0)?;
    cluster.child_mut("Pod", LAUNCHER)?["status"]["phase"] = json!("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.phase()?, cluster.pod_names()), (Some(Phase::Succeeded), vec![LAUNCHER]), "the workers go");
    Ok(())
}

#[test]
fn a_launcher_that_fails_or_a_worker_that_is_lost_starts_all_anew() -> Result<(), Error> {
    for failed in [LAUNCHER, "mnist-worker-1"] {
        let mut cluster = job("workers: 2, mpi: {sshSecretName: keys}")?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        cluster.fail_pod(failed, 1)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(
            (cluster.status()?.restart_count, cluster.pod_names().len()),
            (1, 2),
            "{failed}: the launcher waits"
        );
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 3, "{failed}");
    }
    Ok(())
}

#[test]
fn a_gang_of_the_workers_does_not_wait_for_their_launcher() -> Result<(), Error> {
    let spec = "framework: mpi, workers: 3, mpi: {sshSecretName: keys}, gangScheduling: {scheduler: scheduler-plugins}";
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.scheduler_plugins_is_installed = true;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child("PodGroup", "mnist")?["spec"]["minMember"], 3);
    // The launcher comes when the workers run, so a gang with it would never be complete.
    cluster.job["spec"]["gangScheduling"]["minMember"] = json!(4);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child("PodGroup", "mnist")?["spec"]["minMember"], 3);
    Ok(())
}

/// Such as an `sshd` that does not stay in the foreground. The launcher finds nobody, and the job ends by its limits, rather than waiting for
/// ever.
#[test]
fn a_worker_that_has_ended_before_its_launcher_keeps_no_job_waiting() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("framework: mpi, workers: 2, mpi: {sshSecretName: keys}")?;
    cluster.reconcile_until_stable()?;
    cluster.end_pod("mnist-worker-0", 0)?;
    cluster.set_pod_status("mnist-worker-1", "phase: Running")?;
    cluster.reconcile_until_stable()?;
    assert!(cluster.pod_names().contains(&LAUNCHER), "{:?}", cluster.pod_names());
    cluster.fail_pod(LAUNCHER, 255)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.status()?.restart_count, 1);
    Ok(())
}
