//! `pilothouse capture KIND/NAME`: what a plugin is called with for an object of a cluster, as a test case without what is in Secrets. Changes
//! nothing in the cluster.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use kube::{Client, discovery::Scope};
use pilothouse_controller::{
    client::{self, fence::Fence},
    clock::Clock,
    metrics::Metrics,
    object::{ObjectRef, describe},
    source::plugin_objects::PlannedVersion,
};
use pilothouse_engine::{Declaration, Manifest, contract::KindRef};
use pilothouse_forecast::{self as forecast, Captured, Place};
use pilothouse_offline::{
    Inputs,
    cases::{self, Snapshot},
    redaction::Redaction,
};
use serde_json::Value;

use crate::{
    cache_dir::CacheDir,
    cluster::{Cluster, block_on},
    config_file::read_config,
    logging::Logging,
    named::{Named, named},
    offline::{self, NoConfiguration},
    output,
    plan::present::{Present, settings_with},
    plugin_file::PluginFile,
    test,
};

/// Write a test case of what a plugin is called with for an object of a cluster, so that it can be called with the same without the cluster.
///
/// The case has the object, its children, what the plugin looks up, its configuration and the time, as the host would hand them to the plugin
/// now. What is in Secrets is replaced by tokens, wherever the same bytes appear. What is expected is what the plugin answers to that.
#[derive(Args)]
pub struct Capture {
    /// The object, such as AppService/web or llmmodel.ai.example.com/llama.
    #[arg(value_name = "KIND[.GROUP]/NAME", value_parser = named)]
    object: Named,
    /// Its namespace. Default: that of the kubeconfig's context.
    #[arg(long, short)]
    namespace: Option<String>,
    /// The plugin. Default: the one in the folder `build`.
    #[arg(long, value_name = "FILE.wasm")]
    plugin: Option<PathBuf>,
    /// YAML or JSON file with the plugin's configuration, or with a Plugin that has it. Default: the configuration of the Plugin that
    /// reconciles the object's kind.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The case file to write. It must not be there yet. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Capture {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such object, the plugin does not reconcile it, or what is in a Secret cannot be taken out.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        block_on(self.capture())
    }

    async fn capture(&self) -> anyhow::Result<()> {
        if let Some(file) = self.output.as_deref().filter(|file| file.exists()) {
            bail!("'{}' is there already; name another file", file.display());
        }
        let file = match &self.plugin {
            Some(file) => file.clone(),
            None => test::files::built_plugin(Path::new("."))?,
        };
        let config = self.cluster.config().await?;
        // It could not write if it wanted to.
        let reader = client::client(&config, Metrics::new().requests(), Fence::closed(), Clock::system())?;
        let (resource, scope) = self.object.find_kind(&reader).await?;
        let kind = KindRef::new(resource.api_version, resource.kind);
        let given = self.config.as_deref().map(read_config).transpose()?;
        let manifest = self.manifest(&file, &kind, &reader, given.as_ref()).await?;
        check_kind(&kind, &manifest)?;
        let namespace = match scope {
            Scope::Namespaced => self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone()),
            Scope::Cluster => String::new(),
        };
        let name = ObjectRef::new(&namespace, &self.object.name);
        let place = Place { watched: None, host_namespace: config.default_namespace.clone() };
        let present = Present::of_kind(&reader, &manifest).await?;
        let settings = settings_with(present.as_ref(), &place.host_namespace, given.as_ref());
        manifest.check_config(settings.config.as_deref())?;
        let config = settings.config.as_deref();
        let version = Arc::new(offline::load_within(&file, &self.cache_dir, &settings.limits, config).await?);
        let planned = PlannedVersion { version: version.clone(), settings, division: None };
        let cluster = forecast::Cluster::read(reader, planned, &place).await.context("failed to read the cluster")?;
        let what = describe(&manifest.reconciles, &name);
        let Captured { mut inputs, denied } = cluster.capture(&name).await.with_context(|| what.clone())?;
        for why in denied {
            eprintln!("note: a lookup was denied, and finds nothing in the case: {why}");
        }
        let values = redact(&mut inputs).with_context(|| what.clone())?;
        let snapshot = cases::snapshot(&*version, &format!("{what}, captured"), &inputs).await?;
        self.write(&snapshot)?;
        tell(&snapshot, values);
        Ok(())
    }

    /// What the plugin says of itself. Its kinds may come from the configuration of the `Plugin` that reconciles the object's kind today.
    async fn manifest(
        &self,
        file: &Path,
        kind: &KindRef,
        reader: &Client,
        given: Option<&Value>,
    ) -> anyhow::Result<Manifest> {
        let read = PluginFile::read(file)?;
        let own = match (&read.declaration, given) {
            (Declaration::Configured(_), None) => match Present::reconciling(reader, kind).await? {
                Some(present) => present.config()?,
                None => bail!("{NoConfiguration}; the cluster has no Plugin that reconciles {kind}"),
            },
            _ => None,
        };
        let manifest = offline::manifest_of(&read, &self.cache_dir, given.or(own.as_ref())).await;
        manifest.with_context(|| format!("'{}'", file.display()))
    }

    fn write(&self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let Some(file) = &self.output else {
            return Ok(output::print(&snapshot.text)?);
        };
        let created = std::fs::File::create_new(file);
        let written = created.and_then(|mut created| created.write_all(snapshot.text.as_bytes()));
        written.with_context(|| format!("failed to write '{}'", file.display()))?;
        eprintln!("written: {}; run it with `pilothouse test {0}`", file.display());
        Ok(())
    }
}

/// Checks that the plugin works on objects of this kind.
fn check_kind(kind: &KindRef, manifest: &Manifest) -> anyhow::Result<()> {
    ensure!(
        kind.is_same_kind(&manifest.reconciles),
        "the plugin '{}' works on objects of {}, and this one is a {kind}; name its plugin with --plugin",
        manifest.name,
        manifest.reconciles
    );
    Ok(())
}

/// Puts tokens in the place of what is in Secrets. Returns how many values there were.
fn redact(inputs: &mut Inputs) -> anyhow::Result<usize> {
    let objects = || std::iter::once(&inputs.object).chain(&inputs.children).chain(&inputs.lookups);
    let redaction = Redaction::of(objects());
    let Inputs { object, children, lookups, config, .. } = inputs;
    redaction.redact_object(object);
    children.iter_mut().chain(lookups.iter_mut()).for_each(|object| redaction.redact_object(object));
    redaction.redact(config);
    let all = std::iter::once(&*object).chain(&*children).chain(&*lookups).chain([&*config]);
    for place in all {
        ensure!(
            !redaction.is_left_in(&place.to_string()),
            "a value of a Secret is part of a name in {}, and cannot be taken out; nothing was written",
            place.pointer("/metadata/name").and_then(serde_json::Value::as_str).unwrap_or("the configuration")
        );
    }
    Ok(redaction.len())
}

/// Says what whoever uses the case should know.
fn tell(snapshot: &Snapshot, values: usize) {
    match values {
        0 => eprintln!("note: the plugin saw no Secrets"),
        values => {
            eprintln!("note: {values} values of Secrets are replaced by tokens; look at it before you give it away")
        }
    }
    for note in &snapshot.notes {
        eprintln!("note: {note}");
    }
    for failed in &snapshot.failures {
        eprintln!("note: the case does not pass as it is: {}", failed.failure);
    }
}
