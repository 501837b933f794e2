//! A node that really runs servers: for each Pod of the namespace that waits for one, it starts a process from what the Pod says (arguments,
//! variables, port), asks it by the Pod's probes, and reports the Pod as ready when they succeed. A Pod that is being deleted stays until its
//! process has ended; one that is gone takes it along. Pods wait for this node by the annotation `PENDING`, which keeps the simulated one
//! away, and are ended by this one alone where they also have `LOST`.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
};
use pilothouse_tests::http::ask;
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    task::AbortHandle,
};

use super::ending::{Ended, Ending};
use crate::test_env::TestEnv;

/// The program behind the image of vLLM.
const ENTRY_POINT: &str = env!("CARGO_BIN_EXE_model-server");

/// How long the model takes to load, and a word of an answer, in milliseconds.
const LOAD_MS: &str = "300";
const TOKEN_MS: &str = "40";

/// The pause between two looks at the Pods.
const LOOK: Duration = Duration::from_millis(100);

/// The node. Its processes end when it is dropped.
pub struct Node {
    servers: Servers,
    ended: EndedServers,
    work: AbortHandle,
}

/// The processes by the UIDs of their Pods.
type Servers = Arc<Mutex<BTreeMap<String, Server>>>;

/// How the processes of deleted Pods have ended, by the UIDs of their Pods.
type EndedServers = Arc<Mutex<BTreeMap<String, Ended>>>;

struct Server {
    address: SocketAddr,
    is_ready: bool,
    process: Child,
    ending: Option<Ending>,
}

impl Node {
    /// Begins to work.
    pub fn start(env: &TestEnv) -> Result<Self> {
        let (pods, servers, ended) = (env.namespace.api("Pod")?, Servers::default(), EndedServers::default());
        let (kept, kept_ended) = (servers.clone(), ended.clone());
        let work = tokio::spawn(async move {
            loop {
                // What fails is tried again at the next look, as a kubelet does.
                if let Err(error) = look(&pods, &kept, &kept_ended).await {
                    eprintln!("the node: {error:#}");
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        Ok(Self { servers, ended, work: work.abort_handle() })
    }

    /// Where the servers listen whose Pods are ready, as the endpoints of a Service say it: those that go are none.
    pub fn ready(&self) -> Vec<SocketAddr> {
        let servers = lock(&self.servers);
        let ready = servers.values().filter(|server| server.is_ready && server.ending.is_none());
        ready.map(|server| server.address).collect()
    }

    /// How the process of a deleted Pod has ended; none if it has not.
    pub fn ended(&self, uid: &str) -> Option<Ended> {
        lock(&self.ended).get(uid).copied()
    }

    /// How many processes run.
    pub fn processes(&self) -> usize {
        lock(&self.servers).len()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.work.abort();
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn look(pods: &Api<DynamicObject>, servers: &Servers, ended: &EndedServers) -> Result<()> {
    let listed: Vec<Value> =
        pods.list(&Default::default()).await?.items.into_iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    lock(servers).retain(|known, _| listed.iter().any(|pod| uid(pod) == *known));
    let (going, staying): (Vec<_>, Vec<_>) =
        listed.iter().partition(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    for pod in going {
        if let Some(how) = end(servers, &uid(pod), pod)? {
            lock(ended).insert(uid(pod), how);
            remove(pods, pod).await?;
        }
    }
    for pod in staying {
        let state = lock(servers).get(&uid(pod)).map(|server| (server.address, server.is_ready));
        match state {
            None if pod["spec"]["nodeName"].is_string() => {
                let number = lock(servers).len();
                let server = start(pod, free_address(&listed, number))?;
                lock(servers).insert(uid(pod), server);
            }
            Some((address, false)) if is_well(pod, address).await => {
                report_ready(pods, pod, address.ip()).await?;
                lock(servers).entry(uid(pod)).and_modify(|server| server.is_ready = true);
            }
            _ => {}
        }
        fail_if_ended(servers, &uid(pod))?;
    }
    Ok(())
}

/// Goes on with the end of a Pod's process, and returns how it has ended, once it has.
fn end(servers: &Servers, uid: &str, pod: &Value) -> Result<Option<Ended>> {
    let mut servers = lock(servers);
    let Some(server) = servers.get_mut(uid) else { return Ok(None) };
    if server.ending.is_none() {
        server.ending = Some(Ending::begin(pod)?);
    }
    server.ending.as_mut().map_or(Ok(None), |ending| ending.go_on(&mut server.process))
}

/// Removes a Pod whose process has ended, unless it is gone.
async fn remove(pods: &Api<DynamicObject>, pod: &Value) -> Result<()> {
    let text = |field: &str| pod["metadata"][field].as_str().map(str::to_owned);
    let preconditions = Preconditions { uid: text("uid"), resource_version: None };
    let parameters =
        DeleteParams { grace_period_seconds: Some(0), preconditions: Some(preconditions), ..Default::default() };
    match pods.delete(&text("name").context("a Pod without a name")?, &parameters).await {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        removed => removed.map(drop).map_err(Into::into),
    }
}

/// A loopback address that no Pod has.
fn free_address(pods: &[Value], number: usize) -> IpAddr {
    let taken: Vec<_> = pods.iter().filter_map(|pod| pod["status"]["podIP"].as_str()).collect();
    let candidate = |number: usize| {
        let [.., high, low] = number.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(127, 17, high, low))
    };
    let mut number = number + 2;
    while taken.contains(&candidate(number).to_string().as_str()) {
        number += 1;
    }
    candidate(number)
}

/// Fails if the process of a Pod has ended by itself.
fn fail_if_ended(servers: &Servers, uid: &str) -> Result<()> {
    if let Some(server) = lock(servers).get_mut(uid)
        && server.ending.is_none()
        && let Some(status) = server.process.try_wait()?
    {
        bail!("a server has ended with {status}");
    }
    Ok(())
}

fn container(pod: &Value) -> &Value {
    &pod["spec"]["containers"][0]
}

/// Starts the process of a Pod, in which only the address of the Pod differs from what a node does.
fn start(pod: &Value, address: IpAddr) -> Result<Server> {
    let container = container(pod);
    let variables: Vec<(&str, &str)> = list(container, "env")
        .filter_map(|variable| Some((variable["name"].as_str()?, variable["value"].as_str()?)))
        .collect();
    let words = list(container, "command").chain(list(container, "args"));
    let mut words = words.filter_map(Value::as_str).map(|word| expanded(word, &variables));
    let program = if container["command"].is_array() { words.next() } else { Some(ENTRY_POINT.to_owned()) };
    let mut command = Command::new(program.context("a command without a program")?);
    command.args(words).env_clear().envs(variables);
    command.env("NODE_POD_ADDRESS", address.to_string()).env("NODE_LOAD_MS", LOAD_MS).env("NODE_TOKEN_MS", TOKEN_MS);
    let process = command.stdin(Stdio::null()).kill_on_drop(true).spawn().context("a server does not start")?;
    Ok(Server { address: SocketAddr::new(address, port(container)?), is_ready: false, process, ending: None })
}

/// A word with the values of variables, as the kubelet expands it.
fn expanded(word: &str, variables: &[(&str, &str)]) -> String {
    let filled =
        variables.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("$({name})"), value));
    filled.replace("$$", "$")
}

fn list<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    object[field].as_array().into_iter().flatten()
}

fn port(container: &Value) -> Result<u16> {
    let port = list(container, "ports").find(|port| port["name"] == "http").context("no port of the name http")?;
    Ok(u16::try_from(port["containerPort"].as_u64().context("a port without a number")?)?)
}

/// Whether the startup probe and the readiness probe succeed.
async fn is_well(pod: &Value, address: SocketAddr) -> bool {
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let probe = &container(pod)[probe];
        let (get, limit) = (&probe["httpGet"], Duration::from_secs(probe["timeoutSeconds"].as_u64().unwrap_or(1)));
        let head = format!("GET {} HTTP/1.1\r\n", get["path"].as_str().unwrap_or("/"));
        let answer = tokio::time::timeout(limit, ask(&address, &head, "")).await;
        let is_good = get["port"] == "http" && matches!(answer, Ok(Ok(answer)) if answer.status == 200);
        if !is_good {
            return false;
        }
    }
    true
}

async fn report_ready(pods: &Api<DynamicObject>, pod: &Value, address: IpAddr) -> Result<()> {
    let name = pod["metadata"]["name"].as_str().context("a Pod without a name")?;
    let now = jiff::Timestamp::now().to_string();
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let conditions = conditions.map(|name| json!({"type": name, "status": "True", "lastTransitionTime": now}));
    let container = json!({
        "name": container(pod)["name"], "image": container(pod)["image"], "imageID": "", "ready": true, "started": true,
        "restartCount": 0, "state": {"running": {"startedAt": now}},
    });
    let status = json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": now, "conditions": conditions,
        "containerStatuses": [container],
    }});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
