//! Which condition and phase a job reaches from the phases of its Pods: for TensorFlow the cases that the Kubeflow training
//! operator tests, and the rules for PyTorch.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use training_job::api::{Phase, TrainingJobStatus};

/// A TensorFlow job, the phases of its Pods, and the condition that it reaches. The chief is worker 0.
struct TensorflowCase {
    /// Its number in the operator's tests.
    number: u32,
    success_policy: &'static str,
    /// One letter for each Pod, as [`set_phases`] reads them.
    workers: &'static str,
    parameter_servers: &'static str,
    reached: &'static str,
}

const CHIEF: &str = "ChiefWorker";
const ALL: &str = "AllWorkers";

#[rustfmt::skip]
const TENSORFLOW_CASES: &[TensorflowCase] = &[
    TensorflowCase { number: 1, success_policy: CHIEF, workers: "SS", parameter_servers: "", reached: "Succeeded" },
    TensorflowCase { number: 2, success_policy: CHIEF, workers: "RP", parameter_servers: "", reached: "Running" },
    TensorflowCase { number: 3, success_policy: CHIEF, workers: "FP", parameter_servers: "", reached: "Failed" },
    TensorflowCase { number: 4, success_policy: ALL, workers: "F", parameter_servers: "", reached: "Failed" },
    TensorflowCase { number: 4, success_policy: CHIEF, workers: "F", parameter_servers: "", reached: "Failed" },
    TensorflowCase { number: 5, success_policy: ALL, workers: "S", parameter_servers: "", reached: "Succeeded" },
    TensorflowCase { number: 5, success_policy: CHIEF, workers: "S", parameter_servers: "", reached: "Succeeded" },
    TensorflowCase { number: 6, success_policy: ALL, workers: "R", parameter_servers: "", reached: "Running" },
    TensorflowCase { number: 6, success_policy: CHIEF, workers: "R", parameter_servers: "", reached: "Running" },
    TensorflowCase { number: 7, success_policy: CHIEF, workers: "RSSR", parameter_servers: "RR", reached: "Running" },
    TensorflowCase { number: 7, success_policy: ALL, workers: "SSRR", parameter_servers: "RR", reached: "Running" },
    TensorflowCase { number: 8, success_policy: CHIEF, workers: "FFRR", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 8, success_policy: ALL, workers: "FFRR", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 8, success_policy: ALL, workers: "RFFR", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 9, success_policy: CHIEF, workers: "FFSS", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 9, success_policy: ALL, workers: "FFSS", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 10, success_policy: CHIEF, workers: "SRRR", parameter_servers: "RR", reached: "Succeeded" },
    TensorflowCase { number: 11, success_policy: ALL, workers: "SRRR", parameter_servers: "", reached: "Running" },
    TensorflowCase { number: 12, success_policy: ALL, workers: "SSSS", parameter_servers: "", reached: "Succeeded" },
    TensorflowCase { number: 13, success_policy: ALL, workers: "SFRR", parameter_servers: "", reached: "Failed" },
    TensorflowCase { number: 14, success_policy: CHIEF, workers: "RFFFF", parameter_servers: "RR", reached: "Running" },
    TensorflowCase { number: 15, success_policy: CHIEF, workers: "RSSSS", parameter_servers: "RR", reached: "Running" },
    TensorflowCase { number: 16, success_policy: CHIEF, workers: "RSSSS", parameter_servers: "RF", reached: "Failed" },
    TensorflowCase { number: 17, success_policy: CHIEF, workers: "FSSSS", parameter_servers: "RR", reached: "Failed" },
    TensorflowCase { number: 18, success_policy: CHIEF, workers: "SFFFF", parameter_servers: "RR", reached: "Succeeded" },
    TensorflowCase { number: 19, success_policy: CHIEF, workers: "FFFFF", parameter_servers: "RR", reached: "Restarting" },
];

#[test]
fn the_condition_that_a_tensorflow_job_reaches() -> Result<(), Error> {
    for case in TENSORFLOW_CASES {
        let cluster = reach(case)?;
        let name = format!("case {} {}", case.number, case.success_policy);
        for condition in ["Running", "Restarting", "Succeeded", "Failed"] {
            assert_eq!(cluster.is_condition_true(condition), condition == case.reached, "{name}: {condition}");
        }
        let phase = match case.reached {
            "Succeeded" => Phase::Succeeded,
            "Failed" => Phase::Failed,
            "Running" => Phase::Running,
            _ => Phase::Pending,
        };
        assert_eq!(cluster.phase()?, Some(phase), "{name}");
        let replicas = case.workers.len() + case.parameter_servers.len();
        assert_eq!(cluster.pod_names().len(), replicas, "{name}: the status has the end before a Pod goes");
        let has_ended = matches!(case.reached, "Succeeded" | "Failed");
        assert_eq!(cluster.status()?.completion_time.is_some(), has_ended, "{name}");
    }
    Ok(())
}

fn reach(case: &TensorflowCase) -> Result<SimulatedCluster, Error> {
    // The operator's tests have one case with a restart policy that retries failures.
    let policy = if case.reached == "Restarting" { ", runPolicy: {restartPolicy: OnFailure}" } else { "" };
    let mut cluster = SimulatedCluster::new(&format!(
        "framework: tensorflow, workers: {}, parameterServers: {}, successPolicy: {}{policy}",
        case.workers.len(),
        case.parameter_servers.len(),
        case.success_policy
    ))?;
    cluster.reconcile_until_stable()?;
    set_phases(&mut cluster, "worker", case.workers)?;
    set_phases(&mut cluster, "ps", case.parameter_servers)?;
    cluster.reconcile()?;
    Ok(cluster)
}

/// Sets the phases of the Pods of one replica type, by their first letters.
fn set_phases(cluster: &mut SimulatedCluster, replica_type: &str, letters: &str) -> Result<(), Error> {
    for (index, letter) in letters.chars().enumerate() {
        let phase = match letter {
            'R' => "Running",
            'S' => "Succeeded",
            'F' => "Failed",
            _ => "Pending",
        };
        cluster.set_pod_status(&format!("mnist-{replica_type}-{index}"), &format!("phase: {phase}"))?;
    }
    Ok(())
}

/// A PyTorch job of three workers, the phases of its Pods, and what it reaches.
struct PytorchCase {
    /// More of its spec.
    spec: &'static str,
    workers: &'static str,
    phase: Phase,
    /// The condition that is `True`.
    reached: &'static str,
    /// Whether all of it runs that it needs.
    ready: bool,
}

const SCOPE_WORKER: &str = ", runPolicy: {restartScope: Worker}";
const NEVER: &str = ", runPolicy: {restartPolicy: Never}";
const CHIEF_DECIDES: &str = ", successPolicy: ChiefWorker";
const CHIEF_DECIDES_NEVER: &str = ", successPolicy: ChiefWorker, runPolicy: {restartPolicy: Never}";
const ELASTIC: &str = ", elastic: {minWorkers: 1, maxWorkers: 4}";
const ELASTIC_ALL_DECIDE: &str = ", elastic: {minWorkers: 1, maxWorkers: 4}, successPolicy: AllWorkers";

#[rustfmt::skip]
const PYTORCH_CASES: &[PytorchCase] = &[
    PytorchCase { spec: "", workers: "PPP", phase: Phase::Pending, reached: "", ready: false },
    PytorchCase { spec: "", workers: "RPP", phase: Phase::Running, reached: "Running", ready: false },
    PytorchCase { spec: "", workers: "PRP", phase: Phase::Running, reached: "Running", ready: false },
    PytorchCase { spec: "", workers: "RRR", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: "", workers: "SRR", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: "", workers: "SSR", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: "", workers: "SSP", phase: Phase::Pending, reached: "", ready: false },
    PytorchCase { spec: "", workers: "SSS", phase: Phase::Succeeded, reached: "Succeeded", ready: true },
    PytorchCase { spec: "", workers: "FRR", phase: Phase::Pending, reached: "Restarting", ready: false },
    PytorchCase { spec: "", workers: "RRF", phase: Phase::Pending, reached: "Restarting", ready: false },
    PytorchCase { spec: "", workers: "SSF", phase: Phase::Pending, reached: "Restarting", ready: false },
    PytorchCase { spec: SCOPE_WORKER, workers: "RRF", phase: Phase::Running, reached: "Restarting", ready: false },
    PytorchCase { spec: SCOPE_WORKER, workers: "FPP", phase: Phase::Pending, reached: "Restarting", ready: false },
    PytorchCase { spec: NEVER, workers: "FRR", phase: Phase::Failed, reached: "Failed", ready: false },
    PytorchCase { spec: NEVER, workers: "RRF", phase: Phase::Failed, reached: "Failed", ready: false },
    PytorchCase { spec: NEVER, workers: "SSF", phase: Phase::Failed, reached: "Failed", ready: false },
    PytorchCase { spec: CHIEF_DECIDES, workers: "SRR", phase: Phase::Succeeded, reached: "Succeeded", ready: true },
    PytorchCase { spec: CHIEF_DECIDES, workers: "RSS", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: CHIEF_DECIDES_NEVER, workers: "RFF", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: CHIEF_DECIDES_NEVER, workers: "FRR", phase: Phase::Failed, reached: "Failed", ready: false },
    PytorchCase { spec: ELASTIC, workers: "RPP", phase: Phase::Running, reached: "Running", ready: true },
    PytorchCase { spec: ELASTIC, workers: "RSR", phase: Phase::Succeeded, reached: "Succeeded", ready: true },
    PytorchCase { spec: ELASTIC, workers: "RRF", phase: Phase::Running, reached: "Restarting", ready: false },
    PytorchCase { spec: ELASTIC_ALL_DECIDE, workers: "RSR", phase: Phase::Running, reached: "Running", ready: true },
];

#[test]
fn the_phase_that_a_pytorch_job_reaches() -> Result<(), Error> {
    for PytorchCase { spec, workers, phase, reached, ready } in PYTORCH_CASES {
        let mut cluster = SimulatedCluster::new(&format!("workers: 3{spec}"))?;
        cluster.reconcile_until_stable()?;
        set_phases(&mut cluster, "worker", workers)?;
        cluster.reconcile()?;
        let name = format!("{workers}{spec}");
        assert_eq!(cluster.phase()?, Some(*phase), "{name}");
        for condition in ["Running", "Restarting", "Succeeded", "Failed"] {
            assert_eq!(cluster.is_condition_true(condition), condition == *reached, "{name}: {condition}");
        }
        assert_eq!(cluster.is_condition_true("Ready"), *ready, "{name}");
    }
    Ok(())
}

#[test]
fn a_finished_job_keeps_its_status() -> Result<(), Error> {
    for end in ["Succeeded", "Failed"] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {restartPolicy: Never}")?;
        cluster.set_phase_of_all_pods(end);
        cluster.reconcile_until_stable()?;
        let status = cluster.status()?;
        for phase in ["Running", "Failed", "Succeeded"] {
            cluster.set_phase_of_all_pods(phase);
            cluster.advance_clock(1000);
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.status()?, status, "{end}, then {phase}");
        }
        cluster.delete_pod("mnist-worker-0");
        cluster.reconcile_until_stable()?;
        let with_one_pod = TrainingJobStatus { replicas: 1, ..status };
        assert_eq!(
            (cluster.status()?, cluster.pod_names()),
            (with_one_pod, vec!["mnist-worker-1"]),
            "no Pod is created again"
        );
    }
    Ok(())
}

#[test]
fn a_running_job_is_reconciled_every_half_minute() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, None, "a change of a Pod calls the plugin anyway");
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, Some(30));
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, None);
    Ok(())
}

/// The restart policy of a job whose workers restart alone, how the container that trains has ended beside a plain sidecar, and the condition
/// that the job reaches; none where the kubelet starts the container again.
const BESIDE_A_SIDECAR: &[(&str, i32, Option<&str>)] = &[
    ("Never", 0, Some("Succeeded")),
    ("Never", 3, Some("Failed")),
    ("ExitCode", 137, Some("Restarting")),
    ("OnFailure", 0, Some("Succeeded")),
    ("OnFailure", 3, None),
    ("Always", 0, None),
];

#[test]
fn a_trainer_that_ended_beside_a_sidecar_has_ended() -> Result<(), Error> {
    for (phase, sidecar) in [("Running", "running: {}"), ("Pending", "waiting: {reason: ContainerCreating}")] {
        for (policy, code, condition) in BESIDE_A_SIDECAR {
            let name = format!("{phase} {policy} {code}");
            let policy = format!("restartPolicy: {policy}, restartScope: Worker");
            let mut cluster = SimulatedCluster::running(&format!("workers: 1, runPolicy: {{{policy}}}"))?;
            let end = format!("terminated: {{exitCode: {code}, reason: OOMKilled, message: log}}");
            let containers = format!("[{{name: pytorch, state: {{{end}}}}}, {{name: proxy, state: {{{sidecar}}}}}]");
            cluster.set_pod_status("mnist-worker-0", &format!("phase: {phase}, containerStatuses: {containers}"))?;
            cluster.reconcile()?;
            for reached in ["Succeeded", "Failed", "Restarting"] {
                assert_eq!(cluster.is_condition_true(reached), *condition == Some(reached), "{name}: {reached}");
            }
            let worker = &cluster.status()?.worker_statuses[0];
            let status = match condition {
                None => phase,
                Some("Succeeded") => "Succeeded",
                Some(_) => "Failed",
            };
            assert_eq!(worker.status, status, "{name}");
            let told = (worker.exit_code, worker.reason.as_deref(), worker.message.as_deref());
            if status == "Failed" {
                assert_eq!(told, (Some(*code), Some("OOMKilled"), Some("log")), "{name}");
            }
        }
    }
    Ok(())
}

/// How the Pod of a worker ends in which the trainer has ended with success and a plain sidecar fails.
const SIDECAR_FAILED: &str = "phase: Failed, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: 0}}}, \
     {name: proxy, state: {terminated: {exitCode: 1, reason: Error, message: no route}}}]";

#[test]
fn a_trainer_that_succeeded_has_whatever_becomes_of_its_sidecar() -> Result<(), Error> {
    let runs_on = "phase: Running, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: 0}}}, \
         {name: proxy, state: {running: {}}}]";
    let evicted =
        "phase: Failed, reason: Evicted, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: 0}}}]";
    for (name, statuses) in [
        ("the sidecar fails first", vec![SIDECAR_FAILED]),
        ("the sidecar fails later", vec![runs_on, SIDECAR_FAILED]),
        ("the node is drained later", vec![runs_on, evicted]),
    ] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {restartPolicy: Never}")?;
        for status in statuses {
            cluster.set_pod_status("mnist-worker-0", status)?;
            cluster.reconcile_until_stable()?;
        }
        let worker = &cluster.status()?.worker_statuses[0];
        let told = (worker.status.as_str(), worker.reason.as_deref(), worker.message.as_deref());
        assert_eq!(told, ("Succeeded", None, None), "{name}");
        assert_eq!((cluster.phase()?, cluster.status()?.restart_count), (Some(Phase::Running), 0), "{name}");
        cluster.set_pod_status("mnist-worker-1", "phase: Succeeded")?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.phase()?, Some(Phase::Succeeded), "{name}");
    }
    Ok(())
}
