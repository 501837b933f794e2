//! Real PyTorch workers: processes with the environment of a job's Pods find each other and compute together.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use pilothouse_control_plane::free_port;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::words::{JOB, environment, exit, has, pods, start_running, text};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

const WORKERS: usize = 4;

/// The workers of an elastic job.
const ELASTIC_WORKERS: usize = 2;

/// The command behind a Python that becomes torchrun. The defaults of these two options, which concern the log, do not work with PyTorch
/// 1.13 on Python 3.11.
pub const TORCHRUN: &str = "-m torch.distributed.run --redirects 2 --tee 2";

/// Puts the file `$0` in the place of the names of hosts, takes the name `$1`, and becomes the program behind that.
const OWN_NAME: &str = r#"mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@""#;

/// Options of torchrun by which workers soon give up that find no host.
const IMPATIENT: &str = "timeout=3,read_timeout=3,join_timeout=3";

/// The time limit for the workers to find each other and to end.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        artifacts::torch(),
        real_workers_meet_by_the_environment_of_their_pods,
        real_workers_of_an_elastic_job_meet_where_the_first_one_is_the_host,
    );
    heavy_with!(suite, artifacts::torch_1_12(), real_workers_of_pytorch_1_12_meet_where_the_first_one_is_the_host);
}

async fn real_workers_meet_by_the_environment_of_their_pods(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::torch()?;
    start_running(env, json!({"workers": WORKERS, "port": free_port()?})).await?;
    let pods: Vec<Value> = pods(env).await?.into_values().collect();
    ensure!(pods.len() == WORKERS, "{} Pods", pods.len());
    let program = artifacts::repository().join("tests/black_box/training_job/all_reduce.py");
    let plain = vec![program.into_os_string().into_string().ok().context("a path that is no text")?];
    let torchrun = TORCHRUN.split(' ').map(str::to_owned).chain(plain.clone()).collect();
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

async fn real_workers_of_an_elastic_job_meet_where_the_first_one_is_the_host(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::torch()?;
    Workers::of_elastic_job(env).await?.meet(&python).await
}

/// Before PyTorch 2, torchrun does not know itself by the name that its Pod has in the cluster; so nobody would be the host, and all would
/// wait for one.
async fn real_workers_of_pytorch_1_12_meet_where_the_first_one_is_the_host(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::torch_1_12()?;
    let workers = Workers::of_elastic_job(env).await?;
    workers.meet(&python).await?;
    let ended = workers.run(&python, Some(IMPATIENT)).await?;
    for Output { status, stderr, .. } in &ended {
        let told = String::from_utf8_lossy(stderr);
        ensure!(!status.success() && told.contains("RendezvousConnectionError"), "they met without being told: {told}");
    }
    Ok(())
}

/// The workers of an elastic job, to be run as processes of this machine that have the names and addresses of their Pods.
struct Workers {
    pods: Vec<Value>,
    /// What is in the place of `/etc/hosts`, for each of them.
    hosts: Vec<NamedTempFile>,
}

impl Workers {
    async fn of_elastic_job(env: &mut TestEnv) -> Result<Self> {
        let elastic = json!({"minWorkers": ELASTIC_WORKERS, "maxWorkers": ELASTIC_WORKERS});
        start_running(env, json!({"workers": ELASTIC_WORKERS, "elastic": elastic, "port": free_port()?})).await?;
        let pods: Vec<Value> = pods(env).await?.into_values().collect();
        let hosts = (0..pods.len()).map(|own| hosts(&pods, own)).collect::<Result<_>>()?;
        Ok(Self { pods, hosts })
    }

    async fn meet(&self, python: &Path) -> Result<()> {
        let began = Instant::now();
        let ended = self.run(python, None).await?;
        eprintln!("{ELASTIC_WORKERS} elastic PyTorch workers met by name and ended after {:?}", began.elapsed());
        all_joined(&ended, ELASTIC_WORKERS)
    }

    /// Runs all of them to their end, with these options of the rendezvous in the place of the job's.
    async fn run(&self, python: &Path, options: Option<&str>) -> Result<Vec<Output>> {
        let program = artifacts::repository().join("tests/black_box/training_job/all_reduce.py");
        let workers = self.pods.iter().zip(&self.hosts).map(|(pod, hosts)| {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "--uts", "sh", "-c", OWN_NAME]).arg(hosts.path());
            command.arg(pod["spec"]["hostname"].as_str().unwrap_or_default());
            command.arg(python).args(TORCHRUN.split(' ')).arg(&program);
            command.env_clear().envs(environment(pod));
            if let Some(options) = options {
                command.env("PET_RDZV_CONF", options);
            }
            to_its_end(command)
        });
        try_join_all(workers).await
    }
}

/// The names that a Pod knows: its own ones as the kubelet writes them, and those that the cluster's DNS tells.
fn hosts(pods: &[Value], own: usize) -> Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    writeln!(file, "127.0.0.1 localhost")?;
    let full = |pod: &Value| {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        format!("{}.{namespace}.svc.cluster.local", address(pod))
    };
    writeln!(file, "{} {} {}", ip(own), full(&pods[own]), text(&pods[own]["spec"]["hostname"])?)?;
    for (number, pod) in pods.iter().enumerate() {
        writeln!(file, "{} {} {}", ip(number), full(pod), address(pod))?;
    }
    Ok(file)
}

/// The address of a Pod, by its place among all.
pub fn ip(number: usize) -> String {
    format!("127.0.0.{}", number + 2)
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
