//! An MPI job: its launcher comes when all workers run, knows them by a file and reaches them by the keys of its user; the job ends with
//! it, and the workers go.

use anyhow::{Result, ensure};
use serde_json::json;

use super::words::{JOB, environment, exit, has, job, only_pods, pods, runs};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_launcher_comes_last_and_takes_the_workers_with_it);
}

const LAUNCHER: &str = "mnist-launcher-0";

async fn a_launcher_comes_last_and_takes_the_workers_with_it(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let keys = json!({"ssh-privatekey": "a", "ssh-publickey": "b"});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ssh"}, "type": "kubernetes.io/ssh-auth", "stringData": keys,
    });
    env.namespace.apply(secret).await?;
    let spec =
        json!({"framework": "mpi", "nprocPerNode": 4, "mpi": {"sshSecretName": "ssh"}, "command": ["mpirun", "train"]});
    env.namespace.apply(job(spec)).await?;
    runs(env, JOB).await?;
    let made = pods(env).await?;
    let time = |pod: &str| made[pod]["metadata"]["creationTimestamp"].to_string();
    let workers = ["mnist-worker-0", "mnist-worker-1"];
    ensure!(made.keys().eq([LAUNCHER, workers[0], workers[1]].iter()), "{:?}", made.keys());
    ensure!(workers.iter().all(|worker| time(worker) <= time(LAUNCHER)), "the launcher came before its workers");
    let launcher = &made[LAUNCHER]["spec"];
    ensure!(launcher["containers"][0]["command"] == json!(["mpirun", "train"]), "{launcher}");
    ensure!(environment(&made[LAUNCHER])["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile", "{launcher}");
    let sshd = &made[workers[1]]["spec"]["containers"][0]["command"];
    ensure!(*sshd == json!(["/usr/sbin/sshd", "-De", "-o", "StrictModes=no"]), "{sshd}");
    let hosts = env.namespace.get("ConfigMap", "mnist-hostfile").await?.unwrap_or_default();
    let expected = "mnist-worker-0.mnist slots=4\nmnist-worker-1.mnist slots=4\n";
    ensure!(hosts["data"]["hostfile"] == expected, "{hosts}");

    // A launcher that fails starts anew with its workers, after them.
    exit(env, LAUNCHER, 1).await?;
    let anew = |pod: &serde_json::Value| pod["metadata"]["uid"] != made[LAUNCHER]["metadata"]["uid"];
    env.namespace.until("Pod", LAUNCHER, "to be made anew", anew).await?;
    let job = runs(env, JOB).await?;
    ensure!(job["status"]["restartCount"] == 1, "{}", job["status"]);
    exit(env, LAUNCHER, 0).await?;
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    only_pods(env, &[LAUNCHER]).await
}
