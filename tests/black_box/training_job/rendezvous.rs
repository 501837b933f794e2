//! Real PyTorch workers: processes with the environment of a job's Pods find each other and compute together.

use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use pilothouse_control_plane::free_port;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tokio::process::Command;

use super::words::{JOB, environment, exit, has, pods, start_running};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

const WORKERS: usize = 4;

/// The workers of an elastic job.
const ELASTIC_WORKERS: usize = 2;

/// Puts the file `$0` in the place of the names of hosts, and becomes the program `$@`.
const OWN_HOSTS: &str = r#"mount --bind "$0" /etc/hosts && exec "$@""#;

/// The time limit for the workers to find each other and to end.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn register(suite: &mut Suite) {
    heavy!(
        suite,
        real_workers_meet_by_the_environment_of_their_pods,
        real_workers_of_an_elastic_job_meet_where_the_first_one_is_the_host
    );
}

async fn real_workers_meet_by_the_environment_of_their_pods(env: &mut TestEnv) -> Result<()> {
    let Some(python) = artifacts::torch() else {
        eprintln!("skipped: there is no PyTorch in target/torch; scripts/torch.sh gets one");
        return Ok(());
    };
    start_running(env, json!({"workers": WORKERS, "port": free_port()?})).await?;
    let pods: Vec<Value> = pods(env).await?.into_values().collect();
    ensure!(pods.len() == WORKERS, "{} Pods", pods.len());
    let program = artifacts::repository().join("tests/black_box/training_job/all_reduce.py");
    let plain = vec![program.into_os_string().into_string().ok().context("a path that is no text")?];
    // The defaults of these two options, which concern the log, do not work with PyTorch 1.13 on Python 3.11.
    let torchrun = "-m torch.distributed.run --redirects 2 --tee 2".split(' ').map(str::to_owned);
    let torchrun = torchrun.chain(plain.clone()).collect();
    for (way, arguments) in [("ranks of their own", plain), ("torchrun", torchrun)] {
        let began = Instant::now();
        let workers = pods.iter().map(|pod| worker(&python, &arguments, pod, &pods));
        let ended = try_join_all(workers).await.with_context(|| format!("by {way}"))?;
        eprintln!("{WORKERS} PyTorch workers met by {way} and ended after {:?}", began.elapsed());
        all_joined(&ended, WORKERS).with_context(|| format!("by {way}"))?;
    }
    // The Pods end as the processes did, so the job succeeds.
    for number in 0..WORKERS {
        exit(env, &format!("{JOB}-worker-{number}"), 0).await?;
    }
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    Ok(())
}

/// Before PyTorch 2, torchrun does not know itself by the name that its Pod has in the cluster; so nobody would be the host, and all
/// would wait for one.
async fn real_workers_of_an_elastic_job_meet_where_the_first_one_is_the_host(env: &mut TestEnv) -> Result<()> {
    let Some(python) = artifacts::torch() else {
        eprintln!("skipped: there is no PyTorch in target/torch; scripts/torch.sh gets one");
        return Ok(());
    };
    let elastic = json!({"minWorkers": ELASTIC_WORKERS, "maxWorkers": ELASTIC_WORKERS});
    start_running(env, json!({"workers": ELASTIC_WORKERS, "elastic": elastic, "port": free_port()?})).await?;
    let pods: Vec<Value> = pods(env).await?.into_values().collect();
    let hosts = hosts(&pods)?;
    if !Command::new("unshare").args(["--map-root-user", "--mount", "true"]).status().await?.success() {
        eprintln!("skipped: this machine lets nobody have names of hosts of their own");
        return Ok(());
    }
    let program = artifacts::repository().join("tests/black_box/training_job/all_reduce.py");
    let workers = pods.iter().map(|pod| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", OWN_HOSTS]).arg(hosts.path()).arg(&python);
        command.args("-m torch.distributed.run --redirects 2 --tee 2".split(' ')).arg(&program);
        command.env_clear().envs(environment(pod));
        to_its_end(command)
    });
    let began = Instant::now();
    let ended = try_join_all(workers).await?;
    eprintln!("{ELASTIC_WORKERS} elastic PyTorch workers met by name and ended after {:?}", began.elapsed());
    all_joined(&ended, ELASTIC_WORKERS)
}

/// A file in which the names of Pods, and that of this machine, are names of the loopback interface.
fn hosts(pods: &[Value]) -> Result<tempfile::NamedTempFile> {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    let names: Vec<_> = pods.iter().map(address).chain([own.trim().to_owned(), "localhost".to_owned()]).collect();
    let mut file = tempfile::NamedTempFile::new()?;
    writeln!(file, "127.0.0.1 {}", names.join(" "))?;
    Ok(file)
}

/// Runs a worker to its end with the environment of its Pod.
pub async fn worker(python: &PathBuf, arguments: &[String], pod: &Value, pods: &[Value]) -> Result<Output> {
    let mut command = Command::new(python);
    command.args(arguments).env_clear().envs(mapped(environment(pod), pods));
    to_its_end(command).await
}

async fn to_its_end(mut command: Command) -> Result<Output> {
    // One thread for each worker, and only the loopback interface.
    command.env("OMP_NUM_THREADS", "1").env("GLOO_SOCKET_IFNAME", "lo").env("PATH", "/usr/bin:/bin");
    let scratch = tempfile::tempdir()?;
    command.env("TMPDIR", scratch.path());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await.context("a worker did not end")?;
    ended.context("it did not start")
}

/// The environment with the loopback address in place of the names of Pods, which only the DNS of a cluster resolves.
fn mapped<'a>(environment: BTreeMap<&'a str, &str>, pods: &[Value]) -> BTreeMap<&'a str, String> {
    let names: Vec<_> = pods.iter().map(address).collect();
    let local = |value: &str| names.iter().fold(value.to_owned(), |value, name| value.replace(name, "127.0.0.1"));
    environment.into_iter().map(|(name, value)| (name, local(value))).collect()
}

/// The name of a Pod in its cluster's DNS.
pub fn address(pod: &Value) -> String {
    let word = |field: &str| pod["spec"][field].as_str().unwrap_or_default().to_owned();
    format!("{}.{}", word("hostname"), word("subdomain"))
}

pub fn all_joined(ended: &[Output], workers: usize) -> Result<()> {
    let mut said = Vec::new();
    for Output { status, stdout, stderr } in ended {
        let (out, err) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
        ensure!(status.success(), "a worker ended with {status}: {err}");
        said.extend(out.lines().filter(|line| line.contains(" sums up to ")).map(str::to_owned));
    }
    said.sort();
    // Every rank brings another power of two.
    let sum = (1 << workers) - 1;
    let expected: Vec<_> = (0..workers).map(|rank| format!("rank {rank} of {workers} sums up to {sum}")).collect();
    ensure!(said == expected, "the workers said {said:?}");
    Ok(())
}
