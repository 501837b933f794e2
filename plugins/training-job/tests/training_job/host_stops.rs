//! Scenarios in which the host stops before any of its writes. In the end, nothing is counted twice or forgotten, and the
//! cluster is as if the host had not stopped.

use crate::simulated_cluster::{ReconcileEnd, SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;

/// Something that happens to a job. Between the steps, the host does everything that there is to do.
type Step = fn(&mut SimulatedCluster) -> Result<(), Error>;

struct Scenario {
    name: &'static str,
    spec: &'static str,
    graceful_deletion: bool,
    steps: &'static [Step],
}

const PODS_RUN: Step = |cluster| {
    cluster.set_phase_of_all_pods("Running");
    Ok(())
};

const PODS_SUCCEED: Step = |cluster| {
    cluster.set_phase_of_all_pods("Succeeded");
    Ok(())
};

const ONE_WORKER_FAILS: Step = |cluster| cluster.fail_pod("mnist-worker-1", 137);

const TWO_WORKERS_FAIL: Step = |cluster| {
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.fail_pod("mnist-worker-2", 1)
};

const PARAMETER_SERVER_FAILS: Step = |cluster| cluster.fail_pod("mnist-ps-1", 200);

const CHIEF_SUCCEEDS: Step = |cluster| cluster.set_pod_status("mnist-worker-0", "phase: Succeeded");

const DELETED_PODS_GO: Step = |cluster| {
    cluster.finish_deletions();
    Ok(())
};

/// Programs that write a checkpoint on SIGTERM end with 0, and their Pods get the phase Succeeded before they go.
const DELETED_PODS_END: Step = |cluster| {
    cluster.end_deleted_pods(0);
    Ok(())
};

const A_NODE_IS_DRAINED: Step = |cluster| cluster.evict("mnist-worker-1", "EvictionByEvictionAPI");

const A_NODE_SHUTS_DOWN: Step = |cluster| {
    cluster.disrupt("mnist-worker-1", "TerminationByKubelet")?;
    cluster.fail_pod("mnist-worker-1", 1)
};

const ALL_FALL_IN_PLACE: Step = |cluster| {
    for index in 0..3 {
        cluster.restart_container(&format!("mnist-worker-{index}"), 1)?;
    }
    Ok(())
};

const POD_IS_LOST: Step = |cluster| {
    cluster.delete_pod("mnist-worker-1");
    Ok(())
};

const A_MINUTE_PASSES: Step = |cluster| {
    cluster.advance_clock(60);
    Ok(())
};

const SPEC_CHANGES: Step = |cluster| {
    cluster.job["spec"]["image"] = json!("another");
    Ok(())
};

const SCALE_UP: Step = |cluster| {
    cluster.job["spec"]["workers"] = json!(5);
    Ok(())
};

const SCALE_DOWN: Step = |cluster| {
    cluster.job["spec"]["workers"] = json!(2);
    Ok(())
};

const SUSPEND: Step = |cluster| {
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(true);
    Ok(())
};

const RESUME: Step = |cluster| {
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(false);
    Ok(())
};

/// One worker fails, and later two at once.
const WORKERS_FAIL_TWICE: &[Step] =
    &[PODS_RUN, ONE_WORKER_FAILS, PODS_RUN, A_MINUTE_PASSES, TWO_WORKERS_FAIL, A_MINUTE_PASSES, PODS_RUN, PODS_SUCCEED];

/// The same, with Pods that take their time to go.
const WORKERS_FAIL_TWICE_AND_ARE_DELETED_GRACEFULLY: &[Step] = &[
    PODS_RUN,
    ONE_WORKER_FAILS,
    DELETED_PODS_END,
    DELETED_PODS_GO,
    PODS_RUN,
    A_MINUTE_PASSES,
    TWO_WORKERS_FAIL,
    DELETED_PODS_END,
    DELETED_PODS_GO,
    A_MINUTE_PASSES,
    PODS_RUN,
    PODS_SUCCEED,
];

/// All begin with a job of three workers.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "success",
        spec: "runPolicy: {cleanPodPolicy: All}",
        graceful_deletion: false,
        steps: &[PODS_RUN, A_MINUTE_PASSES, PODS_SUCCEED],
    },
    Scenario {
        name: "time to live",
        spec: "runPolicy: {ttlSecondsAfterFinished: 30, cleanPodPolicy: All}",
        graceful_deletion: false,
        steps: &[PODS_RUN, PODS_SUCCEED, A_MINUTE_PASSES],
    },
    Scenario {
        name: "all workers are restarted",
        spec: "runPolicy: {}",
        graceful_deletion: false,
        steps: WORKERS_FAIL_TWICE,
    },
    Scenario {
        name: "all workers are restarted, with graceful deletion",
        spec: "runPolicy: {}",
        graceful_deletion: true,
        steps: WORKERS_FAIL_TWICE_AND_ARE_DELETED_GRACEFULLY,
    },
    Scenario {
        name: "failed workers are replaced",
        spec: "runPolicy: {restartScope: Worker}",
        graceful_deletion: false,
        steps: WORKERS_FAIL_TWICE,
    },
    Scenario {
        name: "failed workers are replaced, with graceful deletion",
        spec: "runPolicy: {restartScope: Worker}",
        graceful_deletion: true,
        steps: WORKERS_FAIL_TWICE_AND_ARE_DELETED_GRACEFULLY,
    },
    Scenario {
        name: "backoff limit exceeded",
        spec: "runPolicy: {backoffLimit: 1}",
        graceful_deletion: false,
        steps: &[PODS_RUN, ONE_WORKER_FAILS, PODS_RUN, A_MINUTE_PASSES, ONE_WORKER_FAILS],
    },
    Scenario {
        name: "deadline exceeded",
        spec: "runPolicy: {activeDeadlineSeconds: 100}",
        graceful_deletion: true,
        steps: &[PODS_RUN, A_MINUTE_PASSES, A_MINUTE_PASSES, DELETED_PODS_GO],
    },
    Scenario {
        name: "changed spec",
        spec: "runPolicy: {}",
        graceful_deletion: true,
        steps: &[PODS_RUN, SPEC_CHANGES, DELETED_PODS_END, DELETED_PODS_GO, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "suspended and resumed",
        spec: "runPolicy: {}",
        graceful_deletion: true,
        steps: &[
            PODS_RUN,
            SUSPEND,
            DELETED_PODS_END,
            DELETED_PODS_GO,
            A_MINUTE_PASSES,
            RESUME,
            PODS_RUN,
            A_MINUTE_PASSES,
            PODS_SUCCEED,
        ],
    },
    Scenario {
        name: "suspended and resumed while the Pods end",
        spec: "runPolicy: {}",
        graceful_deletion: true,
        steps: &[PODS_RUN, SUSPEND, DELETED_PODS_END, RESUME, DELETED_PODS_GO, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "a node is drained",
        spec: "runPolicy: {restartPolicy: Never}",
        graceful_deletion: true,
        steps: &[PODS_RUN, A_NODE_IS_DRAINED, DELETED_PODS_END, DELETED_PODS_GO, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "a node of an elastic job is drained",
        spec: "elastic: {minWorkers: 1, maxWorkers: 5}",
        graceful_deletion: true,
        steps: &[PODS_RUN, A_NODE_IS_DRAINED, DELETED_PODS_END, DELETED_PODS_GO, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "a node shuts down",
        spec: "runPolicy: {restartPolicy: Never, restartScope: Worker}",
        graceful_deletion: true,
        steps: &[PODS_RUN, A_NODE_SHUTS_DOWN, DELETED_PODS_GO, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "containers are restarted in place",
        spec: "elastic: {minWorkers: 1, maxWorkers: 5}",
        graceful_deletion: true,
        steps: &[PODS_RUN, A_MINUTE_PASSES, ALL_FALL_IN_PLACE, A_MINUTE_PASSES, ALL_FALL_IN_PLACE, PODS_SUCCEED],
    },
    Scenario {
        name: "a lost worker is replaced",
        spec: "runPolicy: {restartScope: Worker}",
        graceful_deletion: false,
        steps: &[PODS_RUN, POD_IS_LOST, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "all workers are restarted after one is lost",
        spec: "runPolicy: {}",
        graceful_deletion: false,
        steps: &[PODS_RUN, POD_IS_LOST, PODS_RUN, PODS_SUCCEED],
    },
    Scenario {
        name: "an elastic job is scaled",
        spec: "elastic: {minWorkers: 1, maxWorkers: 5}",
        graceful_deletion: true,
        steps: &[
            PODS_RUN,
            SCALE_UP,
            PODS_RUN,
            SCALE_DOWN,
            DELETED_PODS_END,
            SCALE_UP,
            DELETED_PODS_GO,
            PODS_RUN,
            PODS_SUCCEED,
        ],
    },
    Scenario {
        name: "parameter servers",
        spec: "framework: tensorflow, parameterServers: 2, runPolicy: {restartPolicy: ExitCode}",
        graceful_deletion: false,
        steps: &[
            PODS_RUN,
            ONE_WORKER_FAILS,
            PODS_RUN,
            PARAMETER_SERVER_FAILS,
            A_MINUTE_PASSES,
            PODS_RUN,
            CHIEF_SUCCEEDS,
        ],
    },
];

#[test]
fn a_host_that_stops_before_any_write_gets_to_the_same_end() -> Result<(), Error> {
    for scenario in SCENARIOS {
        let undisturbed = outcome(&run(scenario, None)?)?;
        let mut stops = 0;
        loop {
            let cluster = run(scenario, Some(stops))?;
            // `reconcile_until_stable` takes the limit away when the host has stopped.
            let has_stopped = cluster.writes_left.is_none();
            assert_eq!(outcome(&cluster)?, undisturbed, "{}: stopped before write {stops}", scenario.name);
            if !has_stopped {
                break;
            }
            stops += 1;
        }
        assert!(stops > 8, "{}: there were only {stops} writes to stop before", scenario.name);
    }
    Ok(())
}

#[test]
fn a_host_that_stops_again_and_again_gets_to_the_same_status() -> Result<(), Error> {
    for scenario in SCENARIOS {
        let undisturbed = outcome(&run(scenario, None)?)?;
        for writes in 1..4 {
            let mut cluster = start(scenario)?;
            for step in std::iter::once(&A_MINUTE_PASSES).chain(scenario.steps) {
                step(&mut cluster)?;
                reconcile_with_stops(&mut cluster, writes)?;
            }
            let status = outcome(&cluster)?.status;
            assert_eq!(status, undisturbed.status, "{}: stopped after every {writes} writes", scenario.name);
        }
    }
    Ok(())
}

/// Reconciles until nothing is left to do, with a host that stops after so many writes each time.
fn reconcile_with_stops(cluster: &mut SimulatedCluster, writes: usize) -> Result<(), Error> {
    for _ in 0..200 {
        cluster.writes_left = Some(writes);
        if cluster.reconcile()? == ReconcileEnd::StatusWritten && cluster.requeue_after != Some(0) {
            return Ok(());
        }
    }
    Err(Error::Test("the job does not become stable".to_owned()))
}

/// Runs a scenario with a host that stops once, before the write of that number.
fn run(scenario: &Scenario, stop: Option<usize>) -> Result<SimulatedCluster, Error> {
    let mut cluster = start(scenario)?;
    cluster.writes_left = stop;
    cluster.advance_clock(60);
    cluster.reconcile_until_stable()?;
    for step in scenario.steps {
        step(&mut cluster)?;
        cluster.reconcile_until_stable()?;
    }
    Ok(cluster)
}

fn start(scenario: &Scenario) -> Result<SimulatedCluster, Error> {
    let mut cluster = SimulatedCluster::new(&format!("workers: 3, {}", scenario.spec))?;
    cluster.graceful_deletion = scenario.graceful_deletion;
    Ok(cluster)
}

/// What a scenario leads to. UIDs are left out, since Pods may have been created in another order.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: String,
    children: Vec<String>,
    events: Vec<String>,
}

fn outcome(cluster: &SimulatedCluster) -> Result<Outcome, Error> {
    let status = cluster.status()?;
    let replicas: Vec<_> =
        status.replica_statuses().map(|replica| format!("{}={}", replica.pod_name, replica.status)).collect();
    let conditions: Vec<_> =
        status.conditions.iter().map(|c| format!("{}={} {}", c.condition_type, c.status, c.reason)).collect();
    let measurements = &cluster.measurements;
    let (phase, start, end) = (status.phase, &status.start_time, &status.completion_time);
    let (restarts, retiring) = (status.restart_count, status.retiring_pods.len());
    let mut events: Vec<_> = cluster.events.iter().map(ToString::to_string).collect();
    events.sort();
    Ok(Outcome {
        status: format!(
            "{phase:?} {start:?} {end:?} {restarts} {retiring} {replicas:?} {conditions:?} {measurements:?}"
        ),
        children: cluster.children.keys().map(|key| format!("{} {}", key.kind, key.name)).collect(),
        events,
    })
}
