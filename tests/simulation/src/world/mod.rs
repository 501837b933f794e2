//! Everything that a history needs: the cluster, the network, the hosts, and the others who act. Carries out the steps.
//!
//! # Flow
//!
//! [`World::begin`] sets everything up. The caller carries out the steps one after another with [`World::take`]; hosts, garbage
//! collection and controllers go on by themselves in between, in tasks on the same thread.

mod controllers;
mod host;
mod jobs;
mod pods;
mod ready;
mod requests;
mod users;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pilothouse_controller::host::RightsCheck;
use tokio::sync::mpsc;

use self::{
    host::{HostProcess, Surroundings},
    ready::Watched,
    users::Users,
};
use crate::{
    cluster::{Cluster, Template},
    history::step::{History, Hosts, Step},
    host_id::HostId,
    network::{Crash, Delays, Network},
    plugin::version::Version,
    properties::{ready::patience, snapshot::Snapshot, writes::Writes},
    record::Record,
    time::Time,
};

/// How long a host that ended by itself takes to come back.
const RESTART: Duration = Duration::from_secs(1);

/// One in so many histories has hosts that ask for their rights. It takes as long as half of a history and touches no object.
const RIGHTS_CHECKED: u64 = 16;

fn rights_check(seed: u64) -> RightsCheck {
    if seed.is_multiple_of(RIGHTS_CHECKED) { RightsCheck::AtStart } else { RightsCheck::Never }
}

/// One in so many histories has a plugin that takes its time, so that much can happen during a call.
const COMPUTING: u64 = 5;

fn computes(seed: u64) -> Duration {
    if seed.is_multiple_of(COMPUTING) { Duration::from_millis(20) } else { Duration::ZERO }
}

/// One in so many histories has Deployments that take a while until they are rolled out, and Pods of Jobs that take a while for all they do.
const SLOW_ROLLOUTS: u64 = 4;

/// How long a rollout takes at most, or a Pod to start or to end, in milliseconds.
fn rollout(seed: u64) -> u32 {
    if seed % SLOW_ROLLOUTS == 1 { 5_000 } else { 40 }
}

/// In one of so many histories admission adds to what hosts write.
const ADDED_TO: u64 = 6;

/// A simulated world.
pub struct World {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// The network.
    pub network: Arc<Network>,
    /// Judges what the hosts write.
    pub writes: Arc<Writes>,
    /// Everybody who acts but the hosts.
    pub users: Users,
    /// How long a child may be wrong while its object is ready.
    patience: Duration,
    record: Record,
    surroundings: Surroundings,
    state: Mutex<State>,
}

struct State {
    /// The version of the plugin that every host loads; none while it is removed.
    version: Option<Version>,
    /// The last version that was loaded.
    latest: Version,
    slots: Vec<Slot>,
    /// Whether hosts load the reference plugin as well.
    apps: bool,
    /// Whether somebody looks at each moment whether `Ready` is true.
    ready_is_watched: bool,
}

/// The place of one host.
#[derive(Default)]
struct Slot {
    starts: u32,
    process: Option<HostProcess>,
}

impl World {
    /// A world in which nothing has happened yet. Needs a tokio runtime with a paused clock.
    pub fn begin(template: &Template, history: &History, time: Time, record: Record) -> Arc<Self> {
        let writes = Arc::<Writes>::default();
        let cluster = Cluster::new(template, history.scope, time, record.clone(), writes.clone());
        if history.seed % ADDED_TO == 1 {
            cluster.add_to_writes();
        }
        let (crashes, crashed) = mpsc::unbounded_channel();
        let (ended, ends) = mpsc::unbounded_channel();
        let delays = Delays { latency: history.latency, far: history.far, lag: history.lag };
        let network = Network::new(cluster.clone(), record.clone(), history.seed, delays, crashes);
        let surroundings = Surroundings {
            network: network.clone(),
            time,
            writes: writes.clone(),
            ended,
            seed: history.seed,
            hosts: history.hosts,
            ahead: history.ahead,
            scope: history.scope,
            code: template.code.clone(),
            schemas: template.schemas.clone(),
            computes: computes(history.seed),
            rights_check: rights_check(history.seed),
        };
        let hosts = match history.hosts {
            Hosts::Single => 1,
            Hosts::Elected => 2,
            Hosts::Sharing => 3,
        };
        let slots = (0..hosts).map(|_| Slot::default()).collect();
        let (version, latest, apps) = (Some(history.version), history.version, history.apps);
        let state = State { version, latest, slots, apps, ready_is_watched: false };
        let users = Users::new(cluster.clone(), writes.clone(), time, history.scope);
        let patience = patience(history.longest_latency(), history.lag);
        let state = Mutex::new(state);
        let world = Arc::new(Self { cluster, network, writes, users, patience, record, surroundings, state });
        tokio::spawn(world.clone().follow_crashes(crashed));
        tokio::spawn(world.clone().follow_ends(ends));
        controllers::start(&world.cluster, &world.network, time, rollout(history.seed));
        (0..hosts).for_each(|host| world.start(host));
        world
    }

    /// The version of the plugin that is there, or was there last.
    pub fn version(&self) -> Version {
        self.lock().latest
    }

    /// Carries out a step.
    pub async fn take(self: &Arc<Self>, step: &Step) {
        self.record.note("step", || serde_json::to_string(step).unwrap_or_default());
        match step {
            Step::Swap { version } => self.swap(*version),
            Step::RemovePlugin => {
                let mut state = self.lock();
                state.version = None;
                state.slots.iter().filter_map(|slot| slot.process.as_ref()).for_each(HostProcess::remove_plugin);
            }
            Step::Request { class, skip, fault } => self.network.expect(*class, *skip, *fault),
            Step::Watches { kind, trouble } => self.network.trouble(kind.as_deref(), *trouble),
            Step::Compact => self.cluster.compact(),
            Step::Crash { host, back_after } => self.crash(*host, *back_after),
            Step::Restart { host } => {
                if let Some(process) = self.lock().slots.get_mut(*host).and_then(|slot| slot.process.as_mut()) {
                    process.stop();
                }
            }
            Step::Partition { host, lasts } => self.partition(*host, *lasts),
            Step::Pause { lasts } => tokio::time::advance(Duration::from_millis((*lasts).into())).await,
            Step::MoveConnection { host, behind } => self.network.move_connection(*host, *behind),
            Step::Rest => {}
            step => self.users.act(step),
        }
    }

    /// Nothing goes wrong any more, and what stands in the way is taken away.
    pub fn calm(&self) {
        self.record.note("step", || "from now on nothing goes wrong".to_owned());
        self.network.calm();
        self.users.clear_the_way();
    }

    /// Whether the plugin is removed.
    pub fn is_plugin_removed(&self) -> bool {
        self.lock().version.is_none()
    }

    /// Loads the plugin again if it is removed.
    pub fn bring_back_plugin(&self) {
        let latest = self.lock().latest;
        if self.is_plugin_removed() {
            self.record.note("step", || "the plugin comes back".to_owned());
            self.swap(latest);
        }
    }

    /// Everything that is there now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.cluster, self.surroundings.scope)
    }

    /// From now on, or since an earlier call, no object may be ready for long while a child of it is wrong.
    pub fn watch_ready(self: &Arc<Self>) {
        let is_watched = std::mem::replace(&mut self.lock().ready_is_watched, true);
        if !is_watched {
            let watched = Watched {
                cluster: self.cluster.clone(),
                writes: self.writes.clone(),
                scope: self.surroundings.scope,
                patience: self.patience,
            };
            // The world ends with its history.
            let world = Arc::downgrade(self);
            tokio::spawn(watched.look(move || world.upgrade().map(|world| world.version())));
        }
    }

    /// How many objects the hosts remember something of.
    pub fn remembered(&self) -> usize {
        let state = self.lock();
        state.slots.iter().filter_map(|slot| slot.process.as_ref()).map(HostProcess::remembered).sum()
    }

    /// Ends a host at once, and starts another one in its place.
    pub fn crash(self: &Arc<Self>, host: usize, back_after: u32) {
        let state = self.lock();
        let process = state.slots.get(host).and_then(|slot| slot.process.as_ref());
        let id = process.map(|process| process.connection.id);
        drop(state);
        if let Some(id) = id {
            self.come_back(id, Duration::from_millis(back_after.into()));
        }
    }

    fn swap(&self, version: Version) {
        let mut state = self.lock();
        (state.version, state.latest) = (Some(version), version);
        state.slots.iter().filter_map(|slot| slot.process.as_ref()).for_each(|process| process.install(version));
    }

    fn start(&self, host: usize) {
        let mut state = self.lock();
        let (version, apps) = (state.version, state.apps);
        let Some(slot) = state.slots.get_mut(host) else { return };
        let id = HostId { host, start: slot.starts };
        slot.starts += 1;
        self.record.note(id, || "starts".to_owned());
        let mut process = HostProcess::start(&self.surroundings, id);
        version.into_iter().for_each(|version| process.install(version));
        if apps {
            process.install_app();
        }
        process.take_up_departed();
        slot.process = Some(process);
    }

    /// Takes a host out of its place, if it is still the same.
    fn end(&self, id: HostId) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(id.host) else { return false };
        let is_it = slot.process.as_ref().is_some_and(|process| process.connection.id == id);
        if let Some(process) = slot.process.take_if(|_| is_it) {
            process.kill();
            self.record.note(id, || "ends".to_owned());
        }
        is_it
    }

    fn come_back(self: &Arc<Self>, id: HostId, back_after: Duration) {
        if self.end(id) {
            let world = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(back_after).await;
                world.start(id.host);
            });
        }
    }

    fn partition(&self, host: usize, lasts: u32) {
        let state = self.lock();
        let Some(process) = state.slots.get(host).and_then(|slot| slot.process.as_ref()) else { return };
        let connection = process.connection.clone();
        connection.partition(true);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(lasts.into())).await;
            connection.partition(false);
        });
    }

    async fn follow_crashes(self: Arc<Self>, mut crashes: mpsc::UnboundedReceiver<Crash>) {
        while let Some(Crash { id, back_after }) = crashes.recv().await {
            self.come_back(id, back_after);
        }
    }

    async fn follow_ends(self: Arc<Self>, mut ends: mpsc::UnboundedReceiver<HostId>) {
        while let Some(id) = ends.recv().await {
            self.come_back(id, RESTART);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
