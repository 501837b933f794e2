//! One project: a round from its sources to its version at work, and what it shows of that. If a step fails, the version before goes on.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use pilothouse_authoring::COMPOSITION;
use pilothouse_controller::{
    errors::chain,
    metrics::Format,
    source::{
        loader::{LoadedVersions, Prepared, SourceId},
        plugin_objects::PlannedVersion,
    },
};
use pilothouse_engine::{Reconciler, digest};
use pilothouse_forecast::{self as forecast, Bounds, Depth, ReadError, Report, report::Effect};
use pilothouse_offline::cases::report;
use tokio::time::{Instant, timeout};

use super::{
    Target,
    at_work::{Calls, CallsTold},
    definitions::Definitions,
    held_back::HeldBack,
    made::Made,
    view::{Note, Stage, View},
};
use crate::{
    plan::{self, present},
    test::{self, versions::Versions},
};

/// How many objects are shown what a new version would change of, and how long it may take to find out.
const BOUNDS: Bounds = Bounds { objects: 50, time: Duration::from_secs(5) };

/// How long it may take to read what a version needs to see, before it is put to work without a word about what it changes.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// How long a version may take to begin its work, before it is told what it waits for.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// A project.
pub(super) struct Project {
    folder: PathBuf,
    label: String,
    definitions: Definitions,
    /// The name of the plugin that was installed last.
    plugin: Option<String>,
    calls: CallsTold,
    held_back: HeldBack,
    view: View,
}

impl Project {
    /// A project that was not built yet.
    pub(super) fn new(folder: PathBuf, view: View) -> Self {
        Self {
            label: label(&folder),
            folder,
            view,
            definitions: Definitions::default(),
            plugin: None,
            calls: CallsTold::default(),
            held_back: HeldBack::default(),
        }
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Builds it and puts it to work; `since` is when it was saved. Shows how that goes, and the error if it fails.
    pub(super) async fn round(&mut self, target: &Target, since: Instant) {
        self.view.stage(&self.label, Stage::Building(since.into_std()));
        let result = self.try_round(target, since).await;
        let at_work = target.loader.loaded(&self.source()).map(|version| name(&version));
        let Err(error) = result else {
            return self.view.stage(&self.label, at_work.map_or(Stage::Waiting, Stage::AtWork));
        };
        let goes_on = at_work.as_ref().map(|version| format!("; version {version} goes on"));
        self.tell(&format!("error: {}{}", chain(error.as_ref()), goes_on.unwrap_or_default()));
        self.view.stage(&self.label, Stage::Failed(at_work));
    }

    /// Shows what its version at work has done since the last time.
    pub(super) fn look(&mut self, target: &Target) {
        let Some(plugin) = &self.plugin else { return };
        let news = self.calls.news(Calls::of(plugin, &target.host().metrics().exposition(Format::Classic)));
        let version = target.host().active_plugin(plugin);
        let held = version.and_then(|version| self.held_back.look(&version));
        if let Some(calls) = &news {
            self.view.note(&self.label, Note::Calls(calls.clone()));
        }
        self.view.note(&self.label, Note::Asks(self.held_back.is_any()));
        for text in news.into_iter().chain(held) {
            self.tell(&text);
        }
    }

    /// The author means what is held back.
    pub(super) async fn confirm(&mut self, target: &Target) {
        for text in self.held_back.confirm(target).await {
            self.tell(&text);
        }
    }

    async fn try_round(&mut self, target: &Target, since: Instant) -> anyhow::Result<()> {
        let made = self.make().await?;
        for name in self.definitions.apply(&target.client, &self.folder).await? {
            self.tell(&format!("applied CustomResourceDefinition {name}"));
        }
        let is_same = |before: &Prepared| before.digest() == digest(&made.wasm) && before.has_settings(&made.settings);
        if let Some(before) = target.loader.loaded(&self.source()).filter(|before| is_same(before)) {
            // A test case may be what was saved.
            return self.run_cases(target, &made, &before).await;
        }
        let prepared = target.loader.prepare(&self.source(), made.wasm.clone(), made.settings.clone(), 0).await?;
        if let Some(other) = present::in_the_way(&target.client, prepared.manifest()).await? {
            bail!(
                "{} is reconciled by the Plugin '{other}' of the cluster; suspend that one, or work on another cluster",
                prepared.kind()
            );
        }
        self.run_cases(target, &made, &prepared).await?;
        self.show_changes(target, &prepared).await?;
        self.install(target, prepared, since).await
    }

    async fn make(&self) -> anyhow::Result<Made> {
        self.tell("building");
        let folder = self.folder.clone();
        tokio::task::spawn_blocking(move || Made::of(&folder)).await.context("the build was broken off")?
    }

    /// Shows the cases that fail or of which there is something to know, and how many there are.
    async fn run_cases(&self, target: &Target, made: &Made, prepared: &Prepared) -> anyhow::Result<()> {
        let mut results = Vec::new();
        // Cases of a kind without code may have a configuration of their own, such as those that were captured.
        let mut versions = match made.is_composition() {
            true => Some(Versions::load(&made.file, &target.cache_dir, None).await?),
            false => None,
        };
        for file in test::files::of_project(&self.folder)? {
            let ran = match &mut versions {
                Some(versions) => test::run_configured(versions, &file).await,
                None => test::run_cases(&*prepared.reconciler(), &file).await,
            };
            match ran {
                Ok(of_file) => results.extend(of_file),
                // The others are worth to be seen, too.
                Err(error) => self.tell(&format!("error: {}", chain(error.as_ref()))),
            }
        }
        for told in results.iter().filter(|result| !result.is_passed() || !result.ran.notes.is_empty()) {
            self.tell(told.text().trim_end());
        }
        let failed = report::failed(&results);
        self.view.note(&self.label, Note::Cases { all: results.len(), failed });
        self.tell(&format!("{} cases: {} passed, {failed} failed", results.len(), results.len() - failed));
        Ok(())
    }

    /// Shows what the version would change of the objects that are there.
    async fn show_changes(&self, target: &Target, prepared: &Prepared) -> anyhow::Result<()> {
        let (version, settings) = (prepared.reconciler(), prepared.settings().clone());
        let planned = PlannedVersion { version: version.clone(), settings, division: None };
        let cluster = match timeout(READ_WITHIN, forecast::Cluster::of_host(target.host(), planned)).await {
            Ok(Ok(cluster)) => cluster,
            // So there are no objects.
            Ok(Err(ReadError::NotInstalled(_))) => return Ok(()),
            Ok(Err(error)) => bail!("failed to look what the new version changes: {error}"),
            Err(_) => {
                self.tell(&format!("its objects are not read after {READ_WITHIN:?}; it is not shown what changes"));
                return Ok(());
            }
        };
        let forecast = cluster.forecast(Depth::First, BOUNDS, |_| ()).await;
        let report = Report::of(&*version, None, &forecast);
        if report.counts.effect() != Effect::Nothing {
            self.view.print(&plan::text::text(&report, self.view.has_colours())?);
        }
        let left = cluster.names().len().saturating_sub(forecast.objects.len());
        if left > 0 {
            self.tell(&format!("{left} more objects were not looked at"));
        }
        Ok(())
    }

    /// Puts the version to work, and waits until it is.
    async fn install(&mut self, target: &Target, prepared: Prepared, since: Instant) -> anyhow::Result<()> {
        let (title, plugin, version) = (name(&prepared), prepared.name().to_owned(), prepared.reconciler());
        target.loader.install(&self.source(), LoadedVersions::one(prepared))?;
        if self.plugin.as_ref() != Some(&plugin) {
            self.calls = CallsTold::default();
        }
        self.plugin = Some(plugin.clone());
        match timeout(BEGINS_WITHIN, until_at_work(target, &plugin, &*version)).await {
            Ok(()) => {
                self.tell(&format!("{title} is at work, {:.1} s after it was saved", since.elapsed().as_secs_f64()))
            }
            Err(_) => {
                let waits = target.host().not_ready().join("; ");
                self.tell(&format!("{title} is not at work yet: {waits}"));
            }
        }
        Ok(())
    }

    /// Where its plugin comes from.
    fn source(&self) -> SourceId {
        SourceId::File(self.folder.clone())
    }

    fn tell(&self, text: &str) {
        self.view.tell(&self.label, text);
    }
}

/// What a project is called: as its folder.
pub(super) fn label(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Waits until exactly this is at work: another configuration of a component has the same digest.
async fn until_at_work(target: &Target, plugin: &str, version: &dyn Reconciler) {
    let (host, mut begun) = (target.host(), 0);
    loop {
        begun = host.begun_since(begun).await;
        if host.active_plugin(plugin).is_some_and(|active| std::ptr::addr_eq(&*active.reconciler, version)) {
            return;
        }
    }
}

/// A version for people. That of a kind without code is named by its configuration, for its component is that of others, too.
fn name(prepared: &Prepared) -> String {
    let (what, digest) = match prepared.settings().config {
        Some(_) => (format!("{COMPOSITION} "), prepared.config_digest()),
        None => (String::new(), prepared.digest()),
    };
    let digits = digest.rsplit(':').next().unwrap_or_default();
    format!("{} ({what}{})", prepared.version(), &digits[..digits.floor_char_boundary(12)])
}
