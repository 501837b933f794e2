//! One host process: the host's own code, started on an endpoint of the network with a clock and random numbers of its own. Ends with
//! the machine it runs on, or in the regular way.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::SignedDuration;
use pilothouse_controller::{
    client::{self, Limits, REQUEST_TIMEOUT, fence::Fence},
    clock::Random,
    host::{Host, HostConfig, RightsCheck},
    leader::{Dependencies, Election, Posts, Settings, Sharing},
    metrics::Metrics,
    plugin::PluginSettings,
    schema::SchemaCache,
};
use pilothouse_engine::contract::Response;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use crate::{
    history::step::Hosts,
    host_id::HostId,
    network::{Connection, Endpoint, Network},
    paths::{LEASE, OWN_NAMESPACE},
    plugin::{
        app::{self, AppPlugin},
        manifest::PLUGIN,
        scope::Scope,
        simulated::{Code, Listener, SimulatedPlugin},
        version::Version,
    },
    properties::writes::Writes,
    time::Time,
};

/// What a host needs of its surroundings.
#[derive(Clone)]
pub struct Surroundings {
    /// The network.
    pub network: Arc<Network>,
    /// The time.
    pub time: Time,
    /// Judges what the hosts write.
    pub writes: Arc<Writes>,
    /// Gets the identity of each host that ended by itself.
    pub ended: mpsc::UnboundedSender<HostId>,
    /// The seed of the history.
    pub seed: u64,
    /// Whether there is an election.
    pub hosts: Hosts,
    /// By how many seconds the clock of each host is ahead.
    pub ahead: [i32; 2],
    /// Where the objects live.
    pub scope: Scope,
    /// How the plugin runs.
    pub code: Code,
    /// How long the plugin takes to answer.
    pub computes: Duration,
    /// The schemas that the hosts of all histories share.
    pub schemas: SchemaCache,
    /// Whether hosts ask for their rights.
    pub rights_check: RightsCheck,
}

/// A host that runs.
pub struct HostProcess {
    /// Its connection.
    pub connection: Connection,
    host: Arc<Host>,
    scope: Scope,
    code: Code,
    computes: Duration,
    listener: Arc<dyn Listener>,
    tasks: Vec<AbortHandle>,
    stop: Option<oneshot::Sender<()>>,
}

struct HostListener {
    id: HostId,
    writes: Arc<Writes>,
}

impl Listener for HostListener {
    fn answered(&self, object: &Value, children: &[Value], response: &Response) {
        self.writes.answered(self.id, (object, children), response);
    }
}

impl HostProcess {
    /// Starts a host.
    pub fn start(surroundings: &Surroundings, id: HostId) -> Self {
        let connection = Connection::new(id);
        let endpoint = Endpoint::new(surroundings.network.clone(), connection.clone());
        let random = Random::seeded(surroundings.seed ^ ((id.host as u64) << 32) ^ u64::from(id.start));
        let ahead = surroundings.ahead.get(id.host).copied().unwrap_or_default();
        let clock = surroundings.time.clock(SignedDuration::from_secs(ahead.into()));
        let metrics = Metrics::new();
        let fence = match surroundings.hosts {
            Hosts::Single => Fence::open(),
            Hosts::Elected | Hosts::Sharing => Fence::closed(),
        };
        let posts = (surroundings.hosts == Hosts::Sharing).then(|| Posts::new(fence.clone(), LEASE));
        let limits = Limits {
            requests: metrics.requests(),
            fence: fence.clone(),
            clock: clock.clone(),
            timeout: REQUEST_TIMEOUT,
        };
        let client = client::over(endpoint.clone(), limits, OWN_NAMESPACE);
        let config = HostConfig {
            own_namespace: OWN_NAMESPACE.to_owned(),
            fence: fence.clone(),
            posts: posts.clone(),
            clock: clock.clone(),
            random: random.clone(),
            schemas: surroundings.schemas.clone(),
            rights_check: surroundings.rights_check,
            ..HostConfig::default()
        };
        let host = Host::new(client, metrics.clone(), config);
        let of_leases = Limits {
            requests: metrics.requests(),
            fence: Fence::open(),
            clock: clock.clone(),
            timeout: REQUEST_TIMEOUT,
        };
        let leases = client::over(endpoint, of_leases, OWN_NAMESPACE);
        let dependencies = Dependencies { fence, metrics, clock, random };
        let hosts = surroundings.hosts;
        let (stop, stopped) = oneshot::channel::<()>();
        let (running, ended) = (host.clone(), surroundings.ended.clone());
        let task = tokio::spawn(async move {
            let stopped = stopped.map(drop).boxed();
            let lost = match (hosts, posts) {
                (Hosts::Single, _) => running.run(stopped).map(Ok).await,
                (_, None) => match Election::new(leases, settings(id), dependencies) {
                    Ok(election) => {
                        election.lead(stopped, |stop| running.run(stop)).await.map_err(|lost| lost.to_string())
                    }
                    Err(error) => Err(error.to_string()),
                },
                (_, Some(posts)) => match Sharing::new(leases, settings(id), posts, dependencies) {
                    Ok(sharing) => sharing
                        .work(stopped, |stop| running.run(stop), running.clone())
                        .await
                        .map_err(|lost| lost.to_string()),
                    Err(error) => Err(error.to_string()),
                },
            };
            if let Err(lost) = lost {
                tracing::error!("{lost}");
            }
            if ended.send(id).is_err() {
                tracing::debug!("a host ended after its history");
            }
        });
        let listener = Arc::new(HostListener { id, writes: surroundings.writes.clone() });
        let (scope, code, computes) = (surroundings.scope, surroundings.code.clone(), surroundings.computes);
        let tasks = vec![task.abort_handle()];
        Self { connection, host, scope, code, computes, listener, tasks, stop: Some(stop) }
    }

    /// Loads a version of the plugin.
    pub fn install(&self, version: Version) {
        let plugin = SimulatedPlugin::new(version, self.scope, self.code.clone(), self.listener.clone());
        self.host.install(Arc::new(plugin.computing(self.computes)), PluginSettings::default());
    }

    /// Loads the reference plugin.
    pub fn install_app(&self) {
        match AppPlugin::new(self.listener.clone()) {
            Ok(plugin) => self.host.install(Arc::new(plugin), PluginSettings::default()),
            Err(error) => tracing::error!("the manifest of the reference plugin cannot be read: {error}"),
        }
    }

    /// How many objects the host remembers something of.
    pub fn remembered(&self) -> usize {
        self.host.remembered_objects()
    }

    /// Looks after what plugins have left behind that are not loaded. Comes after those that are.
    pub fn take_up_departed(&mut self) {
        let host = self.host.clone();
        self.tasks.push(tokio::spawn(async move { host.take_up_departed().await }).abort_handle());
    }

    /// Removes the plugin.
    pub fn remove_plugin(&self) {
        self.host.depart(PLUGIN);
    }

    /// Asks the host to end. It tells when it has ended.
    pub fn stop(&mut self) {
        if self.stop.take().is_some_and(|stop| stop.send(()).is_err()) {
            tracing::debug!("a host ended before it was asked to");
        }
    }

    /// Ends the host at once. Nothing of what it was about to do happens.
    pub fn kill(&self) {
        self.connection.kill();
        self.tasks.iter().for_each(AbortHandle::abort);
        [PLUGIN, app::PLUGIN].into_iter().for_each(|plugin| self.host.remove(plugin));
    }
}

fn settings(id: HostId) -> Settings {
    Settings {
        name: LEASE.to_owned(),
        namespace: OWN_NAMESPACE.to_owned(),
        identity: id.to_string(),
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        // Less often than usual: to renew the Lease takes most of the time of such a history.
        retry_period: Duration::from_secs(5),
    }
}
