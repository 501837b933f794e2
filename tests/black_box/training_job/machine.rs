//! Runs Pods as processes of this machine, with mounts, a host name and addresses of their own, and what the kubelet would mount. Needs
//! root; `machine.sh` and `container.sh` do the work.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_tests::artifacts;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    rendezvous::{address, ip},
    words::{environment, text},
};
use crate::test_env::TestEnv;

/// The time limit for Pods to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// The Pods of a job, laid out for the scripts.
pub struct Machine {
    image: PathBuf,
    folder: TempDir,
}

impl Machine {
    /// Whether this machine lets a test have namespaces of mounts, networks, processes and host names.
    ///
    /// # Errors
    /// If there is no `unshare`.
    pub fn is_possible() -> Result<bool> {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "--net", "--uts", "--pid", "--fork", "true"]).stderr(Stdio::null());
        Ok(command.status()?.success())
    }

    /// A machine that has what is in `image` besides its own programs.
    pub fn new(image: PathBuf) -> Result<Self> {
        Ok(Self { image, folder: tempfile::tempdir()? })
    }

    /// Lays out Pods. Their images have these files.
    pub async fn add(&self, env: &TestEnv, pods: &[Value], files: &[(&str, &str)]) -> Result<()> {
        let hosts: Vec<_> =
            pods.iter().enumerate().map(|(number, pod)| format!("{} {}", ip(number), names(pod))).collect();
        for (number, pod) in pods.iter().enumerate() {
            let folder = self.folder.path().join(text(&pod["metadata"]["name"])?);
            write(&folder.join("name"), &text(&pod["spec"]["hostname"])?)?;
            write(&folder.join("layer/etc/hosts"), &format!("127.0.0.1 localhost\n{}\n", hosts.join("\n")))?;
            // Each Pod has an address of its own, and serves at no other one.
            write(&folder.join("layer/etc/ssh/sshd_config"), &format!("ListenAddress {}\nUsePAM no\n", ip(number)))?;
            for (path, content) in files {
                write(&folder.join("layer").join(path.trim_start_matches('/')), content)?;
            }
            write(&folder.join("command"), &command(pod))?;
            write(&folder.join("volumes"), &volumes(env, pod, &folder).await?)?;
        }
        Ok(())
    }

    /// Runs the Pods until the one of this name ends.
    pub async fn run_until_end_of(&self, pod: &str) -> Result<Output> {
        let scripts = artifacts::repository().join("tests/black_box/training_job");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]).arg(scripts.join("machine.sh"));
        command.arg(&self.image).arg(self.folder.path()).arg(scripts.join("container.sh")).arg(pod).kill_on_drop(true);
        tokio::time::timeout(PATIENCE, command.output())
            .await
            .with_context(|| format!("{pod} did not end"))?
            .context("no start")
    }
}

/// The names of a Pod in its cluster's DNS.
fn names(pod: &Value) -> String {
    format!("{} {}", address(pod), pod["spec"]["hostname"].as_str().unwrap_or_default())
}

/// The variables and the command of a Pod's container, with a zero byte behind each.
fn command(pod: &Value) -> String {
    let image = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"].map(str::to_owned);
    let variables = environment(pod).into_iter().map(|(name, value)| format!("{name}={value}"));
    let command = pod["spec"]["containers"][0]["command"].as_array().into_iter().flatten();
    let command = command.filter_map(Value::as_str).map(str::to_owned);
    image.into_iter().chain(variables).chain(command).map(|word| word + "\0").collect()
}

/// Lays out the ConfigMaps and Secrets that a Pod mounts, as the kubelet does, and says where they are mounted.
async fn volumes(env: &TestEnv, pod: &Value, folder: &Path) -> Result<String> {
    let mut lines = String::new();
    for mount in pod["spec"]["containers"][0]["volumeMounts"].as_array().into_iter().flatten() {
        let (name, path) = (text(&mount["name"])?, text(&mount["mountPath"])?);
        let volumes = pod["spec"]["volumes"].as_array();
        let volume =
            volumes.into_iter().flatten().find(|volume| volume["name"] == name.as_str()).context("no volume")?;
        let (kind, source, named) = match (volume.get("secret"), volume.get("configMap")) {
            (Some(secret), _) => ("Secret", secret, &secret["secretName"]),
            (_, Some(config_map)) => ("ConfigMap", config_map, &config_map["name"]),
            _ => continue,
        };
        let object = env.namespace.get(kind, &text(named)?).await?.with_context(|| format!("no {kind} {named}"))?;
        lay_out(&folder.join(&name), source, &object)?;
        fs::create_dir_all(folder.join("layer").join(path.trim_start_matches('/')))?;
        lines += &format!("{name} {path}\n");
    }
    Ok(lines)
}

/// A folder as the kubelet makes it: everybody can write to it, and the files are links into another folder.
fn lay_out(folder: &Path, source: &Value, object: &Value) -> Result<()> {
    let files = folder.join("..data");
    fs::create_dir_all(&files)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))?;
    let mode = u32::try_from(source["defaultMode"].as_u64().unwrap_or(0o644))?;
    let data = object["data"].as_object().context("no data")?;
    let all = || data.keys().map(|key| (key.clone(), key.clone())).collect();
    let items: Vec<_> = source["items"].as_array().map_or_else(all, |items| {
        let pair = |item: &Value| Some((item["key"].as_str()?.to_owned(), item["path"].as_str()?.to_owned()));
        items.iter().filter_map(pair).collect()
    });
    for (key, path) in items {
        let value = data.get(&key).and_then(Value::as_str).with_context(|| format!("no key {key}"))?;
        let content = if object["kind"] == "Secret" { BASE64_STANDARD.decode(value)? } else { value.into() };
        fs::write(files.join(&path), content)?;
        fs::set_permissions(files.join(&path), fs::Permissions::from_mode(mode))?;
        symlink(format!("..data/{path}"), folder.join(&path))?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, content).with_context(|| format!("failed to write '{}'", path.display()))
}
