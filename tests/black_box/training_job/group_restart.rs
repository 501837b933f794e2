//! The host is killed in the middle of the restart of a whole job: the next host completes the restart, and no old worker remains
//! beside new ones.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::condition,
    proxy::{Moment, Proxy},
};
use serde_json::{Value, json};

use super::words::{JOB, counts, events, exit, metric, pods, runs, uids};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const WORKERS: usize = 4;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_host_killed_during_the_status_write_of_a_job_restart_restarts_the_job_once,
        a_host_killed_before_the_status_write_of_a_job_restart_restarts_the_job_once,
        a_host_killed_while_it_deletes_workers_deletes_the_rest_after_its_restart,
        a_host_killed_while_it_creates_workers_creates_the_rest_after_its_restart,
    );
}

async fn a_host_killed_before_the_status_write_of_a_job_restart_restarts_the_job_once(env: &mut TestEnv) -> Result<()> {
    killed_at(env, 1, Moment::Before, 1.0).await
}

/// The first host did not receive the response to its status write, so it did not count the restart. The second host must not count
/// it either.
async fn a_host_killed_during_the_status_write_of_a_job_restart_restarts_the_job_once(env: &mut TestEnv) -> Result<()> {
    killed_at(env, 1, Moment::After, 0.0).await
}

/// The status is the first write, and then each worker is deleted.
async fn a_host_killed_while_it_deletes_workers_deletes_the_rest_after_its_restart(env: &mut TestEnv) -> Result<()> {
    killed_at(env, 1 + WORKERS / 2, Moment::Before, 0.0).await
}

async fn a_host_killed_while_it_creates_workers_creates_the_rest_after_its_restart(env: &mut TestEnv) -> Result<()> {
    killed_at(env, 1 + WORKERS + WORKERS / 2, Moment::After, 0.0).await
}

/// Kills the host at one of the writes that follow the failure of a worker. `counted` is what the next host counts.
async fn killed_at(env: &mut TestEnv, write: usize, moment: Moment, counted: f64) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    super::words::start_running(env, json!({"workers": WORKERS})).await?;
    let before = uids(&pods(env).await?);
    kill_in_restart(env, &proxy, write, moment).await?;
    env.host.resume().await?;
    let restarted = |job: &Value| {
        let status = &job["status"];
        status["restartCount"] == 1 && condition(job, "Restarting")["status"] == "False"
    };
    env.namespace.until("TrainingJob", JOB, "to have restarted", restarted).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 1, "{}", job["status"]);
    let after = pods(env).await?;
    ensure!(after.len() == WORKERS && before.is_disjoint(&uids(&after)), "{:?}", after.keys());
    let restarts = metric(env, "training_jobs_restarted_total").await?;
    ensure!(restarts == counted, "the next host counts {restarts} restarts");
    let events = events(env, JOB).await?;
    ensure!(counts(&events).get("TrainingJobRestarting").is_none_or(|times| *times == 1), "{events:?}");
    Ok(())
}

async fn kill_in_restart(env: &mut TestEnv, proxy: &Proxy, write: usize, moment: Moment) -> Result<()> {
    let writes = proxy.writes();
    writes.hold(write, moment);
    exit(env, "mnist-worker-2", 137).await?;
    writes.until_held().await?;
    env.host.kill().await?;
    writes.count();
    Ok(())
}
