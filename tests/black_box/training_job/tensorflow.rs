//! Real TensorFlow replicas: processes with the environment of a job's Pods find each other and compute together.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use pilothouse_control_plane::free_ports;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::words::{environment, pods, start_running, text};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

/// The time limit for the replicas to find each other and to end.
const PATIENCE: Duration = Duration::from_secs(180);

/// The port in the addresses of the replicas.
const PORT: &str = ":2222";

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        artifacts::tensorflow(),
        real_workers_train_together_by_the_environment_of_their_pods,
        a_real_chief_hands_out_work_to_workers_with_a_parameter_server,
    );
}

async fn real_workers_train_together_by_the_environment_of_their_pods(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::tensorflow()?;
    start_running(env, json!({"framework": "tensorflow", "workers": 2})).await?;
    let replicas = Replicas::of(env, python, "multi_worker.py").await?;
    let began = Instant::now();
    let workers = replicas.names().map(|name| replicas.start(name)).collect::<Result<Vec<_>>>()?;
    let ended = try_join_all(workers.into_iter().map(end)).await?;
    eprintln!("{} TensorFlow workers trained together and ended after {:?}", ended.len(), began.elapsed());
    let mut said: Vec<_> = ended.iter().flat_map(|output| lines(output, "rank ")).collect();
    said.sort();
    ensure!(said == ["rank 0 of 2 sums up to 3", "rank 1 of 2 sums up to 3"], "{said:?}: {ended:?}");
    Ok(())
}

/// Workers and parameter servers never end by themselves: the job has succeeded when the chief has.
async fn a_real_chief_hands_out_work_to_workers_with_a_parameter_server(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::tensorflow()?;
    let roles = json!([{"name": "chief"}]);
    start_running(env, json!({"framework": "tensorflow", "workers": 2, "parameterServers": 1, "roles": roles})).await?;
    let replicas = Replicas::of(env, python, "parameter_server.py").await?;
    let began = Instant::now();
    let (chief, servers): (Vec<_>, Vec<_>) = replicas.names().partition(|name| name.ends_with("chief-0"));
    ensure!((chief.len(), servers.len()) == (1, 3), "{chief:?} and {servers:?}");
    // They are killed when the test ends.
    let _servers = servers.into_iter().map(|name| replicas.start(name)).collect::<Result<Vec<_>>>()?;
    let ended = end(replicas.start(chief[0])?).await?;
    eprintln!("a TensorFlow chief with a parameter server ended after {:?}", began.elapsed());
    ensure!(lines(&ended, "the workers") == ["the workers have added up 8"], "{ended:?}");
    Ok(())
}

/// The replicas of a job, to be run as processes of this machine.
struct Replicas {
    python: PathBuf,
    program: PathBuf,
    pods: BTreeMap<String, Value>,
    /// A port of this machine for each of them, for they all have the same one in the cluster.
    ports: BTreeMap<String, u16>,
}

impl Replicas {
    async fn of(env: &TestEnv, python: PathBuf, program: &str) -> Result<Self> {
        let pods = pods(env).await?;
        let program = artifacts::repository().join("tests/black_box/training_job").join(program);
        let ports = pods.keys().cloned().zip(free_ports(pods.len())?).collect();
        Ok(Self { python, program, pods, ports })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str)
    }

    /// Starts a replica with the environment of its Pod.
    fn start(&self, name: &str) -> Result<Child> {
        let mut environment = environment(&self.pods[name]);
        let config = self.on_this_machine(environment.get("TF_CONFIG").copied().context("no TF_CONFIG")?)?;
        environment.insert("TF_CONFIG", &config);
        let mut command = Command::new(&self.python);
        command.arg(&self.program).env_clear().envs(environment).env("PATH", "/usr/bin:/bin");
        command.env("CUDA_VISIBLE_DEVICES", "").env("TF_CPP_MIN_LOG_LEVEL", "2");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().context("it did not start")
    }

    /// `TF_CONFIG` with addresses of this machine in the place of the names of Pods.
    fn on_this_machine(&self, config: &str) -> Result<String> {
        let mut config: Value = serde_json::from_str(config)?;
        let cluster = config["cluster"].as_object_mut().context("no cluster")?;
        for address in cluster.values_mut().flat_map(|addresses| addresses.as_array_mut()).flatten() {
            let full = text(address)?;
            let pod = full.split('.').next().filter(|_| full.ends_with(PORT)).context("no name of a Pod")?;
            *address = json!(format!("127.0.0.1:{}", self.ports.get(pod).with_context(|| full.clone())?));
        }
        Ok(config.to_string())
    }
}

async fn end(process: Child) -> Result<Output> {
    let ended = tokio::time::timeout(PATIENCE, process.wait_with_output()).await.context("it did not end")??;
    ensure!(ended.status.success(), "it ended with {}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
    Ok(ended)
}

/// The lines that a process wrote and that begin so.
fn lines(output: &Output, begin: &str) -> Vec<String> {
    let out = String::from_utf8_lossy(&output.stdout);
    out.lines().filter(|line| line.starts_with(begin)).map(str::to_owned).collect()
}
