//! Random histories: users, nodes, clocks, Kueue and hosts that stop do what they like, in any order. Whatever happened, a job says of itself
//! what is so, and gets on once nothing disturbs it any more. A history is known by its seed, which a failure tells.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster, has_ended, is_deleting};
use pilothouse_sdk::Error;
use serde_json::{Value, json};
use training_job::api::Phase;

/// How many histories each spec has.
const HISTORIES: u64 = 6;

/// How many things happen in each.
const STEPS: usize = 30;

/// How often Pods are run, at the end, until the job runs or has ended. A restart may wait for five minutes.
const PATIENCE: usize = 12;

const SPECS: [&str; 13] = [
    "workers: 3",
    "workers: 3, runPolicy: {restartPolicy: Never, backoffLimit: 2}",
    "workers: 3, runPolicy: {restartPolicy: Always, backoffLimit: 3, cleanPodPolicy: All}",
    "workers: 3, runPolicy: {restartPolicy: ExitCode, cleanPodPolicy: Running, ttlSecondsAfterFinished: 100}",
    "workers: 3, runPolicy: {restartScope: Worker, backoffLimit: 50}",
    "workers: 2, hyperparameters: {a: 1}, elastic: {minWorkers: 1, maxWorkers: 5}, runPolicy: {backoffLimit: 50}",
    "framework: tensorflow, workers: 2, parameterServers: 2, runPolicy: {restartPolicy: OnFailure, backoffLimit: 50}",
    "framework: tensorflow, workers: 2, roles: [{name: chief}, {name: evaluator}], runPolicy: {restartPolicy: OnFailure}",
    "framework: jax, workers: 3, runPolicy: {startDeadlineSeconds: 900, terminationTimeoutSeconds: 60}",
    "workers: 3, runPolicy: {terminationTimeoutSeconds: 60, onTerminationTimeout: ForceDelete, backoffResetSeconds: 100}",
    "workers: 3, runPolicy: {progressDeadlineSeconds: 300, onHang: Restart, activeDeadlineSeconds: 5000}",
    "workers: 3, runPolicy: {podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [3]}}, \
     {action: FailJob, onReasons: [OOMKilled]}]}}",
    "framework: mpi, workers: 2, mpi: {sshSecretName: keys}, runPolicy: {backoffLimit: 50}",
];

/// Numbers that look random, the same for a seed each time (xorshift).
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % bound as u64).unwrap_or_default()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

#[test]
fn whatever_happens_a_job_says_what_is_so_and_gets_on() -> Result<(), Error> {
    for spec in SPECS {
        for seed in 0..HISTORIES {
            history(seed, spec).map_err(|error| Error::Test(format!("seed {seed} of '{spec}': {error}")))?;
        }
    }
    Ok(())
}

fn history(seed: u64, spec: &str) -> Result<(), Error> {
    let (mut random, mut cluster) = (Random::of(seed), SimulatedCluster::new(spec)?);
    if seed % 2 == 1 {
        cluster.kueue_is_installed = true;
        cluster.job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "research" });
    }
    cluster.reconcile_until_stable()?;
    for _ in 0..STEPS {
        let before = cluster.job["status"]["phase"].clone();
        happens(&mut random, &mut cluster)?;
        cluster.reconcile_until_stable()?;
        tells_the_truth(&cluster, &before)?;
    }
    gets_on(&mut cluster)
}

/// Something of what happens in clusters.
fn happens(random: &mut Random, cluster: &mut SimulatedCluster) -> Result<(), Error> {
    let pods: Vec<String> = cluster.pod_names().into_iter().map(str::to_owned).collect();
    if !pods.is_empty() && random.below(2) == 0 {
        let pod = &pods[random.below(pods.len())];
        let (goes, ended) = (is_deleting(cluster.child("Pod", pod)?), has_ended(cluster.child("Pod", pod)?));
        return match random.below(10) {
            // What has ended stays so.
            0 | 1 | 4..=7 if ended => Ok(()),
            0 => cluster.fail_pod(pod, random.one_of(&[1, 2, 3, 137, 143])),
            1 => cluster.end_pod(pod, 0),
            2 => cluster.begin_deletion(pod),
            3 => cluster.evict(pod, "EvictionByEvictionAPI"),
            4 if !goes => cluster.restart_container(pod, random.one_of(&[0, 1, 137])),
            5 => cluster.set_pod_status(pod, "phase: Unknown, reason: NodeLost"),
            6 => cluster.set_pod_status(pod, "phase: Failed, reason: Evicted"),
            7 => cluster.set_pod_status(
                pod,
                "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]",
            ),
            _ => {
                cluster.delete_pod(pod);
                Ok(())
            }
        };
    }
    match random.below(10) {
        0 => {
            let is_suspended = cluster.job["spec"]["runPolicy"]["suspend"] == true;
            cluster.job["spec"]["runPolicy"]["suspend"] = json!(!is_suspended);
        }
        1 => cluster.job["spec"]["image"] = json!(format!("image-{}", random.below(3))),
        2 if cluster.job["spec"]["elastic"].is_object() => cluster.job["spec"]["workers"] = json!(1 + random.below(5)),
        3 => cluster.advance_clock(random.one_of(&[1, 10, 60, 400, 4000, -1, -60, -5000])),
        4 => cluster.finish_deletions(),
        5 => cluster.end_deleted_pods(random.one_of(&[0, 1])),
        6 => run_pods(cluster),
        7 => cluster.graceful_deletion = !cluster.graceful_deletion,
        8 => cluster.writes_left = Some(random.below(4)),
        _ => kueue_says(cluster, random.one_of(&["Admitted", "Admitted", "Evicted"])),
    }
    Ok(())
}

/// Lets all Pods run that can.
fn run_pods(cluster: &mut SimulatedCluster) {
    for pod in cluster.pods_mut().filter(|pod| !is_deleting(pod) && !has_ended(pod)) {
        pod["status"] = json!({ "phase": "Running" });
    }
}

/// Lets Kueue say something of the Workload, if there is one.
fn kueue_says(cluster: &mut SimulatedCluster, condition: &str) {
    if let Ok(workload) = cluster.child_mut("Workload", "trainingjob-mnist") {
        let mut conditions = workload["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.push(json!({ "type": condition, "status": "True", "reason": condition, "message": "so" }));
        workload["status"] = json!({ "conditions": conditions, "admission": { "podSetAssignments": [] } });
    }
}

/// What holds at any time.
fn tells_the_truth(cluster: &SimulatedCluster, before: &Value) -> Result<(), Error> {
    let status = cluster.status()?;
    let pods = || cluster.children.iter().filter(|(key, _)| key.kind == "Pod").map(|(_, pod)| pod);
    let is_in = |pod: &Value, phases: &[&str]| pod["status"]["phase"].as_str().is_some_and(|it| phases.contains(&it));
    let limit = cluster.job["spec"]["runPolicy"]["backoffLimit"].as_u64().unwrap_or(6);
    let had_ended = before == "Succeeded" || before == "Failed";
    let workers = u32::try_from(status.worker_statuses.len()).unwrap_or(u32::MAX);
    let is_ready = status.phase == Some(Phase::Running) && cluster.is_condition_true("Ready");
    let uses_quota = cluster.kueue_is_installed && pods().any(|pod| is_in(pod, &["Pending", "Running"]));
    for (what, is_so) in [
        ("more restarts than it may have", u64::from(status.restart_count) > limit),
        ("it has ended, and goes on", had_ended && cluster.job["status"]["phase"] != *before),
        ("more workers than it has", status.active > workers || status.replicas > workers),
        ("ready, and none of its Pods runs", is_ready && !pods().any(|pod| is_in(pod, &["Running"]))),
        ("Pods use quota that nobody keeps", uses_quota && cluster.child_names("Workload").is_empty()),
    ] {
        if is_so {
            return Err(Error::Test(format!("{what}: {}", cluster.job["status"])));
        }
    }
    Ok(())
}

/// Nothing disturbs the job any more: it runs, or it ends.
fn gets_on(cluster: &mut SimulatedCluster) -> Result<(), Error> {
    (cluster.writes_left, cluster.graceful_deletion) = (None, false);
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(false);
    for step in 0..PATIENCE {
        cluster.finish_deletions();
        kueue_says(cluster, "Admitted");
        cluster.reconcile_until_stable()?;
        run_pods(cluster);
        for pod in cluster.pods_mut() {
            pod["metadata"]["annotations"]["ml.example.com/progress"] = json!(json!({ "step": step }).to_string());
        }
        cluster.reconcile_until_stable()?;
        if cluster.status()?.is_finished() || cluster.condition("Ready") == "True TrainingJobRunning" {
            return Ok(());
        }
        cluster.advance_clock(300);
    }
    let pods = cluster.pod_names();
    Err(Error::Test(format!("it neither runs nor ends: {pods:?}, {}", cluster.job["status"])))
}
