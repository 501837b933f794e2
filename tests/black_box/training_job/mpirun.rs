//! A real Open MPI job: `mpirun` in the launcher reaches the workers by `ssh`, with what their Pods have, and its processes compute together.

use std::{path::Path, time::Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    machine::Machine,
    rendezvous::all_joined,
    words::{JOB, exit, has, pods, start_running},
};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

const WORKERS: usize = 2;

/// The program of the processes, in the image.
const PROGRAM: &str = "/workspace/train.py";

/// Lays what is in `$0` over this machine's programs, and makes a pair of keys, as the guide does.
const KEYS: &str =
    r#"mount -t overlay overlay -o lowerdir="$0/usr:/usr" /usr && ssh-keygen -q -t ed25519 -N '' -f "$1""#;

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        needed(),
        a_real_launcher_starts_processes_on_the_workers_of_its_job,
        a_real_launcher_waits_for_workers_that_take_their_time,
    );
}

fn needed() -> Result<()> {
    artifacts::openmpi()?;
    ensure!(Machine::is_possible()?, "this machine lets nobody but root run Pods");
    Ok(())
}

async fn a_real_launcher_starts_processes_on_the_workers_of_its_job(env: &mut TestEnv) -> Result<()> {
    processes_meet(env, json!([])).await
}

/// A Pod runs as soon as its container does: until `sshd` listens, a slow machine or the entry point of an image may need a while.
async fn a_real_launcher_waits_for_workers_that_take_their_time(env: &mut TestEnv) -> Result<()> {
    let late = ["sh", "-c", "sleep 15 && exec /usr/sbin/sshd -De -o StrictModes=no"];
    processes_meet(env, json!([{"name": "worker", "command": late}])).await
}

/// Runs a job with these roles, whose processes find each other.
async fn processes_meet(env: &mut TestEnv, roles: Value) -> Result<()> {
    let image = artifacts::openmpi()?;
    env.namespace.apply(keys(&image).await?).await?;
    let processes = WORKERS.to_string();
    let spec = json!({
        "framework": "mpi", "workers": WORKERS, "mpi": {"sshSecretName": "mpi-ssh"}, "roles": roles,
        "command": ["mpirun", "-np", processes, "/usr/bin/python3", PROGRAM],
        // Open MPI takes no loopback interface unless it is told to, and the Pods of this machine have no other one.
        "env": [{"name": "OMPI_MCA_btl_tcp_if_include", "value": "lo"}],
    });
    start_running(env, spec).await?;
    let pods: Vec<Value> = pods(env).await?.into_values().collect();
    ensure!(pods.len() == WORKERS + 1, "{} Pods", pods.len());
    let program =
        std::fs::read_to_string(artifacts::repository().join("tests/black_box/training_job/all_reduce_mpi.py"))?;
    let machine = Machine::new(image)?;
    machine.add(env, &pods, &[(PROGRAM, &program)]).await?;
    let (launcher, began) = (format!("{JOB}-launcher-0"), Instant::now());
    let ended = machine.run_until_end_of(&launcher).await?;
    eprintln!("{WORKERS} processes of Open MPI met and ended after {:?}", began.elapsed());
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    for number in 0..WORKERS {
        let place = format!("rank {number} is on {JOB}-worker-{number}");
        ensure!(said.contains(&place), "{place}? {said}{}", String::from_utf8_lossy(&ended.stderr));
    }
    all_joined(&[ended], WORKERS)?;
    exit(env, &launcher, 0).await?;
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    Ok(())
}

/// The Secret that the guide tells the user to make.
async fn keys(image: &Path) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", KEYS]).arg(image).arg(&file);
    ensure!(command.status().await?.success(), "no keys");
    let (private, public) = (std::fs::read_to_string(&file)?, std::fs::read_to_string(file.with_extension("pub"))?);
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mpi-ssh"}, "type": "kubernetes.io/ssh-auth",
        "stringData": {"ssh-privatekey": private, "ssh-publickey": public},
    }))
}
