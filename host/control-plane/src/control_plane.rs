//! A control plane that lives as long as its owner: started for a test, stopped with it. Nothing of it survives the
//! owner, however that ends; for one that does, see the `control-plane` program.

use crate::layout::Layout;
use crate::running::Running;
use crate::signal::{Signal, send, stopped};
use crate::state::State;
use crate::{ADMIN, Assets, Options, Part, kubeconfig, leftovers, probe};
use anyhow::{Context, Result, bail};
use kube::Client;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use tokio::sync::Mutex;

/// A running control plane. All methods take `&self`, so tests may share one; dropping it kills all its processes.
pub struct ControlPlane {
    running: Mutex<Running>,
    layout: Layout,
    tokens: BTreeMap<String, String>,
    url: String,
    etcd_url: String,
    ca_pem: String,
    /// Held for as long as the processes run.
    _lock: File,
}

impl ControlPlane {
    /// Starts a fresh control plane (no objects from an earlier run) and waits until it works: the API server is
    /// ready, the default namespace can take Pods (`Parts::Controllers`), the node is ready (`Parts::Full`).
    /// Processes that a crashed run left in the directory are ended first.
    pub async fn start(assets: Assets, options: Options) -> Result<Self> {
        let layout = Layout::create(&options.dir)?;
        let lock = layout.lock()?;
        clear_earlier(&layout, &options).await?;
        let running = Running::start(&layout, &assets, &options, None, false).await?;
        Ok(ControlPlane {
            url: format!("https://127.0.0.1:{}", running.ports.api_server),
            etcd_url: format!("http://127.0.0.1:{}", running.ports.etcd),
            ca_pem: fs::read_to_string(layout.pki("ca.crt"))?,
            tokens: running.tokens.clone(),
            running: Mutex::new(running),
            layout,
            _lock: lock,
        })
    }

    /// The administrator's kubeconfig file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.layout.kubeconfig(ADMIN)
    }

    /// The kubeconfig file of `user`: [`ADMIN`], [`RESTRICTED`](crate::RESTRICTED) or one of `Options::users`.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf> {
        self.token_of(user)?;
        Ok(self.layout.kubeconfig(user))
    }

    /// The API server's address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of etcd, in which the API server keeps its objects.
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &str {
        self.tokens.get(ADMIN).map_or("", String::as_str)
    }

    /// The bearer token of `user`.
    pub fn token_of(&self, user: &str) -> Result<&str> {
        self.tokens.get(user).map(String::as_str).with_context(|| format!("no user {user:?} in this control plane"))
    }

    /// The certificate of the authority that signed the API server's.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A new client as the administrator. It belongs to the tokio runtime in which it is made.
    pub async fn client(&self) -> Result<Client> {
        self.client_for(ADMIN).await
    }

    /// A new client as `user`.
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig_for(user)?).await
    }

    /// The API server's metrics, in Prometheus' text format.
    pub async fn metrics(&self) -> Result<String> {
        probe::get(&self.client().await?, "/metrics").await
    }

    /// The audit log, one JSON object per line, two lines per write request, if `Options::audit_log` asked for it.
    pub fn audit_log_path(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// The log of one part.
    pub fn log_path(&self, part: Part) -> PathBuf {
        self.layout.log(part)
    }

    /// The process id of one part; an error when it does not run.
    pub async fn pid(&self, part: Part) -> Result<u32> {
        self.running.lock().await.pid(part)
    }

    /// Ends one part in good order.
    pub async fn stop_part(&self, part: Part) -> Result<()> {
        self.running.lock().await.stop_part(part).await
    }

    /// Ends one part as a crash would.
    pub async fn kill_part(&self, part: Part) -> Result<()> {
        self.running.lock().await.kill_part(part)
    }

    /// Starts a part that was ended, on the same port and with the same data, and waits until it is ready.
    pub async fn start_part(&self, part: Part) -> Result<()> {
        self.running.lock().await.start_part(part).await
    }

    /// Freezes one part: its connections stay open and nothing answers. Returns once all of it stands still.
    pub async fn pause(&self, part: Part) -> Result<()> {
        let pid = self.pid(part).await?;
        send(pid, Signal::Stop)?;
        stopped(pid).await
    }

    /// Lets a frozen part go on.
    pub async fn resume(&self, part: Part) -> Result<()> {
        send(self.pid(part).await?, Signal::Continue)
    }

    /// Ends all parts in good order. The directory stays, with its logs.
    pub async fn stop(self) -> Result<()> {
        self.running.into_inner().stop().await
    }
}

/// Objects and processes of an earlier run go; a detached control plane is somebody's and stays.
async fn clear_earlier(layout: &Layout, options: &Options) -> Result<()> {
    if let Some(state) = State::load(layout)? {
        let lives = state.pids.iter().any(|(&part, &pid)| leftovers::runs(layout, part, pid));
        if state.detached && lives {
            let dir = layout.root().display();
            bail!("a detached control plane runs in {dir}; end it with `control-plane down --dir {dir}`");
        }
        leftovers::stop(layout, &state, &options.report).await?;
    }
    layout.remove_etcd_data()
}
