//! The objects of which an installed plugin consists: the pieces of its component, and the `Plugin` that names them. Pure.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kube::api::ObjectMeta;
use pilothouse_controller::{
    api::{ConfigMapSource, Plugin, PluginSpec, Source},
    labels::COMPONENT_OF,
};
use pilothouse_engine::digest;

use super::{Installed, settings::Settings};

/// The bytes of a piece. `kubectl apply` copies an object into an annotation of 256 KiB at most, where they are a third longer.
const PIECE: usize = 180 << 10;

/// The pieces of a component, and where a `Plugin` finds them.
pub struct Component {
    /// The pieces.
    pub pieces: Vec<ConfigMap>,
    source: Source,
    digest: String,
}

/// What the names of a component's pieces begin with, and the name under which a `Plugin` finds them. The digest may have its prefix.
pub fn pieces_of(plugin: &str, digest: &str) -> String {
    let digest = digest.trim_start_matches("sha256:");
    format!("{plugin}-{}", &digest[..digest.floor_char_boundary(12)])
}

impl Component {
    /// The component of a plugin in the host's namespace.
    ///
    /// # Errors
    /// If the component cannot be compressed, which only memory could be the cause of.
    pub fn of(file: &Installed, namespace: &str) -> std::io::Result<Self> {
        let name = &file.manifest.name;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&file.bytes)?;
        let (packed, digest) = (encoder.finish()?, digest(&file.bytes));
        // Named by their digest: the pieces of two versions never mix.
        let prefix = pieces_of(name, &digest);
        let piece = |(number, piece): (usize, &[u8])| ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("{prefix}-{number}")),
                namespace: Some(namespace.to_owned()),
                labels: Some([(COMPONENT_OF.to_owned(), name.clone())].into()),
                ..ObjectMeta::default()
            },
            binary_data: Some([("component".to_owned(), ByteString(piece.to_vec()))].into()),
            immutable: Some(true),
            ..ConfigMap::default()
        };
        let pieces: Vec<_> = packed.chunks(PIECE).enumerate().map(piece).collect();
        let source = ConfigMapSource { name: prefix, key: None, pieces: u32::try_from(pieces.len()).ok() };
        Ok(Self {
            pieces,
            source: Source { config_map: Some(source), ..Source::default() },
            digest: format!("sha256:{digest}"),
        })
    }

    /// Its digest, as a `Plugin` writes it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The `Plugin` with this component.
    pub fn plugin(&self, name: &str, settings: &Settings) -> Plugin {
        let account = settings.account.as_ref();
        let spec = PluginSpec {
            source: self.source.clone(),
            digest: Some(self.digest.clone()),
            verification: settings.verification.clone(),
            limits: settings.limits.clone(),
            config: settings.config.clone(),
            suspended: settings.suspended,
            grants: settings.grants.clone(),
            service_account_name: account.map(|account| account.name.clone()),
            service_account_namespace: account.map(|account| account.place).unwrap_or_default(),
            namespaces: settings.namespaces.clone(),
            rollout: settings.rollout.clone(),
        };
        Plugin::new(name, spec)
    }
}
