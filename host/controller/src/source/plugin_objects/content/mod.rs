//! The component that a `Plugin` asks for: finds it, and judges its size, its digest and its signature, in this order. Runs nothing of it.

mod component;
mod config_map;
mod error;
mod file;
mod host_namespace;
mod kept;
mod packing;
mod registry;
mod turns;
mod verification;

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use kube::Client;
use pilothouse_engine::{digest, kept_by};

pub use self::{
    component::{Component, MAX_BYTES},
    error::{ContentError, NoComponent},
    file::is_of_components,
    kept::KeptComponents,
    turns::Work,
};
use self::{
    component::{Fetched, Origin},
    host_namespace::HostNamespace,
    turns::{Turn, Turns},
};
use super::digest_text;
use crate::api::{PluginSpec, Source, StableSource};

/// Finds components.
#[derive(Clone)]
pub struct Contents {
    namespace: HostNamespace,
    /// That of the files that `Plugin`s may name.
    directory: Option<Arc<Path>>,
    kept: KeptComponents,
    turns: Turns,
    turn: Turn,
}

impl Contents {
    /// Finds components in the host's namespace, in registries, and in a directory if there is one. Those that were good are kept.
    pub fn new(client: &Client, namespace: &str, directory: Option<&Path>, kept: KeptComponents) -> Self {
        let turns = Turns::default();
        let turn = turns.begin_look();
        let (namespace, directory) = (HostNamespace::new(client, namespace), directory.map(Arc::from));
        Self { namespace, directory, kept, turns, turn }
    }

    /// The same for one look: large components that it finds are in memory until it ends, and those of other looks wait.
    pub fn for_look(&self) -> Self {
        Self { turn: self.turns.begin_look(), ..self.clone() }
    }

    /// The component that a `Plugin` asks for, from its source.
    ///
    /// # Errors
    /// [`NoComponent`].
    pub async fn read(&self, spec: &PluginSpec) -> Result<Component, NoComponent> {
        self.judge(spec, self.fetch(&spec.source, spec.verification.is_some()).await?).await
    }

    /// The component that a `Plugin` names by its digest, if it is kept and still counts: neither its ConfigMap nor its registry has to
    /// be there.
    pub async fn read_kept(&self, spec: &PluginSpec, work: Work) -> Option<Component> {
        let digest = spec.digest.as_deref()?;
        self.turn.take_for(self.kept.size(digest)?, work).await;
        let kept = self.kept.get(digest)?;
        self.judge(spec, kept).await.ok()
    }

    /// What the component with this digest, hexadecimal digits, keeps in memory once it is loaded; no less than that if it is not on the disk.
    pub fn kept_memory(&self, digest: &str) -> usize {
        let kept = self.kept.get(&digest_text::text(digest));
        kept_by(&kept.map(|kept| kept.bytes).unwrap_or_default())
    }

    /// The component with this digest, hexadecimal digits, if it is kept and still counts for a `Plugin` that names another one or none.
    pub async fn read_kept_as(&self, spec: &PluginSpec, digest: &str, work: Work) -> Option<Component> {
        self.read_kept(&PluginSpec { digest: Some(digest_text::text(digest)), ..spec.clone() }, work).await
    }

    /// The component with this digest, hexadecimal digits, from a source that a `Plugin` had before.
    ///
    /// # Errors
    /// [`NoComponent`].
    pub async fn read_from(&self, spec: &PluginSpec, source: &Source, digest: &str) -> Result<Component, NoComponent> {
        let digest = Some(digest_text::text(digest));
        self.read(&PluginSpec { source: source.clone(), digest, ..spec.clone() }).await
    }

    async fn judge(&self, spec: &PluginSpec, fetched: Fetched) -> Result<Component, NoComponent> {
        let found = digest(&fetched.bytes);
        if let Err(why) = self.check(spec, &fetched, &found).await {
            return Err(NoComponent { why, found: Some(found) });
        }
        let manifest_digest = match fetched.origin {
            Origin::Bytes => None,
            Origin::Manifest(digest) => Some(digest),
        };
        Ok(Component { bytes: fetched.bytes.into(), digest: found, manifest_digest, evidence: fetched.evidence })
    }

    /// Whether a `Plugin` may have a component of this digest.
    async fn check(&self, spec: &PluginSpec, fetched: &Fetched, found: &str) -> Result<(), ContentError> {
        if let Some(wanted) = spec.digest.as_ref().filter(|wanted| **wanted != digest_text::text(found)) {
            return Err(ContentError::Digest { found: found.to_owned(), wanted: wanted.clone() });
        }
        match &spec.verification {
            Some(verification) => verification::verify(&self.namespace, verification, fetched, found).await,
            None => Ok(()),
        }
    }

    /// The digest of the manifest that the image of a source stands for at the moment; none if it is no image, or one that is named by its
    /// digest.
    ///
    /// # Errors
    /// [`ContentError`].
    pub async fn resolve(&self, source: &Source) -> Result<Option<String>, ContentError> {
        match &source.oci {
            Some(source) => registry::resolve(&self.namespace, source).await,
            None => Ok(None),
        }
    }

    /// Keeps a component that was loaded, for the time when its source is away.
    pub fn keep(&self, component: &Component) {
        self.kept.put(component);
    }

    /// Removes from the disk what no host has needed for long.
    pub fn remove_unneeded(&self) {
        self.kept.remove_unneeded();
    }

    /// Keeps these of those that were kept since the host started, by their digests as hexadecimal digits.
    pub fn renew(&self, needed: &BTreeSet<String>) {
        self.kept.renew(needed);
    }

    async fn fetch(&self, source: &Source, with_signatures: bool) -> Result<Fetched, ContentError> {
        match (&source.config_map, &source.oci, &source.directory) {
            (Some(source), None, None) => config_map::fetch(&self.namespace, &self.turn, source).await,
            (None, Some(source), None) => registry::fetch(&self.namespace, &self.turn, source, with_signatures).await,
            (None, None, Some(source)) => {
                file::fetch(self.directory.as_deref(), &self.turn, source, with_signatures).await
            }
            (config_map, oci, directory) => {
                let named = [config_map.is_some(), oci.is_some(), directory.is_some()];
                Err(ContentError::NotOneSource(named.into_iter().filter(|named| *named).count()))
            }
        }
    }
}

/// Whether a `Plugin` reads this ConfigMap.
pub fn uses(spec: &PluginSpec, config_map: &str) -> bool {
    let pieces = spec.source.config_map.as_ref().map(config_map::names).unwrap_or_default();
    let authorities = spec.source.oci.as_ref().and_then(|oci| oci.ca_config_map_name.as_deref());
    let root = spec.verification.as_ref().and_then(|it| it.trusted_root_config_map_name.as_deref());
    pieces.iter().map(String::as_str).chain(authorities).chain(root).any(|name| name == config_map)
}

/// Whether a `Plugin` reads one of these files of the directory.
pub fn uses_file(spec: &PluginSpec, names: &BTreeSet<String>) -> bool {
    spec.source.directory.as_ref().is_some_and(|source| names.iter().any(|name| file::is_of(source, name)))
}

/// Where a component came from, named so that it gives the same one for as long as it has it.
pub fn origin(source: &Source, component: &Component) -> StableSource {
    let mut source = source.clone();
    if let (Some(oci), Some(manifest)) = (&source.oci, &component.manifest_digest) {
        source.oci = Some(registry::by_digest(oci, manifest));
    }
    StableSource { digest: digest_text::text(&component.digest), source }
}

/// How often it is looked up what the tag of a source stands for; none if the source has none.
pub fn tag_period(source: &Source) -> Option<Duration> {
    source.oci.as_ref().filter(|oci| registry::has_tag(oci)).map(|oci| Duration::from_secs(oci.poll_seconds.into()))
}
