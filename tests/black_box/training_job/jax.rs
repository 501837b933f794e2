//! Real JAX workers: processes with the environment of a job's Pods find each other and compute together.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use pilothouse_control_plane::free_port;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use super::{
    rendezvous::{all_joined, worker},
    words::{JOB, exit, has, pods, start_running},
};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

const WORKERS: usize = 2;

pub fn register(suite: &mut Suite) {
    heavy_with!(suite, artifacts::jax(), real_jax_workers_meet_by_the_environment_of_their_pods);
}

async fn real_jax_workers_meet_by_the_environment_of_their_pods(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::jax()?;
    start_running(env, json!({"framework": "jax", "workers": WORKERS, "port": free_port()?})).await?;
    let pods: Vec<Value> = pods(env).await?.into_values().collect();
    ensure!(pods.len() == WORKERS, "{} Pods", pods.len());
    let program = artifacts::repository().join("tests/black_box/training_job/all_gather.py");
    let program = [program.into_os_string().into_string().ok().context("a path that is no text")?];
    let began = Instant::now();
    let ended = try_join_all(pods.iter().map(|pod| worker(&python, &program, pod, &pods))).await?;
    eprintln!("{WORKERS} JAX workers met and ended after {:?}", began.elapsed());
    all_joined(&ended, WORKERS)?;
    for number in 0..WORKERS {
        exit(env, &format!("{JOB}-worker-{number}"), 0).await?;
    }
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    Ok(())
}
