//! A selection of the phase cases of TensorFlow jobs: how Pods end, and the phase that the job reaches. The pure function is
//! tested with all cases.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::words::{exit, named, pods, runs};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The cases: the name of the job, its spec, the Pods that end in this order with their exit codes, and the phase that the job
/// reaches.
const CASES: [(&str, Spec, Exits, &str); 7] = [
    ("case-3", CHIEF_AND_WORKER, &[("worker-0", 1)], "Failed"),
    ("case-7", FOUR_AND_SERVERS, &[("worker-1", 0), ("worker-2", 0)], "Running"),
    ("case-10", FOUR_AND_SERVERS, &[("worker-0", 0)], "Succeeded"),
    ("case-12", FOUR_OF_FOUR, &[("worker-0", 0), ("worker-1", 0), ("worker-2", 0), ("worker-3", 0)], "Succeeded"),
    ("case-13", FOUR_OF_FOUR, &[("worker-0", 0), ("worker-1", 1)], "Failed"),
    ("case-14", CHIEF_AND_WORKER, &[("worker-1", 1)], "Running"),
    ("case-16", FOUR_AND_SERVERS, &[("worker-1", 0), ("ps-0", 1)], "Failed"),
];

/// Workers, parameter servers and the success policy.
type Spec = (u32, u32, &'static str);

/// Members and their exit codes.
type Exits = &'static [(&'static str, u8)];

const CHIEF_AND_WORKER: Spec = (2, 0, "ChiefWorker");
const FOUR_AND_SERVERS: Spec = (4, 2, "ChiefWorker");
const FOUR_OF_FOUR: Spec = (4, 0, "AllWorkers");

pub fn register(suite: &mut Suite) {
    tests!(suite, jobs_come_to_the_phase_of_their_case);
}

async fn jobs_come_to_the_phase_of_their_case(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for (name, (workers, servers, policy), ..) in CASES {
        let spec = json!({
            "framework": "tensorflow", "workers": workers, "parameterServers": servers, "successPolicy": policy,
        });
        env.namespace.apply(named(name, spec)).await?;
    }
    for (name, _, exits, reached) in CASES {
        runs(env, name).await?;
        for (member, code) in exits {
            ends(env, &format!("{name}-{member}"), name, *code).await?;
        }
        let phase = |job: &Value| job["status"]["phase"] == reached;
        env.namespace.until("TrainingJob", name, &format!("to be {reached} after {exits:?}"), phase).await?;
    }
    let left = pods(env).await?.len();
    let made: u32 = CASES.iter().map(|(_, (workers, servers, _), ..)| workers + servers).sum();
    ensure!(left == usize::try_from(made)?, "{left} of {made} Pods are left, though nobody asked for that");
    Ok(())
}

/// Ends a Pod and waits until its job has noticed, so that the job sees the ends in the same order.
async fn ends(env: &TestEnv, pod: &str, job: &str, code: u8) -> Result<()> {
    exit(env, pod, code).await?;
    let word = if code == 0 { "Succeeded" } else { "Failed" };
    let knows = |job: &Value| {
        let members = ["workerStatuses", "parameterServerStatuses"].map(|list| job["status"][list].as_array());
        members.into_iter().flatten().flatten().any(|found| found["podName"] == pod && found["status"] == word)
    };
    env.namespace.until("TrainingJob", job, &format!("to know the end of {pod}"), knows).await?;
    Ok(())
}
