//! Loads components and installs them in the host, for all sources. Knows what each source has loaded, so that no two plugins have one
//! name or one kind. Finds no components itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use pilothouse_engine::{
    CompileError, ConfigError, Declaration, Engine, LoadError, Manifest, Reconciler, StartError, contract::KindRef,
    kept_by,
};

pub use super::source_id::SourceId;
use super::{
    plugin_memory::{Kept, NoRoom, PluginMemory, Wanted},
    plugin_objects::config_digest,
};
use crate::{
    host::{Host, Lineup, LineupVersion},
    metrics::Collision,
    plugin::{Division, NotGranted, PluginSettings},
};

/// What each source has loaded.
type Loaded = BTreeMap<SourceId, LoadedVersions>;

/// Loads components for all sources.
pub struct Loader {
    engine: Engine,
    host: Arc<Host>,
    memory: Arc<PluginMemory>,
    loaded: Mutex<Loaded>,
    changes: AtomicU64,
}

/// A component that is ready to be installed, or was.
pub struct Prepared {
    plugin: Arc<pilothouse_engine::Plugin>,
    settings: PluginSettings,
    /// Of the component: the same with other settings keeps no more.
    kept: Arc<Kept>,
    /// Computed when it is asked for, and once: a canary asks four times a second.
    config_digest: OnceLock<String>,
}

impl Prepared {
    fn new(plugin: pilothouse_engine::Plugin, settings: PluginSettings, kept: Arc<Kept>) -> Self {
        Self { plugin: Arc::new(plugin), settings, kept, config_digest: OnceLock::new() }
    }

    /// The name of the plugin.
    pub fn name(&self) -> &str {
        &self.manifest().name
    }

    /// The kind that it reconciles.
    pub fn kind(&self) -> &KindRef {
        &self.manifest().reconciles
    }

    /// Its digest, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        self.plugin.digest()
    }

    /// Its version, as its manifest says.
    pub fn version(&self) -> &str {
        &self.manifest().version
    }

    /// What answers the objects.
    pub fn reconciler(&self) -> Arc<dyn Reconciler> {
        self.plugin.clone()
    }

    /// What it keeps of the memory of plugins, in bytes.
    pub fn kept_bytes(&self) -> usize {
        self.kept.bytes()
    }

    /// Whether it is one component with another one: both together keep what one does.
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kept, &other.kept)
    }

    /// Its settings.
    pub fn settings(&self) -> &PluginSettings {
        &self.settings
    }

    /// The digest of the configuration in them.
    pub fn config_digest(&self) -> &str {
        self.config_digest.get_or_init(|| config_digest::of_text(self.settings.config.as_deref()))
    }

    /// Whether it is of the same settings.
    pub fn has_settings(&self, settings: &PluginSettings) -> bool {
        self.settings == *settings
    }

    /// What it declares.
    pub fn manifest(&self) -> &Manifest {
        self.plugin.manifest()
    }

    /// Whether its kinds come from its configuration, and that is another one in these settings.
    pub fn is_made_anew_by(&self, settings: &PluginSettings) -> bool {
        self.plugin.takes_kinds_from_config() && self.settings.config != settings.config
    }
}

/// The versions that a source has loaded.
#[derive(Clone)]
pub struct LoadedVersions {
    /// The one that answers whatever no other one does.
    pub stable: Arc<Prepared>,
    /// The others.
    pub others: Vec<Arc<Prepared>>,
    /// Which objects each of them answers; none if there is only one.
    pub division: Option<Arc<Division>>,
    /// The finalizers that objects may have because of one of them, or of one before.
    pub finalizers: Arc<BTreeSet<String>>,
}

impl LoadedVersions {
    /// One version for all objects.
    pub fn one(prepared: Prepared) -> Self {
        Self { stable: Arc::new(prepared), others: Vec::new(), division: None, finalizers: Arc::default() }
    }

    /// The version with this digest, if it is loaded.
    pub fn with_digest(&self, digest: &str) -> Option<&Arc<Prepared>> {
        self.all().find(|version| version.digest() == digest)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Prepared>> {
        std::iter::once(&self.stable).chain(&self.others)
    }

    fn is_same(&self, other: &Self) -> bool {
        let versions = || self.all().zip(other.all()).all(|(one, other)| Arc::ptr_eq(one, other));
        // Fewer finalizers are no reason to begin anew: no object has the others any more.
        let knows_all = other.finalizers.is_subset(&self.finalizers);
        self.others.len() == other.others.len() && self.division == other.division && knows_all && versions()
    }

    /// The same without those beside the one that works of which this is true.
    fn without(&self, is_gone: impl Fn(&Prepared) -> bool) -> Self {
        let others = self.others.iter().filter(|version| !is_gone(version)).cloned().collect();
        Self { others, ..self.clone() }
    }

    fn map(&self, change: impl Fn(&Prepared) -> Prepared) -> Self {
        let changed = |version: &Arc<Prepared>| Arc::new(change(version));
        let others = self.others.iter().map(changed).collect();
        let (division, finalizers) = (self.division.clone(), self.finalizers.clone());
        Self { stable: changed(&self.stable), others, division, finalizers }
    }
}

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum NotLoaded {
    /// It is no plugin, or it does not fit.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its manifest asks for more than is granted.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
    /// All plugins keep as much memory as they may.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Its configuration does not fit the schema in the manifest of this version, or of one that works beside it.
    #[error("{error} (version {version})")]
    Config {
        /// The version.
        version: String,
        /// What does not fit.
        error: ConfigError,
    },
    /// Another plugin has a metric of the same name that differs.
    #[error(transparent)]
    Metric(#[from] Collision),
    /// Another plugin has its name.
    #[error("plugin '{name}' is loaded from {source_id} already; remove one")]
    NameTaken {
        /// The name.
        name: String,
        /// Where the other one comes from.
        source_id: SourceId,
    },
    /// It cannot work beside the version that works.
    #[error(
        "a canary needs a version for {kind} under the same name, and this one is '{plugin}' for {theirs}; use the strategy Immediate \
         for it"
    )]
    NotAlike {
        /// The kind of the version that works.
        kind: KindRef,
        /// The name of the new one.
        plugin: String,
        /// Its kind.
        theirs: KindRef,
    },
    /// How its objects do is not its own to say.
    #[error(
        "a canary is judged by the conditions of its objects, and those of a decorator's are not its own; use the strategy Immediate for it"
    )]
    CanaryOfDecorator,
    /// The version that worked is not to be had.
    #[error(
        "version sha256:{digest} answered the objects, and neither this host nor its source has it any more{why}, so there is nothing to \
         go back to; give the source that version, or have the new one take over: with the strategy Immediate, and approved where a \
         plan is required"
    )]
    NoStable {
        /// Its digest.
        digest: String,
        /// Why its source does not give it, in parentheses; empty if the source is not known.
        why: String,
        /// Whether that may pass.
        is_passing: bool,
    },
    /// Another plugin reconciles its kind.
    #[error("{kind} is reconciled by plugin '{plugin}' already, from {source_id}; remove one")]
    KindTaken {
        /// The kind.
        kind: KindRef,
        /// The other plugin.
        plugin: String,
        /// Where the other one comes from.
        source_id: SourceId,
    },
}

impl NotLoaded {
    /// The CamelCase word for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Load(LoadError::Manifest(_)) => "NoPlugin",
            Self::Load(LoadError::Compile(_)) => "NotCompiled",
            Self::Load(LoadError::Code(_)) => "LoadFailed",
            Self::Load(LoadError::Link(_)) => "ContractViolated",
            Self::Load(LoadError::Start(_)) => "StartFailed",
            Self::Load(LoadError::Config(_)) => "ConfigInvalid",
            Self::NotGranted(_) => "NotGranted",
            Self::NoRoom(_) => "PluginMemoryUsed",
            Self::Config { .. } => "ConfigInvalid",
            Self::Metric(_) => "MetricTaken",
            Self::NotAlike { .. } | Self::CanaryOfDecorator => "CanaryImpossible",
            Self::NoStable { .. } => "StableVersionMissing",
            Self::NameTaken { .. } => "NameTaken",
            Self::KindTaken { .. } => "KindTaken",
        }
    }

    /// Whether it may help to try again: the machine was in the way, and not the component.
    pub fn is_passing(&self) -> bool {
        let why = match self {
            Self::Load(why) => why,
            Self::NoStable { is_passing, .. } => return *is_passing,
            _ => return false,
        };
        matches!(
            why,
            LoadError::Code(_)
                | LoadError::Compile(CompileError::Io { .. })
                // A deadline may be missed because the machine is busy.
                | LoadError::Start(StartError::Deadline(_))
        )
    }

    /// Where the plugin comes from that has the name or the kind.
    pub fn in_the_way(&self) -> Option<&SourceId> {
        match self {
            Self::NameTaken { source_id, .. } | Self::KindTaken { source_id, .. } => Some(source_id),
            _ => None,
        }
    }

    /// Whether another plugin is in the way, so that it can help if that one goes.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::NameTaken { .. } | Self::KindTaken { .. } | Self::Metric(Collision::Plugin { .. }))
    }
}

impl Loader {
    /// A loader that has loaded nothing yet, for plugins that may keep so many bytes of memory together.
    pub fn new(engine: Engine, host: Arc<Host>, plugin_memory: usize) -> Arc<Self> {
        let memory = PluginMemory::new(plugin_memory, host.metrics().plugins.may_keep(plugin_memory));
        Arc::new(Self { engine, host, memory, loaded: Mutex::default(), changes: AtomicU64::new(0) })
    }

    /// The host.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The memory of the plugins that are loaded.
    pub fn memory(&self) -> &PluginMemory {
        &self.memory
    }

    /// Whether the machine code of the component with this digest is there, so that it need not be compiled.
    pub fn is_compiled(&self, digest: &str) -> bool {
        self.engine.is_compiled(digest)
    }

    /// Keeps the machine code of the components with these digests, also while no version of them is loaded.
    pub fn keep_compiled(&self, digests: BTreeSet<String>) {
        self.engine.keep_compiled(digests);
    }

    /// What a source has loaded; none if nothing of it is at work.
    pub fn loaded(&self, id: &SourceId) -> Option<Arc<Prepared>> {
        self.lock().get(id).map(|loaded| loaded.stable.clone())
    }

    /// All versions that a source has loaded; none if nothing of it is at work.
    pub fn versions(&self, id: &SourceId) -> Option<LoadedVersions> {
        self.lock().get(id).cloned()
    }

    /// Loads a component and installs it in the place of what the source had before.
    ///
    /// # Errors
    /// [`NotLoaded`]. What the source had before goes on.
    pub async fn load(&self, id: &SourceId, bytes: Vec<u8>, settings: PluginSettings) -> Result<(), NotLoaded> {
        let result = match self.prepare(id, bytes, settings, 0).await {
            Ok(prepared) => self.install(id, LoadedVersions::one(prepared)),
            Err(why) => Err(why),
        };
        if let Err(why) = &result {
            self.refused(id, why);
        }
        result
    }

    /// Judges and compiles a component of this source. It is not at work yet. `beside`: the bytes that other versions of the source keep which
    /// stay when it works.
    ///
    /// # Errors
    /// [`NotLoaded`].
    pub async fn prepare(
        &self,
        id: &SourceId,
        bytes: impl Into<Arc<[u8]>>,
        settings: PluginSettings,
        beside: usize,
    ) -> Result<Prepared, NotLoaded> {
        let bytes = bytes.into();
        let declaration = Declaration::read(&bytes).map_err(LoadError::Manifest)?;
        if let Declaration::Fixed(manifest) = &declaration {
            // Before it is compiled: what is not granted costs nothing.
            settings.grants.check(manifest)?;
            self.check_config(manifest, &settings)?;
        }
        // Before it is compiled: what has no room costs nothing either.
        let kept = self.memory.take(id, Wanted { bytes: kept_by(&bytes), beside })?;
        let limits = settings.limits.of_calls(self.engine.limits().clone());
        let loaded = self.engine.load_configured(bytes, limits, settings.config.as_deref()).await;
        let plugin = loaded.map_err(|error| of_load(declaration.version(), error))?;
        // What is made of a configuration is known by now only.
        settings.grants.check(plugin.manifest())?;
        Ok(Prepared::new(plugin, settings, Arc::new(kept)))
    }

    /// What is loaded already, as is said of it now.
    ///
    /// # Errors
    /// [`NotLoaded`]: it may not, or its configuration does not fit.
    pub async fn settled(&self, loaded: &Prepared, settings: &PluginSettings) -> Result<Prepared, NotLoaded> {
        let asked = match loaded.is_made_anew_by(settings) {
            true => {
                let plugin = self.engine.reconfigured(&loaded.plugin, settings.config.as_deref()).await;
                let plugin = plugin.map_err(|error| of_load(loaded.version(), error))?;
                Some(Prepared::new(plugin, settings.clone(), loaded.kept.clone()))
            }
            false => None,
        };
        let loaded = asked.as_ref().unwrap_or(loaded);
        settings.grants.check(loaded.manifest())?;
        self.check_config(loaded.manifest(), settings)?;
        Ok(self.with_settings(loaded, settings))
    }

    /// The same for what is looked at anew: it has to start within the limits of now.
    ///
    /// # Errors
    /// [`NotLoaded`].
    pub async fn settled_anew(&self, loaded: &Prepared, settings: &PluginSettings) -> Result<Prepared, NotLoaded> {
        let settled = self.settled(loaded, settings).await?;
        if loaded.settings.limits != settings.limits {
            self.engine.try_start(&settled.plugin).await?;
        }
        Ok(settled)
    }

    /// The same component under these settings, which it is allowed to have.
    fn with_settings(&self, loaded: &Prepared, settings: &PluginSettings) -> Prepared {
        let limits = settings.limits.of_calls(self.engine.limits().clone());
        Prepared::new(self.engine.limited(&loaded.plugin, limits), settings.clone(), loaded.kept.clone())
    }

    /// Installs what is prepared in the place of what the source had before.
    ///
    /// # Errors
    /// [`NotLoaded`]: another plugin is in the way. What the source had before goes on.
    pub fn install(&self, id: &SourceId, versions: LoadedVersions) -> Result<(), NotLoaded> {
        let mut all = self.lock();
        // Under one lock with the rest: another source may be about to install its own.
        if let Some(conflict) = self.conflicts_among(&all, id, versions.stable.manifest()).into_iter().next() {
            return Err(conflict);
        }
        let before = all.get(id).cloned();
        if let Some(former) = before.as_ref().filter(|before| before.stable.name() != versions.stable.name()) {
            self.host.depart(former.stable.name());
        }
        self.host.metrics().measurements.declare(versions.stable.manifest());
        if before.as_ref().is_some_and(|before| before.is_same(&versions)) {
            return Ok(());
        }
        let is_new = |version: &&Arc<Prepared>| {
            before.as_ref().is_none_or(|before| !before.all().any(|known| Arc::ptr_eq(known, version)))
        };
        for version in versions.all().filter(is_new) {
            self.tell(id, version);
        }
        self.start(&mut all, id, versions);
        Ok(())
    }

    /// Counts and tells that a component was loaded.
    fn tell(&self, id: &SourceId, version: &Prepared) {
        let (manifest, stats) = (version.manifest(), &version.plugin.stats);
        self.host.metrics().plugins.loaded(&manifest.name, stats);
        tracing::info!(
            source = %id, plugin = manifest.name, version = manifest.version, kind = %manifest.reconciles,
            cached = stats.compiling.is_none(), took = ?stats.duration, "plugin loaded"
        );
    }

    /// Has what a source has loaded go on with what is said of it now. A version beside the one that works keeps a configuration where the
    /// present one does not fit.
    ///
    /// # Errors
    /// [`NotGranted`] if it asks for more than it may by now. It is taken from work.
    pub fn settle(&self, id: &SourceId, settings: &PluginSettings) -> Result<(), NotGranted> {
        self.go_on(id, |version| match self.check_config(version.manifest(), settings) {
            Ok(()) => settings.clone(),
            Err(_) => settings.with_config(version.settings.config.clone()),
        })
    }

    fn go_on(&self, id: &SourceId, settings_of: impl Fn(&Prepared) -> PluginSettings) -> Result<(), NotGranted> {
        let Some(loaded) = self.versions(id) else { return Ok(()) };
        if loaded.all().all(|version| version.has_settings(&settings_of(version))) {
            return Ok(());
        }
        let checked = |version: &Prepared| settings_of(version).grants.check(version.manifest());
        if let Err(refused) = checked(&loaded.stable) {
            self.remove(id);
            return Err(refused);
        }
        tracing::info!(source = %id, plugin = loaded.stable.name(), "the plugin goes on as is said of it now");
        // One beside it that may not work any more does not stop it: nobody answers the objects of that one.
        let may_work = |version: &Prepared| match checked(version) {
            Ok(()) => true,
            Err(refused) => {
                let (plugin, version) = (version.name(), version.version());
                tracing::warn!(source = %id, plugin, version, "a version beside the one that works is stopped: {refused}");
                false
            }
        };
        let versions = loaded
            .without(|version| !may_work(version))
            .map(|version| self.with_settings(version, &settings_of(version)));
        self.start(&mut self.lock(), id, versions);
        Ok(())
    }

    /// Has what a source has loaded go on with a configuration of which its kinds are made anew.
    ///
    /// # Errors
    /// [`NotLoaded`]: it cannot use it, or it is another plugin with it that cannot be at work. What the source had goes on.
    pub async fn make_anew(&self, id: &SourceId, settings: &PluginSettings) -> Result<(), NotLoaded> {
        let Some(loaded) = self.versions(id) else { return Ok(()) };
        let stable = Arc::new(self.settled(&loaded.stable, settings).await?);
        let mut others = Vec::new();
        for other in &loaded.others {
            // One beside it that cannot use it keeps the one that it had.
            let kept = settings.with_config(other.settings.config.clone());
            let other = match self.settled(other, settings).await {
                Err(NotLoaded::Config { .. }) => self.settled(other, &kept).await,
                settled => settled,
            };
            others.extend(other.ok().map(Arc::new));
        }
        self.install(id, LoadedVersions { stable, others, ..loaded })
    }

    /// Whether what a source has loaded can go on with the configuration that is said of it now.
    ///
    /// # Errors
    /// [`NotLoaded::Config`] if that does not fit the schema in its manifest.
    pub fn fits(&self, id: &SourceId, settings: &PluginSettings) -> Result<(), NotLoaded> {
        self.loaded(id).map_or(Ok(()), |loaded| self.check_config(loaded.manifest(), settings))
    }

    fn check_config(&self, manifest: &Manifest, settings: &PluginSettings) -> Result<(), NotLoaded> {
        let checked = manifest.check_config(self.host.config_of(&manifest.name, settings).as_deref());
        checked.map_err(|error| NotLoaded::Config { version: manifest.version.clone(), error })
    }

    /// The same where the source does not give what is asked for: what the plugin may do must not wait for that. Each version keeps its
    /// configuration, for that belongs to what is asked for.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn restrict(&self, id: &SourceId, settings: &PluginSettings) -> Result<(), NotGranted> {
        self.go_on(id, |version| settings.with_config(version.settings.config.clone()))
    }

    fn start(&self, all: &mut Loaded, id: &SourceId, versions: LoadedVersions) {
        let working = |version: &Arc<Prepared>| LineupVersion {
            reconciler: version.plugin.clone(),
            settings: version.settings.clone(),
        };
        self.host.install_versions(Lineup {
            stable: working(&versions.stable),
            others: versions.others.iter().map(working).collect(),
            division: versions.division.clone(),
            finalizers: versions.finalizers.clone(),
        });
        all.insert(id.clone(), versions);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts and tells that a component was not loaded.
    pub fn refused(&self, id: &SourceId, why: &NotLoaded) {
        self.host.metrics().plugins.load_failed();
        let goes_on = if self.loaded(id).is_some() { "; the version that works goes on" } else { "" };
        tracing::error!(source = %id, "the plugin was not loaded{goes_on}: {why}");
    }

    /// All conflicts of what declares this with what is at work. A metric counts if its owner is not in the way already.
    pub fn conflicts(&self, id: &SourceId, manifest: &Manifest) -> Vec<NotLoaded> {
        self.conflicts_among(&self.lock(), id, manifest)
    }

    fn conflicts_among(&self, all: &Loaded, id: &SourceId, manifest: &Manifest) -> Vec<NotLoaded> {
        let (mut conflicts, mut in_the_way) = (Vec::new(), Vec::new());
        for (other, theirs) in all.iter().filter(|(other, _)| *other != id) {
            if let Some(conflict) = conflict(manifest, other, &theirs.stable) {
                conflicts.push(conflict);
                in_the_way.push(theirs.stable.name());
            }
        }
        // What it was itself makes room, too.
        in_the_way.extend(all.get(id).map(|before| before.stable.name()));
        let metrics = self.host.metrics().measurements.check(manifest, &in_the_way);
        conflicts.extend(metrics.err().map(NotLoaded::Metric));
        conflicts
    }

    /// Takes what a source has loaded from work. Returns whether there was anything.
    pub fn remove(&self, id: &SourceId) -> bool {
        let Some(loaded) = self.lock().remove(id) else { return false };
        self.host.depart(loaded.stable.name());
        self.changes.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// How often a plugin was loaded or taken from work. What was refused because of another plugin can be worth a try once this is another
    /// number.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a component of this version was not loaded.
fn of_load(version: &str, error: LoadError) -> NotLoaded {
    match error {
        LoadError::Config(error) => NotLoaded::Config { version: version.to_owned(), error },
        error => NotLoaded::Load(error),
    }
}

/// What is in the way of a plugin: another one of its name, or another owner of its kind. Two of a kind would fight over the same children;
/// decorators have children of their own.
fn conflict(manifest: &Manifest, other: &SourceId, theirs: &Prepared) -> Option<NotLoaded> {
    let source_id = other.clone();
    if theirs.name() == manifest.name {
        return Some(NotLoaded::NameTaken { name: theirs.name().to_owned(), source_id });
    }
    let (kind, plugin) = (manifest.reconciles.clone(), theirs.name().to_owned());
    theirs.manifest().owns_kind_of(manifest).then_some(NotLoaded::KindTaken { kind, plugin, source_id })
}
