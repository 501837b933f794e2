//! The programs of the control plane: found where the user has them, else in the cache, else downloaded from their
//! publishers, else built from pinned Go modules. Nothing is taken from PATH, whose versions nobody knows.

mod build;
mod cache;
mod download;
mod run;

use crate::{NEWER_KUBERNETES, Part, Parts, Report};
use anyhow::{Context, Result, ensure};
use build::Release;
use cache::Cache;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where each program lies.
#[derive(Clone, Debug)]
pub struct Assets {
    paths: BTreeMap<Part, PathBuf>,
}

impl Assets {
    /// Obtains the programs of all parts and tells `report` how. Quick when they are there; a first build from
    /// source takes minutes. Several processes may ask at once: one works, the others wait for it.
    ///
    /// Looked for in this order: `$KUBEBUILDER_ASSETS`; the cache (`$PILOTHOUSE_CACHE`, else
    /// `$XDG_CACHE_HOME/pilothouse`, else `~/.cache/pilothouse`); the publishers' downloads, unless
    /// `$PILOTHOUSE_OFFLINE` is set to something other than 0; a build with the installed Go.
    /// What `$KUBEBUILDER_ASSETS` holds is taken whatever its version.
    pub async fn ensure(report: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        Self::ensure_for(Parts::Full, report).await
    }

    /// As [`Assets::ensure`], for those parts only.
    pub async fn ensure_for(parts: Parts, report: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        let report: &Report = &(Arc::new(report) as Report);
        let mut assets = Assets { paths: BTreeMap::new() };
        assets.look_into_kubebuilder_assets(parts.list(), report);
        assets.obtain(parts.list(), &build::RELEASE, report).await?;
        Ok(assets)
    }

    /// The same with the API server of [`NEWER_KUBERNETES`] in the place of its own, which is looked for in the cache and obtained as the
    /// others are. A first build from source takes ten minutes.
    pub async fn with_newer_api_server(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        let report: &Report = &(Arc::new(report) as Report);
        let mut newer = Assets { paths: BTreeMap::new() };
        newer.obtain(&[Part::ApiServer], &build::NEWER_RELEASE, report).await?;
        self.paths.extend(newer.paths);
        Ok(self)
    }

    /// Whether the cache has the API server of [`NEWER_KUBERNETES`].
    pub fn has_newer_api_server() -> bool {
        Cache::open(NEWER_KUBERNETES).is_ok_and(|cache| cache.path(Part::ApiServer).is_file())
    }

    /// Where the program of `part` is; an error when `part` was not asked for.
    pub fn path(&self, part: Part) -> Result<&Path> {
        self.paths.get(&part).map(PathBuf::as_path).with_context(|| format!("{part} was not obtained"))
    }

    fn missing(&self, parts: &[Part]) -> Vec<Part> {
        parts.iter().copied().filter(|part| !self.paths.contains_key(part)).collect()
    }

    fn look_into_kubebuilder_assets(&mut self, parts: &[Part], report: &Report) {
        let Some(dir) = env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()).map(PathBuf::from) else {
            return;
        };
        self.take(parts, |part| dir.join(part.name()), &format!("in $KUBEBUILDER_ASSETS ({})", dir.display()), report);
    }

    fn look_into(&mut self, cache: &Cache, parts: &[Part], report: &Report) {
        let place = format!("in the cache ({})", cache.dir().display());
        self.take(parts, |part| cache.path(part), &place, report);
    }

    /// Takes those missing programs that exist, and says so in one line.
    fn take(&mut self, parts: &[Part], path: impl Fn(Part) -> PathBuf, place: &str, report: &Report) {
        let found: Vec<Part> = self.missing(parts).into_iter().filter(|part| path(*part).is_file()).collect();
        if !found.is_empty() {
            report(&format!("{}: {place}", names(&found)));
        }
        self.paths.extend(found.into_iter().map(|part| (part, path(part))));
    }

    /// Takes what is missing from the cache of a release, which is filled with what it does not have.
    async fn obtain(&mut self, parts: &[Part], release: &Release, report: &Report) -> Result<()> {
        if self.missing(parts).is_empty() {
            return Ok(());
        }
        let cache = Cache::open(release.kubernetes)?;
        self.look_into(&cache, parts, report);
        if !self.missing(parts).is_empty() {
            let _lock = cache.lock(report).await?;
            self.fill(&cache, parts, release, report).await?;
        }
        Ok(())
    }

    /// Fills the cache. Looks again first, because another process may have done it while this one waited.
    async fn fill(&mut self, cache: &Cache, parts: &[Part], release: &Release, report: &Report) -> Result<()> {
        self.look_into(cache, parts, report);
        download::fetch(&self.missing(parts), release.kubernetes, cache, report).await;
        self.look_into(cache, parts, report);
        build::build(&self.missing(parts), release, cache, report).await?;
        self.look_into(cache, parts, report);
        let missing = self.missing(parts);
        ensure!(missing.is_empty(), "{} still missing from {}", names(&missing), cache.dir().display());
        Ok(())
    }
}

fn names(parts: &[Part]) -> String {
    parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ")
}
