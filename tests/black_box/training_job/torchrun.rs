//! The real torchrun, whose process is killed: it ends with 1 itself, so rules and policies by exit code cannot tell. The guide says what
//! to do instead.

use std::{os::unix::process::ExitStatusExt, process::Output};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition, nodes::set_pod_status};
use serde_json::{Value, json};

use super::{
    rendezvous::{TORCHRUN, worker},
    words::{has, named, runs},
};
use crate::{
    suite::{Suite, heavy_with},
    test_env::TestEnv,
};

/// The most bytes and lines of a log that a kubelet takes for the message of a container that failed.
const MESSAGE: (usize, usize) = (2048, 80);

pub fn register(suite: &mut Suite) {
    heavy_with!(suite, artifacts::torch(), a_killed_process_of_a_real_torchrun_is_an_exit_code_of_1);
}

async fn a_killed_process_of_a_real_torchrun_is_an_exit_code_of_1(env: &mut TestEnv) -> Result<()> {
    let python = artifacts::torch()?;
    env.start(&["training-job"]).await?;
    let program = artifacts::repository().join("tests/black_box/training_job/killed.py");
    let plain = vec![program.into_os_string().into_string().ok().context("a path that is no text")?];
    let torchrun: Vec<_> = TORCHRUN.split(' ').map(str::to_owned).chain(plain.clone()).collect();
    for (name, policy, arguments, code, is_final) in [
        ("hidden", "ExitCode", &torchrun, 1, true),
        ("retried", "OnFailure", &torchrun, 1, false),
        ("without", "ExitCode", &plain, 137, false),
    ] {
        env.namespace.apply(named(name, json!({"workers": 1, "runPolicy": {"restartPolicy": policy}}))).await?;
        runs(env, name).await?;
        let pod_name = format!("{name}-worker-0");
        let pod = env.namespace.get("Pod", &pod_name).await?.context("no Pod")?;
        let ended = worker(&python, arguments, &pod, std::slice::from_ref(&pod)).await?;
        ensure!(exit_code(&ended) == Some(code), "{name}: {ended:?}");
        let container = json!({
            "name": "pytorch", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": "Error", "message": message(&ended)}},
        });
        set_pod_status(&env.namespace, &pod_name, json!({"phase": "Failed", "containerStatuses": [container]})).await?;
        if !is_final {
            let restarted = |job: &Value| job["status"]["restartCount"] == 1;
            env.namespace.until("TrainingJob", name, "to be restarted", restarted).await?;
            let job = runs(env, name).await?;
            ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
            continue;
        }
        let job = has(env, name, "Failed", "TrainingJobFailed").await?;
        let worker = &job["status"]["workerStatuses"][0];
        let told = worker["message"].as_str().unwrap_or_default();
        ensure!(worker["exitCode"] == 1 && told.contains("exitcode  : -9") && told.contains("SIGKILL"), "{worker}");
    }
    Ok(())
}

/// The exit code of a container whose process ended so.
fn exit_code(ended: &Output) -> Option<i32> {
    ended.status.code().or_else(|| ended.status.signal().map(|signal| 128 + signal))
}

/// What the kubelet keeps of the log, for Pods that write no message themselves.
fn message(ended: &Output) -> String {
    let log = [&*ended.stdout, &*ended.stderr].concat();
    let log = String::from_utf8_lossy(&log);
    let (bytes, lines) = MESSAGE;
    let tail = &log[log.ceil_char_boundary(log.len().saturating_sub(bytes))..];
    let all: Vec<_> = tail.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
