//! One look at a `Plugin`: finds its component, judges it and compiles it. Installs nothing and writes nothing, so that many looks can go
//! on at once and what they find can be thrown away.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::task::{Id, JoinSet};

use super::{
    content::{Component, ContentError, Contents, NoComponent, Work},
    digest_text, pins,
    refused::{Fate, RefusedVersion},
    rollout,
};
use crate::{
    api::Plugin,
    plugin::PluginSettings,
    source::loader::{LoadedVersions, Loader, NotLoaded, Prepared, SourceId},
};

/// A look that is asked for.
pub struct Look {
    /// The name of the `Plugin`.
    pub name: String,
    /// The `Plugin`.
    pub plugin: Arc<Plugin>,
    /// What it says beside its component.
    pub settings: PluginSettings,
    /// The same for the version that works, and for those that are pinned, while the source has another one.
    pub working: PluginSettings,
    /// The versions that are ready and answer nothing.
    pub set_aside: Vec<Arc<Prepared>>,
    /// The digest of the manifest that its tag stood for at the last look, if nothing but the tag is worth a look.
    pub tag: Option<String>,
}

impl Look {
    fn id(&self) -> SourceId {
        SourceId::Object(self.name.clone())
    }

    /// What is said of the versions beside the one of this digest, which the source has.
    fn settings_beside(&self, digest: &str) -> &PluginSettings {
        match rollout::stable_of(&self.plugin) {
            Some(stable) if stable != digest && rollout::needs_stable(&self.plugin.spec) => &self.working,
            _ => &self.settings,
        }
    }
}

/// The versions that a look found.
pub struct FoundVersions {
    /// The one that it is about: what the source has, or what worked before.
    pub prepared: Arc<Prepared>,
    /// Those that are needed beside it, as far as they are to be had.
    pub others: Vec<Arc<Prepared>>,
    /// Why the one that works is not among them, if its source was asked for it.
    pub no_stable: Option<ContentError>,
    /// Those that are needed for pins alone and do not take what is said now.
    pub refused: Vec<RefusedVersion>,
}

/// The versions that are needed beside another one.
struct Others {
    /// That one.
    main: Arc<Prepared>,
    found: Vec<Arc<Prepared>>,
    no_stable: Option<ContentError>,
    refused: Vec<RefusedVersion>,
}

impl Others {
    /// None yet.
    fn beside(main: &Arc<Prepared>) -> Self {
        Self { main: main.clone(), found: Vec::new(), no_stable: None, refused: Vec::new() }
    }

    /// All versions so far.
    fn all(&self) -> Vec<&Arc<Prepared>> {
        std::iter::once(&self.main).chain(&self.found).collect()
    }
}

impl FoundVersions {
    /// Those that are loaded already.
    pub fn of_loaded(loaded: &LoadedVersions) -> Self {
        let (prepared, others) = (loaded.stable.clone(), loaded.others.clone());
        Self { prepared, others, no_stable: None, refused: Vec::new() }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Prepared>> {
        std::iter::once(&self.prepared).chain(&self.others)
    }

    /// The one with this digest.
    pub fn with_digest(&self, digest: &str) -> Option<&Arc<Prepared>> {
        self.all().find(|version| version.digest() == digest)
    }
}

/// What a look found.
pub enum Found {
    /// It is suspended.
    Suspended,
    /// Its tag stands for what it stood for at the last look.
    Unchanged,
    /// A component, the one that is at work or another one.
    Prepared {
        /// What is ready to be installed.
        versions: FoundVersions,
        /// The component, to be kept once it is installed.
        component: Component,
    },
    /// No component.
    NoComponent(NoComponent),
    /// A component that does not load.
    NotLoaded {
        /// Its digest, hexadecimal digits.
        digest: String,
        /// Why.
        why: NotLoaded,
    },
}

/// A look that has ended.
pub struct Looked {
    /// The `Plugin` as it was looked at.
    pub plugin: Arc<Plugin>,
    /// The digest of the manifest that its tag stands for; none if it has no tag, or if that is not known.
    pub tag: Option<String>,
    /// What was found.
    pub found: Found,
    /// The versions that the status says are at work, if this host has none of them yet and something else was found: it may not go to
    /// work.
    pub worked_before: Option<FoundVersions>,
    /// Whether it was found among the components that are kept, so that nobody has asked the source yet.
    pub is_kept: bool,
}

/// A look of [`Looks`] that has ended.
pub struct EndedLook {
    /// The name of the `Plugin`.
    pub name: String,
    /// What became of it.
    pub looked: Looked,
    /// Whether another one was asked for meanwhile.
    pub is_followed: bool,
}

/// The looks that go on, one for a `Plugin` at most.
#[derive(Default)]
pub struct Looks {
    tasks: JoinSet<(String, Looked)>,
    under_way: BTreeMap<String, UnderWay>,
}

/// A look that goes on.
struct UnderWay {
    task: Id,
    /// Whether another look follows.
    is_followed: bool,
}

/// What a look needs.
#[derive(Clone)]
pub struct Looker {
    /// Where components come from.
    pub contents: Contents,
    /// What compiles them.
    pub loader: Arc<Loader>,
}

impl Looks {
    /// Begins a look, or has one follow the one that goes on.
    pub fn begin(&mut self, looker: &Looker, look: Look) {
        if let Some(under_way) = self.under_way.get_mut(&look.name) {
            under_way.is_followed = true;
            return;
        }
        let looker = Looker { contents: looker.contents.for_look(), loader: looker.loader.clone() };
        let name = look.name.clone();
        let task = self.tasks.spawn(async move {
            let looked = looker.look(&look).await;
            (look.name, looked)
        });
        self.under_way.insert(name, UnderWay { task: task.id(), is_followed: false });
    }

    /// Whether one goes on.
    pub fn is_under_way(&self, name: &str) -> bool {
        self.under_way.contains_key(name)
    }

    /// The next look that ends. Waits for ever while none goes on.
    pub async fn next(&mut self) -> EndedLook {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((name, looked))) => {
                    let is_followed = self.under_way.remove(&name).is_some_and(|it| it.is_followed);
                    return EndedLook { name, looked, is_followed };
                }
                // A panic. The Plugin is looked at again with the next change of it.
                Some(Err(error)) => {
                    tracing::error!("a look at a Plugin ended without a result: {error}");
                    self.under_way.retain(|_, it| it.task != error.id());
                }
                None => std::future::pending().await,
            }
        }
    }
}

impl Looker {
    async fn look(&self, look: &Look) -> Looked {
        let looked = self.found(look).await;
        Looked { worked_before: self.worked_before(look, &looked.found).await, ..looked }
    }

    async fn found(&self, look: &Look) -> Looked {
        let spec = &look.plugin.spec;
        let looked =
            |tag, found| Looked { plugin: look.plugin.clone(), tag, found, worked_before: None, is_kept: false };
        if spec.suspended {
            return looked(None, Found::Suspended);
        }
        // A host that starts does not wait for sources. They are asked afterwards, to tell what is wrong with them.
        if self.loader.loaded(&look.id()).is_none()
            && let Some(digest) = spec.digest.as_deref().and_then(digest_text::digits)
            && let Some(component) = self.contents.read_kept(spec, self.work(digest)).await
        {
            return Looked { is_kept: true, ..looked(None, self.load(look, component).await) };
        }
        // Before the component is read: if the tag moves meanwhile, the next look finds that it stands for something else.
        let tag = match self.contents.resolve(&spec.source).await {
            Ok(tag) => tag,
            Err(error) => return looked(None, Found::NoComponent(error.into())),
        };
        if tag.is_some() && tag == look.tag {
            return looked(tag, Found::Unchanged);
        }
        let found = match self.contents.read(spec).await {
            Ok(component) => self.load(look, component).await,
            Err(error) => Found::NoComponent(error),
        };
        looked(tag, found)
    }

    async fn load(&self, look: &Look, component: Component) -> Found {
        let known = self.known(look, &component.digest);
        let prepared = match &known {
            Some(known) if known.has_settings(&look.settings) => Ok(known.clone()),
            Some(known) => self.loader.settled_anew(known, &look.settings).await.map(Arc::new),
            None => {
                let (bytes, beside) = (component.bytes.clone(), self.kept_beside(look, &component.digest, &[]));
                self.loader.prepare(&look.id(), bytes, look.settings.clone(), beside).await.map(Arc::new)
            }
        };
        let found = match prepared {
            Ok(prepared) => self.others(look, &prepared).await.map_err(|why| match (why, known) {
                // It goes as well, so the next try needs room for both.
                (NotLoaded::NoRoom(why), None) => why.together_with(prepared.kept_bytes()).into(),
                (why, _) => why,
            }),
            Err(why) => Err(why),
        };
        match found {
            Ok(Others { main: prepared, found: others, no_stable, refused }) => {
                Found::Prepared { versions: FoundVersions { prepared, others, no_stable, refused }, component }
            }
            Err(why) => Found::NotLoaded { digest: component.digest, why },
        }
    }

    /// What versions keep that stay beside the one of this digest: those of the present look, and others that it will need.
    fn kept_beside(&self, look: &Look, digest: &str, present: &[&Arc<Prepared>]) -> usize {
        let is_present = |wanted: &str| present.iter().any(|version| version.digest() == wanted);
        let to_come = rollout::needed_beside(&look.plugin, digest).into_iter().filter(|wanted| !is_present(wanted));
        let to_come = to_come.filter_map(|digest| self.known(look, digest));
        let all = present.iter().copied().cloned().chain(to_come).filter(|version| version.digest() != digest);
        all.map(|version| version.kept_bytes()).sum()
    }

    /// The versions that are at work by the status, if nothing of the `Plugin` is yet, so that a host that starts goes on with them whatever
    /// the source has by then. None if the source has the one that works, or if that is not to be had.
    async fn worked_before(&self, look: &Look, found: &Found) -> Option<FoundVersions> {
        let plugin = &*look.plugin;
        let stable = rollout::stable_of(plugin).filter(|_| plugin.spec.rollout.is_some())?;
        let prepared = match found {
            Found::Suspended | Found::Unchanged => return None,
            Found::Prepared { versions, .. } if versions.prepared.digest() == stable => return None,
            Found::Prepared { versions, .. } => Some(versions),
            Found::NoComponent(_) | Found::NotLoaded { .. } => None,
        };
        if self.loader.loaded(&look.id()).is_some() {
            return None;
        }
        match self.with_stable(look, stable, prepared).await {
            Ok(versions) => versions,
            Err(error) => {
                tracing::warn!(plugin = look.name, "the version that worked does not load: {error}");
                None
            }
        }
    }

    /// The version that works, with the one that is tried and those of pins as far as they are to be had. `ready`: what the look has prepared
    /// already.
    async fn with_stable(
        &self,
        look: &Look,
        stable: &str,
        ready: Option<&FoundVersions>,
    ) -> Result<Option<FoundVersions>, NotLoaded> {
        let ready = |digest: &str| ready.and_then(|versions| versions.with_digest(digest)).cloned();
        let prepared = match ready(stable) {
            Some(ready) => Ok(ready),
            None => self.stable(look, stable, &look.working, &[]).await?,
        };
        let Ok(prepared) = prepared else { return Ok(None) };
        let tried = rollout::tried_of(&look.plugin);
        let wanted: BTreeSet<_> = pins::digests(&look.plugin).chain(tried).filter(|it| *it != stable).collect();
        let mut others = Others::beside(&prepared);
        for digest in wanted {
            match ready(digest) {
                Some(ready) => others.found.push(ready),
                None if tried == Some(digest) => {
                    let found = self.other(look, digest, &look.settings, &others.all()).await;
                    others.found.extend(found.unwrap_or_else(|error| {
                        tracing::warn!(plugin = look.name, "the version that was tried does not load: {error}");
                        None
                    }));
                }
                None => self.add_pinned(look, digest, &look.working, &mut others).await,
            }
        }
        let Others { main: prepared, found: others, refused, .. } = others;
        Ok(Some(FoundVersions { prepared, others, no_stable: None, refused }))
    }

    /// The versions that a `Plugin` needs beside the one that its source has: the one that works, while a new one is tried or held, and those
    /// to which objects are pinned. One that is not to be had is left out.
    async fn others(&self, look: &Look, main: &Arc<Prepared>) -> Result<Others, NotLoaded> {
        let settings = look.settings_beside(main.digest());
        let mut wanted = rollout::needed_beside(&look.plugin, main.digest());
        let stable = rollout::needed_stable(&look.plugin).filter(|stable| wanted.remove(stable));
        let mut others = Others::beside(main);
        // Nothing works without it, so it comes before those of pins.
        if let Some(stable) = stable {
            let found = self.stable(look, stable, settings, &others.all()).await?;
            match found {
                Ok(found) => others.found.push(found),
                Err(why) => others.no_stable = why,
            }
        }
        for digest in wanted {
            self.add_pinned(look, digest, settings, &mut others).await;
        }
        Ok(others)
    }

    /// A version that is needed for pins alone. Where it does not take the present configuration, it keeps the one that it had, if this host
    /// knows that; otherwise it is left out, as is one that does not load. Nobody else waits for it.
    async fn add_pinned(&self, look: &Look, digest: &str, settings: &PluginSettings, others: &mut Others) {
        let found = self.other(look, digest, settings, &others.all()).await;
        let why = match found {
            Ok(found) => return others.found.extend(found),
            Err(why) => why,
        };
        let kept = match (self.known(look, digest), &why) {
            (Some(known), NotLoaded::Config { .. }) => self.as_configured(known, settings).await,
            _ => None,
        };
        let fate = if kept.is_some() { Fate::Keeps } else { Fate::LeftOut };
        tracing::warn!(plugin = look.name, digest, ?fate, "a version to which objects are pinned is refused: {why}");
        others.refused.push(RefusedVersion::new(digest, &why, fate));
        others.found.extend(kept);
    }

    /// A version that is loaded, under these settings but for its configuration; none if it may not work any more.
    async fn as_configured(&self, known: Arc<Prepared>, settings: &PluginSettings) -> Option<Arc<Prepared>> {
        let settings = settings.with_config(known.settings().config.clone());
        if known.has_settings(&settings) {
            return Some(known);
        }
        self.loader.settled(&known, &settings).await.ok().map(Arc::new)
    }

    /// A version that is loaded, or else kept. It works beside these.
    async fn other(
        &self,
        look: &Look,
        digest: &str,
        settings: &PluginSettings,
        present: &[&Arc<Prepared>],
    ) -> Result<Option<Arc<Prepared>>, NotLoaded> {
        let prepared = match self.known(look, digest) {
            Some(known) if known.has_settings(settings) => return Ok(Some(known)),
            Some(known) => self.loader.settled(&known, settings).await?,
            None => match self.contents.read_kept_as(&look.plugin.spec, digest, self.work(digest)).await {
                Some(component) => {
                    let beside = self.kept_beside(look, digest, present);
                    self.loader.prepare(&look.id(), component.bytes, settings.clone(), beside).await?
                }
                None => return Ok(None),
            },
        };
        Ok(Some(Arc::new(prepared)))
    }

    /// The version that works, from where it came from if this host has never had it. The inner error says why that gives nothing; none if it
    /// is not known where it came from.
    async fn stable(
        &self,
        look: &Look,
        digest: &str,
        settings: &PluginSettings,
        present: &[&Arc<Prepared>],
    ) -> Result<Result<Arc<Prepared>, Option<ContentError>>, NotLoaded> {
        if let Some(known) = self.other(look, digest, settings, present).await? {
            return Ok(Ok(known));
        }
        let Some(source) = rollout::stable_source(&look.plugin, digest) else { return Ok(Err(None)) };
        match self.contents.read_from(&look.plugin.spec, source, digest).await {
            Ok(component) => {
                self.contents.keep(&component);
                let beside = self.kept_beside(look, digest, present);
                Ok(Ok(Arc::new(self.loader.prepare(&look.id(), component.bytes, settings.clone(), beside).await?)))
            }
            Err(NoComponent { why, .. }) => Ok(Err(Some(why))),
        }
    }

    /// What is to be done with a component that is kept.
    fn work(&self, digest: &str) -> Work {
        if self.loader.is_compiled(digest) { Work::Quick } else { Work::Slow }
    }

    /// A version that is ready.
    fn known(&self, look: &Look, digest: &str) -> Option<Arc<Prepared>> {
        let loaded = self.loader.versions(&look.id()).and_then(|loaded| loaded.with_digest(digest).cloned());
        loaded.or_else(|| look.set_aside.iter().find(|version| version.digest() == digest).cloned())
    }
}
