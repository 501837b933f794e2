//! Plugins as objects of the cluster: follows `Plugin` objects and what they name, loads what they ask for, and writes
//! what became of it into their status. Reconciles no other object.
//!
//! # Flow
//!
//! A watch of `Plugin`s, one of the ConfigMaps' metadata and one of the files that they may name say which plugins to look at; tags in
//! registries are looked up from time to time. A look (`look.rs`) reads the component (`content/`) and compiles it if it differs from what is at work. Many go on at once: one
//! that takes its time delays no other. What it found is installed here, in one place, and the status (`status.rs`) is written if it
//! differs.
//!
//! # Guarantees
//!
//! - A new version answers no object before the status says which ones (`trial.rs`), and where a canary is wanted, others only after that
//!   (`rollout.rs`).
//! - Where a plan is required, a new version answers no object before somebody has approved its digest (`approval.rs`).
//! - The version at work goes on, whatever becomes of its source, until the `Plugin` is deleted, suspended or no longer grants what it asks
//!   for. With `rollout`, a host that starts goes on with it, too.
//! - A `Plugin` that names a digest never leads to another component.
//! - One for which there is no memory takes none from those that are at work, and is tried again once there is.
//! - Of several `Plugin`s for one kind the oldest is at work, on every host and in whatever order they load.
//! - A host that may not write loads plugins like any other, to take over at once. It writes no status. Where hosts share the work, that is
//!   so for each `Plugin`.
//!
//! # Caveats
//!
//! Without the CRD of `Plugin` there are none. The watch waits for it.

mod answering;
mod approval;
mod at_work;
mod blocked;
mod canaries;
mod candidate;
mod changes;
pub(in crate::source) mod config_digest;
mod content;
mod crowded;
mod declared;
mod digest_text;
mod finalizers;
mod glance;
mod known;
mod look;
mod members;
mod miss;
mod new_version;
mod pin_trouble;
mod pins;
mod planning;
mod refused;
mod rollout;
mod room;
mod stable_config;
mod status;
mod status_writes;
mod step_times;
mod trial;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use jiff::Timestamp;
use kube::{Api, Client, Resource, ResourceExt, api::PatchParams};
use pilothouse_engine::Admission;
use serde_json::json;

pub use self::{
    answering::{AnsweringVersion, AnswersBecause, answering},
    candidate::Candidate,
    content::MAX_BYTES,
    pin_trouble::is_unanswered,
    pins::SEVERAL_VERSIONS,
    planning::{PlanError, PlannedVersion, Planner},
    rollout::division_by_pins,
};
use self::{
    at_work::at_work,
    blocked::Blocked,
    changes::{Change, changes},
    content::{ContentError, Contents, KeptComponents},
    declared::{DeclaredStatus, Writable},
    glance::Glance,
    known::{Due, Known, asks_for_the_same},
    look::{EndedLook, Found, Look, Looked, Looker, Looks},
    members::Members,
    miss::Miss,
    new_version::new_version,
    planning::Plans,
    status::{AtWork, Failure, Load, Standing, status},
    status_writes::StatusWrites,
    step_times::StepTimes,
};
use super::{
    folder::Folder,
    loader::{Loader, NotLoaded, Prepared, SourceId},
    plugin_memory::Wanted,
};
use crate::{
    api::{PlanStatus, Plugin, PluginSpec, PluginStatus, RolloutStatus, StableSource},
    client::apply_patch,
    errors::chain,
    events::{Author, Event, Recorded, STATUS_FIELDS_DROPPED},
    host::Loading,
    labels,
    plugin::{ActivePlugin, PluginSettings, Presence},
    withdrawal::withdraw_decorators,
};

/// How often a host that runs says which components it needs: far more often than what nobody has needed is removed.
const RENEWED_EACH: Duration = Duration::from_secs(86_400);

/// Follows the `Plugin` objects of a cluster.
pub struct PluginObjects {
    client: Client,
    namespace: String,
    /// The files that `Plugin`s may name, until they are followed.
    files: Option<Folder>,
    looker: Looker,
    looks: Looks,
    plugins: BTreeMap<String, Arc<Plugin>>,
    /// What was found when a plugin was looked at last.
    known: BTreeMap<String, Known>,
    /// Those that another plugin keeps from work.
    blocked: BTreeMap<String, Blocked>,
    /// Those for which there is no memory, or not for all of their versions, and what would be kept.
    crowded: BTreeMap<String, Wanted>,
    /// New versions that are not tried yet.
    to_try: BTreeMap<String, Arc<Prepared>>,
    /// What was seen of canaries last.
    glances: BTreeMap<String, Glance>,
    /// New versions that nobody has approved.
    held: BTreeMap<String, Arc<Prepared>>,
    plans: Plans,
    declared: DeclaredStatus,
    status_writes: StatusWrites,
    members: Members,
    step_times: StepTimes,
    /// How many of them were looked at for the first time: an older one for which others waited may have come to nothing.
    first_looks: u64,
    /// Until those that exist already have been looked at.
    starting: Option<Starting>,
    /// The digests of the components that are kept for the next start.
    needed: BTreeSet<String>,
    /// When it was said last that they are needed.
    renewed: Option<Instant>,
}

/// What is on the disk of the host's machine.
pub struct Folders {
    /// Where components are kept that were loaded.
    pub kept: PathBuf,
    /// Where the files are that `Plugin`s may name.
    pub files: Option<Folder>,
}

/// The plugins that existed when the host started.
struct Starting {
    _loading: Loading,
    /// Those that have not been looked at yet; none before they are listed.
    left: Option<BTreeSet<String>>,
}

impl PluginObjects {
    /// Follows the `Plugin`s of the cluster whose ConfigMaps are in this namespace. What a version would do that somebody has to approve is
    /// asked of the planner.
    pub fn new(
        client: Client,
        namespace: &str,
        loader: Arc<Loader>,
        Folders { kept, files }: Folders,
        planner: Arc<dyn Planner>,
    ) -> Self {
        let starting = Some(Starting { _loading: loader.host().begin_loading(), left: None });
        loader.memory().know_those_of_before(false);
        let directory = files.as_ref().map(Folder::path);
        let contents = Contents::new(&client, namespace, directory, KeptComponents::new(kept));
        Self {
            declared: DeclaredStatus::new(client.clone()),
            client,
            namespace: namespace.to_owned(),
            files,
            looker: Looker { contents, loader },
            looks: Looks::default(),
            plugins: BTreeMap::new(),
            known: BTreeMap::new(),
            blocked: BTreeMap::new(),
            crowded: BTreeMap::new(),
            to_try: BTreeMap::new(),
            glances: BTreeMap::new(),
            held: BTreeMap::new(),
            plans: Plans::new(planner),
            status_writes: StatusWrites::default(),
            members: Members::default(),
            step_times: StepTimes::default(),
            first_looks: 0,
            starting,
            needed: BTreeSet::new(),
            renewed: None,
        }
    }

    /// Whether this host decides about a `Plugin`, and tells it.
    fn may_write(&self, name: &str) -> bool {
        let loader = &self.looker.loader;
        let loaded = loader.loaded(&SourceId::Object(name.to_owned()));
        loader.host().may_tell_of(name, loaded.as_ref().map(|loaded| loaded.manifest()))
    }

    /// Whether anything of a `Plugin` is at work, or about to be.
    fn is_loaded(&self, name: &str) -> bool {
        self.looker.loader.loaded(&SourceId::Object(name.to_owned())).is_some()
    }

    fn now(&self) -> Timestamp {
        self.looker.loader.host().clock().now()
    }

    /// Follows them for ever.
    pub async fn follow(mut self) {
        let (mut changes, mut moments) = (changes(&self.client, &self.namespace, self.files.take()), glance::moments());
        let (host, mut begun) = (self.looker.loader.host().clone(), 0);
        loop {
            let has_canaries = self.has_canaries();
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => self.take(change).await,
                    None => return,
                },
                ended = self.plans.next() => self.finish_plan(ended).await,
                _ = moments.tick(), if has_canaries => self.glance().await,
                times = host.begun_since(begun) => {
                    begun = times;
                    self.report_begun().await;
                }
                EndedLook { name, looked, is_followed } = self.looks.next() => {
                    self.finish(&name, looked).await;
                    if is_followed {
                        self.look_at(&name, Due::Source);
                    }
                }
            }
        }
    }

    async fn take(&mut self, change: Change) {
        match change {
            Change::Applied(plugin) => self.apply(plugin).await,
            Change::Deleted(name) => self.remove(&name),
            Change::All(plugins) => self.replace(plugins).await,
            Change::ConfigMap(name) => self.look_at_users(|spec| content::uses(spec, &name)),
            Change::Files(names) => self.look_at_users(|spec| content::uses_file(spec, &names)),
            Change::Tick => self.tick().await,
        }
    }

    /// Looks at those that read what has changed.
    fn look_at_users(&mut self, uses: impl Fn(&PluginSpec) -> bool) {
        let users = self.plugins.values().filter(|plugin| uses(&plugin.spec));
        let users: Vec<_> = users.map(|plugin| plugin.name_any()).collect();
        for name in users {
            self.look_anew(&name);
        }
    }

    /// Takes the list of all `Plugin`s.
    async fn replace(&mut self, plugins: Vec<Arc<Plugin>>) {
        let found: BTreeSet<_> = plugins.iter().map(|plugin| plugin.name_any()).collect();
        let gone: Vec<_> = self.plugins.keys().filter(|name| !found.contains(*name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
        if self.starting.as_ref().is_some_and(|starting| starting.left.is_none()) {
            self.keep_places(plugins.iter().map(|plugin| &**plugin));
        }
        if let Some(starting) = &mut self.starting {
            starting.left.get_or_insert(found);
        }
        // All are known before the first is looked at: which of two is older counts.
        let names: Vec<_> = plugins.iter().map(|plugin| plugin.name_any()).collect();
        for plugin in &plugins {
            self.plugins.entry(plugin.name_any()).or_insert_with(|| plugin.clone());
        }
        for (name, plugin) in names.iter().zip(plugins) {
            match self.known.contains_key(name) {
                true => self.apply(plugin).await,
                false => self.look_at(name, Due::Source),
            }
        }
        self.has_started();
    }

    /// A `Plugin` came or changed. One whose spec is the same asks for nothing new: most changes are our own of its status.
    async fn apply(&mut self, plugin: Arc<Plugin>) {
        let name = plugin.name_any();
        let before = self.plugins.insert(name.clone(), plugin.clone());
        let is_news = |before: &Arc<Plugin>| {
            // A host that may write knows better than what it has written before.
            let is_of_another = !self.may_write(&name) && !stands_alike(before, &plugin);
            !asks_for_the_same(before, &plugin) || is_of_another
        };
        match before.as_ref().is_none_or(is_news) {
            true => self.look_anew(&name),
            false => self.report(&name).await,
        }
    }

    /// A `Plugin` is gone, and with it its plugin. That may have been in the way of others.
    fn remove(&mut self, name: &str) {
        self.plugins.remove(name);
        self.known.remove(name);
        self.blocked.remove(name);
        self.crowded.remove(name);
        self.to_try.remove(name);
        self.glances.remove(name);
        self.held.remove(name);
        self.plans.end(name);
        self.declared.forget(name);
        self.status_writes.forget(name);
        self.members.forget(name);
        self.step_times.forget(name);
        self.looker.loader.host().metrics().new_versions.forget(name);
        self.looked_at(name);
        self.looker.loader.remove(&SourceId::Object(name.to_owned()));
        self.looker.loader.memory().give_place_up(&SourceId::Object(name.to_owned()));
        let gone = name.to_owned();
        withdraw_decorators(self.looker.loader.host(), move |name| name == gone);
        self.look_at_freed();
    }

    /// Tries again what may have passed, looks tags up, and brings the status of all up to date.
    async fn tick(&mut self) {
        // A plugin of another source may have gone.
        self.look_at_freed();
        self.look_at_due();
        self.declared.refresh().await;
        let names: Vec<_> = self.plugins.keys().cloned().collect();
        for name in names {
            self.advance(&name).await;
            self.begin_plan(&name);
            self.report(&name).await;
        }
        self.forget_unneeded();
    }

    /// Versions that were replaced need no place on the disk. What is named, and what is loaded, may be all that the next start finds; an
    /// object can be pinned to what the status still knows.
    fn forget_unneeded(&mut self) {
        if self.starting.is_some() {
            return;
        }
        let named = self.plugins.values().flat_map(|plugin| named_digests(plugin)).map(str::to_owned);
        let versions = |name: &String| self.looker.loader.versions(&SourceId::Object(name.clone()));
        let loaded = self.plugins.keys().filter_map(versions);
        let loaded = loaded.flat_map(|versions| versions.all().map(|it| it.digest().to_owned()).collect::<Vec<_>>());
        let waiting = self.held.values().chain(self.to_try.values()).map(|it| it.digest().to_owned());
        let used: BTreeSet<_> = named.chain(loaded).chain(waiting).collect();
        let known = self.plugins.values().filter_map(|plugin| plugin.status.as_ref()).flat_map(pins::numbered);
        let needed: BTreeSet<_> = known.map(|(_, digest)| digest.to_owned()).chain(used.iter().cloned()).collect();
        if needed != self.needed || self.renewed.is_none_or(|renewed| renewed.elapsed() >= RENEWED_EACH) {
            self.looker.contents.renew(&needed);
            (self.needed, self.renewed) = (needed, Some(Instant::now()));
        }
        self.looker.loader.keep_compiled(used);
    }

    /// Looks at what failed for a reason that may have passed by now, and at tags that were looked up long enough ago.
    fn look_at_due(&mut self) {
        let now = Instant::now();
        let due = self.known.iter().filter(|(name, _)| !self.looks.is_under_way(name)).filter_map(|(name, known)| {
            let period = self.plugins.get(name).and_then(|plugin| content::tag_period(&plugin.spec.source));
            Some((name.clone(), known.is_due(now, period)?))
        });
        let due: Vec<_> = due.collect();
        for (name, due) in due {
            self.look_at(&name, due);
        }
    }

    /// Begins to do what a `Plugin` asks for since a change.
    fn look_anew(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.asked_anew();
        }
        self.look_at(name, Due::Source);
    }

    /// Begins to do what a `Plugin` asks for.
    fn look_at(&mut self, name: &str, due: Due) {
        let Some(plugin) = self.plugins.get(name).cloned() else { return };
        if plugin.spec.suspended {
            // At once, whatever a look finds that goes on. What was set aside gives its memory back, too.
            self.looker.loader.remove(&SourceId::Object(name.to_owned()));
            self.to_try.remove(name);
            self.held.remove(name);
        }
        let known = self.known.get(name).filter(|_| due == Due::Tag);
        let tag = known.and_then(|known| known.tag.clone());
        let settings = PluginSettings::of_plugin(&plugin, &self.namespace);
        let working = self.settings_of_working(&plugin, &settings);
        let set_aside = self.set_aside(name);
        self.looks.begin(&self.looker, Look { name: name.to_owned(), plugin, settings, working, set_aside, tag });
    }

    /// Does what a look is for: installs what it found, and reports it.
    async fn finish(&mut self, name: &str, looked: Looked) {
        self.looked_at(name);
        // Meanwhile it may have gone, or ask for something else.
        let Some(plugin) = self.plugins.get(name).cloned() else { return };
        if !asks_for_the_same(&looked.plugin, &plugin) || !stands_alike(&looked.plugin, &plugin) {
            return self.look_at(name, Due::Source);
        }
        let now = Instant::now();
        // Where its tag is what it was, what keeps it from work is so, too.
        if !matches!(looked.found, Found::Unchanged) {
            self.blocked.remove(name);
            self.crowded.remove(name);
        }
        // What cannot be read or loaded changes nothing about a version that is being tried, or was.
        let mut rollout = match self.known.get(name) {
            Some(known) => known.rollout.clone(),
            None => plugin.status.as_ref().and_then(|status| status.rollout.clone()),
        };
        let mut plan = match self.known.get(name) {
            Some(known) => known.plan.clone(),
            None => plugin.status.as_ref().and_then(|status| status.plan.clone()),
        };
        let (mut origin, mut miss) = (None, None);
        // What cannot be read or loaded says nothing about these.
        let refused = match (&looked.found, &looked.worked_before) {
            (Found::Prepared { versions, .. }, _) => Some(versions.refused.clone()),
            (_, before) => before.as_ref().map(|before| before.refused.clone()),
        };
        // Before it is known who is in whose way: its own first look frees others, and not itself.
        self.first_looks += u64::from(!self.known.contains_key(name));
        let is_away = matches!(looked.found, Found::NoComponent(_));
        let load = match looked.found {
            // The tag is what it was, and so is what became of it.
            Found::Unchanged => {
                if let Some(known) = self.known.get_mut(name) {
                    known.found_again(now);
                }
                return self.report(name).await;
            }
            Found::Suspended => Load::Suspended,
            Found::Prepared { versions, component } => {
                origin = Some(content::origin(&plugin.spec.source, &component));
                self.note_crowded_beside(name, &versions);
                match self.set_to_work(&plugin, versions, &component) {
                    Ok((load, tried)) => {
                        rollout = tried;
                        plan = planning::after_look(&plugin, self.held.get(name).map(|held| &**held), plan);
                        load
                    }
                    Err(why) => {
                        miss = Some(Miss::not_loaded(&component.digest, &why));
                        self.not_loaded(name, &why)
                    }
                }
            }
            Found::NoComponent(found) => {
                let found_none = miss.insert(Miss::no_component(&found));
                // Before anything else: a version that is no longer asked for answers no object of a host that writes.
                rollout = self.left_of(&plugin, rollout, found_none);
                self.without_source(&plugin, of_content(&found.why)).await
            }
            Found::NotLoaded { digest, why } => {
                miss = Some(Miss::not_loaded(&digest, &why));
                self.note_crowded(name, &why);
                self.not_loaded(name, &why)
            }
        };
        if let Some(miss) = &miss {
            rollout = self.left_of(&plugin, rollout, miss);
            plan = self.left_to_approve(&plugin, plan, miss);
        }
        if let (Load::Failed(_), Some(before)) = (&load, looked.worked_before) {
            self.go_on_with(&plugin, &before, rollout.as_ref());
        }
        if !(is_away || load.may_pass() || self.blocked.contains_key(name)) || self.is_loaded(name) {
            self.looker.loader.memory().give_place_up(&SourceId::Object(name.to_owned()));
        }
        let load = self.restrict(&plugin, load);
        let (is_loaded, before) = (load == Load::Loaded, self.known.get(name));
        let mut known = Known::new(looked.plugin, load, now, before);
        if let Some(refused) = refused {
            known = known.refusing(refused, before);
        }
        known.tag = looked.tag;
        known.pins = pins::targets(&plugin);
        (known.rollout, known.plan, known.origin) = (rollout, plan, origin.or(known.origin));
        if is_loaded {
            known.verification = plugin.spec.verification.clone();
        }
        self.known.insert(name.to_owned(), known);
        self.begin_plan(name);
        self.report(name).await;
        // What is held is as kept at the next look.
        if looked.is_kept && is_loaded && !self.held.contains_key(name) {
            self.look_at(name, Due::Source);
        }
        self.look_at_freed();
    }

    /// What is asked for by its digest and is at work needs no source.
    async fn without_source(&self, plugin: &Plugin, failure: Failure) -> Load {
        let id = SourceId::Object(plugin.name_any());
        let loader = &self.looker.loader;
        let is_at_work = loader.loaded(&id).is_some_and(|loaded| is_named(&plugin.spec, loaded.digest()));
        let known = self.known.get(&plugin.name_any());
        if !is_at_work || known.is_none_or(|known| known.verification != plugin.spec.verification) {
            return Load::Failed(failure);
        }
        let settings = PluginSettings::of_plugin(plugin, &self.namespace);
        if loader.loaded(&id).is_some_and(|loaded| loaded.is_made_anew_by(&settings)) {
            return match loader.make_anew(&id, &settings).await {
                Ok(()) => Load::WithoutSource(failure),
                Err(why) => self.not_loaded(&plugin.name_any(), &why),
            };
        }
        if let Err(mismatch) = loader.fits(&id, &settings) {
            return self.not_loaded(&plugin.name_any(), &mismatch);
        }
        match loader.settle(&id, &settings) {
            Ok(()) => Load::WithoutSource(failure),
            Err(refused) => self.not_loaded(&plugin.name_any(), &refused.into()),
        }
    }

    /// What failed to load leaves at work what was there before, within what the `Plugin` says now.
    fn restrict(&self, plugin: &Plugin, load: Load) -> Load {
        let Load::Failed(failure) = load else { return load };
        let id = SourceId::Object(plugin.name_any());
        let settings = PluginSettings::of_plugin(plugin, &self.namespace);
        let message = match self.looker.loader.restrict(&id, &settings) {
            Ok(()) => failure.message,
            Err(refused) => format!("{}; the version that worked is stopped: {refused}", failure.message),
        };
        Load::Failed(Failure { message, ..failure })
    }

    fn not_loaded(&self, name: &str, error: &NotLoaded) -> Load {
        self.looker.loader.refused(&SourceId::Object(name.to_owned()), error);
        Load::Failed(Failure { reason: error.reason(), message: error.to_string(), is_passing: error.is_passing() })
    }

    /// One of those that existed when the host started has been looked at, or is gone.
    fn looked_at(&mut self, name: &str) {
        if let Some(left) = self.starting.as_mut().and_then(|starting| starting.left.as_mut()) {
            left.remove(name);
        }
        self.has_started();
    }

    /// Once all are looked at, the host is ready, and what nobody has asked for in a long time is no longer kept.
    fn has_started(&mut self) {
        if !self.starting.as_ref().and_then(|starting| starting.left.as_ref()).is_some_and(BTreeSet::is_empty) {
            return;
        }
        self.starting = None;
        let there: BTreeSet<_> = self.plugins.keys().cloned().collect();
        withdraw_decorators(self.looker.loader.host(), move |name| !there.contains(name));
        // Also what was asked for last before all this time.
        self.forget_unneeded();
        self.looker.contents.remove_unneeded();
    }

    /// Writes the status of a `Plugin` if it differs, and measures how its new version stands.
    async fn report(&mut self, name: &str) {
        let (Some(plugin), Some(known)) = (self.plugins.get(name), self.known.get(name)) else { return };
        let state = new_version(&known.load, known.rollout.as_ref(), known.plan.as_ref());
        self.looker.loader.host().metrics().new_versions.is(name, state);
        if !self.may_write(name) {
            return;
        }
        let said = Said { load: known.load.clone(), rollout: known.rollout.clone(), plan: known.plan.clone() };
        let wanted = self.declared.writable(self.status_of(plugin, said)).status;
        if wanted == plugin.status.clone().unwrap_or_default() {
            return;
        }
        let (plugin, now) = (plugin.clone(), self.now());
        match self.status_writes.admit(name, now) {
            Admission::Admitted => {
                self.write(plugin, wanted).await;
            }
            Admission::Refused => {}
            Admission::FirstRefused => self.tell(&plugin, &status_writes::contested()),
        }
        self.follow_pins(name);
    }

    /// Writes the status of those whose version at work is another one than it says.
    async fn report_begun(&mut self) {
        let is_news = |(name, plugin): &(&String, &Arc<Plugin>)| {
            let shown =
                plugin.status.as_ref().and_then(|status| status.digest.as_deref()).and_then(digest_text::digits);
            shown != self.active(name).as_ref().map(|active| active.reconciler.digest())
        };
        let names: Vec<_> = self.plugins.iter().filter(is_news).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.report(&name).await;
        }
    }

    /// Looks again if the number of a pin stands for another version now than at the last look, or if another version works now: what is
    /// pinned has its configuration.
    fn follow_pins(&mut self, name: &str) {
        let (Some(plugin), Some(known)) = (self.plugins.get(name), self.known.get(name)) else { return };
        let pins = pins::targets(plugin);
        let is_led_otherwise = !pins.is_empty() && rollout::stable_of(&known.plugin) != rollout::stable_of(plugin);
        if known.pins != pins || is_led_otherwise {
            self.look_at(name, Due::Source);
        }
    }

    /// The status of a `Plugin` of which this is to be said.
    fn status_of(&self, plugin: &Plugin, Said { load, rollout, plan }: Said) -> PluginStatus {
        let name = plugin.name_any();
        let at_work = self.at_work(&name);
        let stable = self.looker.loader.loaded(&SourceId::Object(name.clone())).map(|it| it.digest().to_owned());
        let known = self.known.get(&name);
        let origin = known.and_then(|known| known.origin.as_ref());
        let is_of_stable = |origin: &&StableSource| digest_text::digits(&origin.digest) == stable.as_deref();
        let stable_source = origin.filter(is_of_stable).cloned();
        let (stable_config, keeps_config) = (self.stable_config(plugin), self.keeps_config(plugin));
        let planned = plan.as_ref().and_then(|plan| digest_text::digits(&plan.digest));
        let is_held_for_its_config =
            planned.is_some_and(|digest| rollout::is_held_for_its_config(&plugin.spec, digest));
        let (in_the_way, pins) = (self.in_the_way(plugin), self.pin_trouble(plugin));
        let before = plugin.status.clone().unwrap_or_default();
        let finalizers = self.finalizers(plugin);
        let generation = known.map_or(before.observed_generation, |known| known.observed_generation(plugin));
        let memory = self.memory_of(&name);
        let new_version = new_version(&load, rollout.as_ref(), plan.as_ref());
        let standing = Standing {
            name,
            load,
            at_work,
            stable,
            stable_source,
            stable_config,
            keeps_config,
            rollout,
            new_version,
            plan,
            in_the_way,
            is_held_for_its_config,
            pins,
            finalizers,
            memory,
        };
        status(&standing, generation, &before, self.now())
    }

    /// Writes a status, and tells of what is new in it. Returns what was written; none if that failed: the next look at the `Plugin`, a few
    /// seconds later, tries again.
    async fn write(&mut self, plugin: Arc<Plugin>, wanted: PluginStatus) -> Option<PluginStatus> {
        let name = plugin.name_any();
        let Writable { status, left_out } = match self.send_what_is_declared(&plugin, wanted).await {
            Ok(written) => written,
            Err(error) => {
                tracing::warn!(plugin = name, "failed to write the status of the Plugin: {}", chain(&error));
                return None;
            }
        };
        let mut events = status::events(&name, &plugin.status.clone().unwrap_or_default(), &status);
        if self.declared.note(&name, &left_out) {
            let message = declared::explain(&left_out);
            tracing::warn!(plugin = name, reason = STATUS_FIELDS_DROPPED, "{message}");
            events.push(Event::warning(STATUS_FIELDS_DROPPED, &message));
        }
        events.iter().for_each(|event| self.tell(&plugin, event));
        let mut written = Plugin::clone(&plugin);
        written.status = Some(status.clone());
        self.plugins.insert(name, written.into());
        Some(status)
    }

    /// Records an Event on a `Plugin`.
    fn tell(&self, plugin: &Plugin, event: &Event) {
        let (host, name) = (self.looker.loader.host(), plugin.name_any());
        if host.events().record_about(Author::Host(&name), plugin.object_ref(&()), event) == Recorded::Dropped {
            host.metrics().dropped.event(&name);
        }
    }

    /// Writes a status. Where the CRD is found not to declare all of it, writes the rest.
    async fn send_what_is_declared(&mut self, plugin: &Plugin, wanted: PluginStatus) -> Result<Writable, kube::Error> {
        let known = self.declared.writable(wanted.clone());
        match self.send(plugin, &known.status).await {
            Ok(()) => Ok(known),
            // The answer of the API server to an undeclared field in an apply.
            Err(kube::Error::Api(refused)) if refused.code == 500 => {
                self.declared.learn().await;
                let declared = self.declared.writable(wanted);
                if declared.left_out == known.left_out {
                    return Err(kube::Error::Api(refused));
                }
                self.send(plugin, &declared.status).await.map(|()| declared)
            }
            Err(error) => Err(error),
        }
    }

    async fn send(&self, plugin: &Plugin, status: &PluginStatus) -> Result<(), kube::Error> {
        let api = Api::<Plugin>::all(self.client.clone());
        let body = json!({
            "apiVersion": Plugin::api_version(&()), "kind": Plugin::kind(&()),
            // A Plugin of the same name that was created meanwhile is another one.
            "metadata": {"uid": plugin.metadata.uid},
            "status": status,
        });
        let parameters = PatchParams::apply(labels::HOST).force();
        api.patch_status(&plugin.name_any(), &parameters, &apply_patch(&body)?).await.map(drop)
    }

    /// What is told of the version of a `Plugin` at work.
    fn at_work(&self, name: &str) -> Option<AtWork> {
        self.active(name).map(|active| at_work(&active))
    }

    /// The version of a `Plugin` at work.
    fn active(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        let loaded = self.looker.loader.loaded(&SourceId::Object(name.to_owned()))?;
        let active = self.looker.loader.host().active_plugin(loaded.name())?;
        // Until the version is ready, what stands there may be what is left of a plugin that is gone.
        (active.presence == Presence::AtWork).then_some(active)
    }
}

/// What is to be said of a `Plugin`.
struct Said {
    load: Load,
    rollout: Option<RolloutStatus>,
    plan: Option<PlanStatus>,
}

fn of_content(error: &ContentError) -> Failure {
    Failure { reason: error.reason(), message: error.to_string(), is_passing: error.is_passing() }
}

/// Whether a `Plugin` names this digest.
fn is_named(spec: &PluginSpec, digest: &str) -> bool {
    spec.digest.as_deref().and_then(digest_text::digits) == Some(digest)
}

/// The digests of the components that a `Plugin` needs, or may need once its source has another one.
fn named_digests(plugin: &Plugin) -> impl Iterator<Item = &str> {
    let status = plugin.status.as_ref().filter(|_| plugin.spec.rollout.is_some());
    let trial = status.and_then(|status| status.rollout.as_ref()).map(|rollout| rollout.digest.as_str());
    let stable = status.and_then(|status| status.stable_digest.as_deref());
    let own = [plugin.spec.digest.as_deref(), trial, stable].into_iter().flatten();
    own.filter_map(digest_text::digits).chain(pins::digests(plugin))
}

/// Whether two states of a `Plugin` have the same version at work with the same configuration, the same one on trial and the same ones pinned,
/// as another host may have written them.
fn stands_alike(one: &Plugin, other: &Plugin) -> bool {
    let standing = |plugin: &Plugin| {
        let status = plugin.status.as_ref()?;
        let trial = status.rollout.as_ref().map(|it| {
            let watched = (it.step, it.since.clone(), it.config_digest.clone());
            (it.phase, it.digest.clone(), watched, it.up_to.clone())
        });
        Some((status.stable_digest.clone(), status.stable_config.clone(), trial, pins::targets(plugin)))
    };
    standing(one) == standing(other)
}

/// Whether one `Plugin` is older than another, so that it has what both want. As for objects of the Gateway API: by their creation, then
/// by their names.
fn is_older(one: &Plugin, other: &Plugin) -> bool {
    let age = |plugin: &Plugin| (plugin.creation_timestamp().map(|time| time.0), plugin.name_any());
    age(one) < age(other)
}
