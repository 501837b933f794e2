//! Has versions of a `Plugin` work beside each other, as `rollout.rs` decides it. What a new version may answer is in the status before it
//! answers it: a host that ends in the midst goes on from there, and so does another one.

use std::{sync::Arc, time::Duration};

use kube::ResourceExt;

use super::{
    PluginObjects, Said,
    at_work::{as_before, counts, failing_since},
    candidate::Candidate,
    content::Component,
    finalizers::finalizers_of,
    known::{Known, asks_for_the_same},
    look::FoundVersions,
    miss::Miss,
    pin_trouble::PinTrouble,
    pins,
    refused::Fate,
    rollout::{self, Course, Next, Seen},
    status::{Failure, Load, is_told_as_suspended},
};
use crate::{
    api::{ObjectCounts, Plugin, RolloutPhase, RolloutSpec, RolloutStatus},
    cache::WatchState,
    object::Object,
    pipeline::lifecycle::managed::not_ours,
    plugin::{ActivePlugin, Versions},
    source::loader::{LoadedVersions, NotLoaded, Prepared, SourceId},
};

/// The reason of a plugin whose new version was taken back.
const ROLLED_BACK: &str = "RolledBack";

/// Versions that are found, of which this one answers whatever no other one does.
fn led_by(
    found: &FoundVersions,
    plugin: &Plugin,
    stable: &Arc<Prepared>,
    rollout: Option<&RolloutStatus>,
) -> LoadedVersions {
    let division = rollout::division(plugin, stable.digest(), rollout);
    let is_needed = |version: &&Arc<Prepared>| {
        let digest = version.digest();
        let is_tried = division.as_ref().and_then(|it| it.trial.as_ref()).is_some_and(|it| *it.digest == *digest);
        digest != stable.digest() && (is_tried || pins::digests(plugin).any(|pinned| pinned == digest))
    };
    // What is tried may be among the others, too.
    let mut others: Vec<Arc<Prepared>> = Vec::new();
    for version in found.all().filter(is_needed) {
        if !others.iter().any(|known| known.digest() == version.digest()) {
            others.push(version.clone());
        }
    }
    let finalizers = finalizers_of(plugin, std::iter::once(stable).chain(&others));
    LoadedVersions { stable: stable.clone(), others, division, finalizers }
}

impl PluginObjects {
    /// Has the versions work that a look has found. Returns what is told of that, and of a version that does not answer all objects yet or
    /// was taken back. One that has to be approved is held, and answers nothing; if nothing worked before, nothing works.
    pub(super) fn set_to_work(
        &mut self,
        plugin: &Plugin,
        found: FoundVersions,
        component: &Component,
    ) -> Result<(Load, Option<RolloutStatus>), NotLoaded> {
        let name = plugin.name_any();
        self.to_try.remove(&name);
        self.held.remove(&name);
        if rollout::canary(&plugin.spec).is_some() && found.prepared.manifest().decorates.is_some() {
            return Err(NotLoaded::CanaryOfDecorator);
        }
        let course = rollout::course(plugin, found.prepared.digest());
        if course == Course::Hold && rollout::stable_of(plugin).is_none() {
            self.hold(plugin, found.prepared);
            self.looker.contents.keep(component);
            return Ok((Load::Loaded, None));
        }
        let stable = match course {
            Course::TakeOver => found.prepared.clone(),
            // It works beside nothing, so it need not be like the one that works.
            Course::Hold => known_stable(plugin, &found)?,
            _ => stable(plugin, &found)?,
        };
        let is_held = course == Course::Hold;
        let (rollout, load) = match course {
            Course::TakeOver | Course::Begin | Course::Hold => (None, Load::Loaded),
            // Nobody watched it while the plugin was suspended.
            Course::GoOn(rollout) if is_told_as_suspended(plugin) => {
                (Some(rollout::from_now(&rollout, self.now())), Load::Loaded)
            }
            Course::GoOn(rollout) => (Some(rollout), Load::Loaded),
            Course::StayAway(rollout) => (Some(rollout.clone()), taken_back(&rollout)),
        };
        self.install(plugin, led_by(&found, plugin, &stable, rollout.as_ref()))?;
        // Without a digest nobody could say that it is still what is asked for, unless the status or a pin does.
        if plugin.spec.digest.is_some() || plugin.spec.rollout.is_some() {
            self.looker.contents.keep(component);
        }
        if is_held {
            self.hold(plugin, found.prepared);
        } else if stable.digest() != found.prepared.digest() && rollout.is_none() {
            self.to_try.insert(name, found.prepared);
        }
        Ok((load, rollout))
    }

    /// What is left of a version that is tried, or was, after a look that found none that loads. If it is no longer tried, the version that
    /// works gets its objects back.
    pub(super) fn left_of(
        &mut self,
        plugin: &Plugin,
        rollout: Option<RolloutStatus>,
        miss: &Miss,
    ) -> Option<RolloutStatus> {
        let name = plugin.name_any();
        if self.to_try.get(&name).is_some_and(|to_try| !miss.may_begin(&plugin.spec, to_try.digest())) {
            self.to_try.remove(&name);
        }
        let before = rollout?;
        let left = miss.left_of(&plugin.spec, before.clone());
        let loaded = self.looker.loader.versions(&SourceId::Object(name));
        if let Some(loaded) = loaded.filter(|_| left.is_none() && before.goes_on()) {
            let (plugin_name, version) = (loaded.stable.name(), &before.version);
            tracing::warn!(
                plugin = plugin_name,
                version,
                "a new version is no longer asked for, and not tried any more"
            );
            self.start(plugin, led_by(&FoundVersions::of_loaded(&loaded), plugin, &loaded.stable, None));
        }
        left
    }

    /// Has the versions work that did before this host started: what the source has now does not go to work.
    pub(super) fn go_on_with(&mut self, plugin: &Plugin, before: &FoundVersions, rollout: Option<&RolloutStatus>) {
        if let Err(error) = self.install(plugin, led_by(before, plugin, &before.prepared, rollout)) {
            tracing::warn!(plugin = plugin.name_any(), "the version that worked does not go on: {error}");
        }
    }

    /// What a `Plugin` has loaded, and the same at work. None as long as it gets ready: the versions before it are at work until then.
    pub(super) fn at_work_as_loaded(&self, name: &str) -> Option<(LoadedVersions, Arc<Versions>)> {
        let loaded = self.looker.loader.versions(&SourceId::Object(name.to_owned()))?;
        let active = self.looker.loader.host().active_versions(loaded.stable.name())?;
        is_installed(&active, &loaded).then_some((loaded, active))
    }

    /// Goes on with a new version that does not answer all objects, if this host may.
    pub(super) async fn advance(&mut self, name: &str) {
        let Some(plugin) = self.plugins.get(name).cloned().filter(|_| self.may_write(name)) else { return };
        let Some(canary) = rollout::canary(&plugin.spec) else { return };
        let Some((loaded, active)) = self.at_work_as_loaded(name) else { return };
        let going_on = self.known.get(name).and_then(|known| known.rollout.clone());
        match going_on.filter(RolloutStatus::goes_on) {
            Some(rollout) => {
                self.judge(&Going { plugin: &plugin, canary, loaded: &loaded, active: &active }, rollout).await
            }
            // What is to be tried is not known before the next look has ended.
            None if self.is_asked_anew(&plugin) => {}
            None => {
                let Some(prepared) = self.to_try.get(name).cloned() else { return };
                let going = Going { plugin: &plugin, canary, loaded: &loaded, active: &active };
                self.begin(&going, &prepared, None).await;
            }
        }
    }

    /// The first step of a new version. `before`: the canary that had no object, if it begins anew.
    async fn begin(&mut self, going: &Going<'_>, prepared: &Arc<Prepared>, before: Option<&RolloutStatus>) {
        let candidate = Candidate { digest: prepared.digest(), version: prepared.version() };
        let versions = FoundVersions {
            prepared: prepared.clone(),
            others: going.loaded.all().cloned().collect(),
            ..FoundVersions::of_loaded(going.loaded)
        };
        let objects = going.asked_about();
        let config = prepared.config_digest();
        let begun = rollout::begun(going.canary, &candidate, &objects, self.now());
        let begun = begun.map(|begun| rollout::watched_with(&begun, config));
        let waits = |before: &&RolloutStatus| match &begun {
            Some(anew) => !rollout::begins_otherwise(going.plugin, before, anew, &objects),
            // In the midst of a canary, somebody may have suspended all of them. They are there, and it has not stood its test.
            None => !going.objects().is_empty(),
        };
        match (before.filter(waits), begun) {
            (Some(waiting), _) => self.wait_for_objects(going, waiting),
            (None, None) => self.take_over(going, versions),
            (None, Some(rollout)) => self.widen(going, versions, None, rollout).await,
        }
    }

    /// Looks at the objects that a new version answers.
    async fn judge(&mut self, going: &Going<'_>, rollout: RolloutStatus) {
        let digest = rollout::digest_of(&rollout);
        let (Some(tried), Some(prepared)) = (going.active.with_digest(digest), going.loaded.with_digest(digest)) else {
            return;
        };
        let mut members = tried.answered_objects();
        members.retain(|object| !object.deleting);
        let objects: Vec<_> = members.iter().filter(|object| going.is_asked_about(object)).cloned().collect();
        let joined = self.members.joined(&going.plugin.name_any(), &rollout, &members);
        let rollout = rollout::joined_by(&rollout, as_before(&joined, &rollout.since));
        let counts = counts(&objects);
        let newly_failing = failing_since(&objects, &rollout.since);
        let seen = Seen { counts, newly_failing, all_reconciled: tried.new_version.has_seen_all() };
        let versions = FoundVersions {
            prepared: prepared.clone(),
            others: going.loaded.all().cloned().collect(),
            ..FoundVersions::of_loaded(going.loaded)
        };
        let now = self.now();
        let config = prepared.config_digest();
        let is_watched_otherwise = rollout::is_watched_otherwise(&rollout, config);
        let is_asked_anew = self.is_asked_anew(going.plugin);
        let lasted = match is_asked_anew || is_watched_otherwise {
            // With what it is to be now, it has lasted for no time. What has failed has failed.
            true => Duration::ZERO,
            false => self.step_times.lasted(&going.plugin.name_any(), &rollout, now),
        };
        match rollout::next(going.canary, &rollout, seen, lasted) {
            Next::Stay | Next::Watch | Next::NoObject if is_asked_anew => {
                self.note(going.plugin, rollout::counted(&rollout, counts), Load::Loaded);
            }
            // They are out of reach for a while. Others in their place would be more than the step asks for.
            Next::NoObject if !members.is_empty() => self.wait_for_objects(going, &rollout),
            Next::NoObject => self.begin(going, &prepared.clone(), Some(&rollout)).await,
            Next::Watch => self.watch_anew(going, &rollout::begun_anew(&rollout, config, counts, now)).await,
            Next::Stay if is_watched_otherwise => {
                self.watch_anew(going, &rollout::begun_anew(&rollout, config, counts, now)).await;
            }
            Next::Stay if rollout.config_digest.is_none() => {
                let watched = rollout::watched_with(&rollout, config);
                self.note(going.plugin, rollout::counted(&watched, counts), Load::Loaded);
            }
            Next::Stay => self.note(going.plugin, rollout::counted(&rollout, counts), Load::Loaded),
            Next::Widen => {
                let next = rollout::widened(going.canary, &rollout, &going.asked_about(), now);
                self.widen(going, versions, Some(&rollout), next).await;
            }
            Next::TakeOver => self.take_over(going, versions),
            Next::GoBack(failed) => self.go_back(going, versions, rollout::taken_back(&rollout, failed, counts, now)),
        }
    }

    /// A canary has no object that says anything about it.
    fn wait_for_objects(&mut self, going: &Going<'_>, rollout: &RolloutStatus) {
        self.note(going.plugin, rollout::counted(rollout, ObjectCounts::default()), Load::Loaded);
    }

    /// The present step begins anew: its version has another configuration, or had no objects that said anything about it.
    async fn watch_anew(&mut self, going: &Going<'_>, anew: &RolloutStatus) {
        if self.write_rollout(going.plugin, anew).await {
            tracing::info!(version = anew.version, step = anew.step, "a step begins anew");
            self.step_times.begin(&going.plugin.name_any(), anew);
            self.note(going.plugin, anew.clone(), Load::Loaded);
        }
    }

    /// Whether a `Plugin` asks for something else than it did at the last look: until the next one has ended, nobody knows what for.
    fn is_asked_anew(&self, plugin: &Plugin) -> bool {
        self.known.get(&plugin.name_any()).is_none_or(|known| !asks_for_the_same(&known.plugin, plugin))
    }

    /// Has a new version answer more objects than before, once the status says which.
    async fn widen(
        &mut self,
        going: &Going<'_>,
        versions: FoundVersions,
        before: Option<&RolloutStatus>,
        next: RolloutStatus,
    ) {
        let installed = led_by(&versions, going.plugin, &going.loaded.stable, Some(&next));
        let digest = versions.prepared.digest().to_owned();
        let answered = |object: &Object| installed.division.as_ref().is_some_and(|it| it.digest_for(object) == digest);
        let belonged =
            |object: &Arc<Object>| before.is_some_and(|before| rollout::belongs(before, going.canary, object));
        let objects = going.asked_about().into_iter().filter(|object| answered(object));
        let (known, new): (Vec<_>, Vec<_>) = objects.partition(belonged);
        let next = rollout::beginning(&next, before, counts(&known), counts(&new));
        let members = going.objects().into_iter().filter(|object| !object.deleting && answered(object));
        let members: Vec<_> = members.collect();
        self.step_times.begin(&going.plugin.name_any(), &next);
        self.members.begin(&going.plugin.name_any(), &next, &members);
        if !self.write_rollout(going.plugin, &next).await {
            return;
        }
        tracing::info!(
            plugin = versions.prepared.name(),
            version = next.version,
            step = next.step,
            objects = next.objects,
            "a new version answers some objects"
        );
        self.to_try.remove(&going.plugin.name_any());
        self.note(going.plugin, next, Load::Loaded);
        self.start(going.plugin, installed);
    }

    /// A new version has stood its test, or there is nothing to try it on.
    fn take_over(&mut self, going: &Going<'_>, versions: FoundVersions) {
        let name = going.plugin.name_any();
        self.to_try.remove(&name);
        if let Some(known) = self.known.get_mut(&name) {
            known.rollout = None;
        }
        tracing::info!(
            plugin = versions.prepared.name(),
            version = versions.prepared.version(),
            "a new version takes over"
        );
        self.start(going.plugin, led_by(&versions, going.plugin, &versions.prepared, None));
    }

    /// The version that worked gets all objects back.
    fn go_back(&mut self, going: &Going<'_>, versions: FoundVersions, rollout: RolloutStatus) {
        tracing::warn!(plugin = versions.prepared.name(), version = rollout.version, "a new version is taken back");
        let installed = led_by(&versions, going.plugin, &going.loaded.stable, Some(&rollout));
        let load = taken_back(&rollout);
        self.note(going.plugin, rollout, load);
        self.start(going.plugin, installed);
    }

    fn start(&mut self, plugin: &Plugin, versions: LoadedVersions) {
        if let Err(error) = self.install(plugin, versions) {
            self.looker.loader.refused(&SourceId::Object(plugin.name_any()), &error);
        }
    }

    fn note(&mut self, plugin: &Plugin, rollout: RolloutStatus, load: Load) {
        if let Some(known) = self.known.get_mut(&plugin.name_any()) {
            known.rollout = Some(rollout);
            // What is wrong with the source is known from the last look at it.
            if load != Load::Loaded {
                known.load = load;
            }
        }
    }

    /// Writes which objects a new version answers, and nothing else that is new. Returns whether that is in the status now.
    async fn write_rollout(&mut self, plugin: &Arc<Plugin>, rollout: &RolloutStatus) -> bool {
        let known = self.known.get(&plugin.name_any());
        let (load, plan) = known.map_or((Load::Loaded, None), |known| (known.load.clone(), known.plan.clone()));
        let wanted = self.status_of(plugin, Said { load, rollout: Some(rollout.clone()), plan });
        self.write(plugin.clone(), wanted).await.is_some_and(|written| written.rollout.as_ref() == Some(rollout))
    }

    /// What is wrong with the pins of a `Plugin`, as far as that is known: before a version is loaded and its cache filled, anything may be there.
    pub(super) fn pin_trouble(&self, plugin: &Plugin) -> PinTrouble {
        let name = plugin.name_any();
        let loaded = self.looker.loader.versions(&SourceId::Object(name.clone()));
        let active = self.active(&name).filter(|active| active.objects.state() == WatchState::Synced);
        let mut refused = self.known.get(&name).map(|known| known.refused.clone()).unwrap_or_default();
        refused.retain(|refused| pins::digests(plugin).any(|pinned| pinned == refused.digest));
        let is_refused = |digest: &str| refused.iter().any(|refused| refused.digest == digest);
        let is_there =
            |loaded: &LoadedVersions, digest: &str| loaded.with_digest(digest).is_some() || is_refused(digest);
        let has_version = |loaded: LoadedVersions| pins::missing(plugin, |digest| is_there(&loaded, digest));
        let has_object = |active: Arc<ActivePlugin>| {
            pins::without_object(plugin, |object| active.objects.store().get(object).is_some())
        };
        PinTrouble {
            contradicting: pins::contradicting(plugin),
            missing_versions: loaded.map(has_version).unwrap_or_default(),
            refused: refused.iter().map(|refused| refused.told(plugin)).collect(),
            left_out: refused.into_iter().filter(|it| it.fate == Fate::LeftOut).map(|it| it.digest).collect(),
            missing_objects: active.map(has_object).unwrap_or_default(),
        }
    }
}

/// A `Plugin` whose new version does not answer all objects.
struct Going<'a> {
    plugin: &'a Arc<Plugin>,
    canary: &'a RolloutSpec,
    loaded: &'a LoadedVersions,
    active: &'a Versions,
}

impl Going<'_> {
    fn objects(&self) -> Vec<Arc<Object>> {
        self.active.stable().objects.store().select(None, |_| true)
    }

    /// The objects of which a new version gets a share. What it would not be asked about says nothing about it: a share of such objects alone
    /// would be none, and would never be over.
    fn asked_about(&self) -> Vec<Arc<Object>> {
        let pins = pins::targets(self.plugin);
        let is_asked_about = |object: &Object| !pins.contains_key(&object.name) && self.is_asked_about(object);
        self.active.stable().objects.store().select(None, is_asked_about)
    }

    /// Whether a version is asked about an object that no pin gives to another one. Who may annotate an object can suspend it, at any time.
    fn is_asked_about(&self, object: &Object) -> bool {
        let stable = self.active.stable();
        let is_served = stable.serves(&object.name.namespace);
        !object.deleting && not_ours(object, stable.manifest(), is_served).is_none()
    }
}

/// The version that works, which has to be there.
fn known_stable(plugin: &Plugin, found: &FoundVersions) -> Result<Arc<Prepared>, NotLoaded> {
    let digest = rollout::stable_of(plugin).unwrap_or_default();
    found.with_digest(digest).cloned().ok_or_else(|| {
        let (why, is_passing) = match &found.no_stable {
            Some(why) => (format!(" ({why})"), why.is_passing()),
            None => (String::new(), false),
        };
        NotLoaded::NoStable { digest: digest.to_owned(), why, is_passing }
    })
}

/// The same, and it has to be like the new one.
fn stable(plugin: &Plugin, found: &FoundVersions) -> Result<Arc<Prepared>, NotLoaded> {
    let stable = known_stable(plugin, found)?;
    let new = &found.prepared;
    if (stable.name(), stable.kind()) != (new.name(), new.kind()) {
        let (plugin, theirs) = (new.name().to_owned(), new.kind().clone());
        return Err(NotLoaded::NotAlike { kind: stable.kind().clone(), plugin, theirs });
    }
    Ok(stable)
}

/// Whether what is installed is at work.
fn is_installed(active: &Versions, loaded: &LoadedVersions) -> bool {
    let digests = || loaded.all().all(|version| active.with_digest(version.digest()).is_some());
    active.stable().reconciler.digest() == loaded.stable.digest()
        && active.stable().division == loaded.division
        && active.iter().count() == loaded.all().count()
        && digests()
}

/// How far a new version is that does not answer all objects yet.
pub fn progress_of(known: &Known) -> Option<(RolloutPhase, u32, Option<String>)> {
    known.rollout.as_ref().map(|it| (it.phase, it.step, it.up_to.clone()))
}

fn taken_back(rollout: &RolloutStatus) -> Load {
    let message = rollout.message.clone().unwrap_or_default();
    Load::Failed(Failure { reason: ROLLED_BACK, message, is_passing: false })
}
