//! How a component lies in a registry: the form of the CNCF's working group on WebAssembly, which `wkg` and others write, too.
//! <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>

use oci_client::{
    client::{Config, ImageLayer},
    manifest::{OciDescriptor, OciImageManifest},
};
use serde_json::json;

use crate::RegistryError;

/// The media type of the config.
pub const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type of the only layer.
pub const LAYER: &str = "application/wasm";
/// The kinds of artifacts that have a Sigstore bundle as their only layer. Newer versions of the format count, too.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0";

/// The layer with the component.
///
/// # Errors
/// The artifact is something else.
pub fn component_layer(manifest: &OciImageManifest) -> Result<&OciDescriptor, RegistryError> {
    let found: Vec<_> = manifest.layers.iter().filter(|layer| layer.media_type == LAYER).collect();
    match found[..] {
        [layer] if manifest.layers.len() == 1 => Ok(layer),
        _ => Err(RegistryError::NotComponent(describe(manifest))),
    }
}

/// A component that is to be put into a registry.
pub struct Component {
    /// The component.
    pub bytes: Vec<u8>,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
}

impl Component {
    /// Config and layer. Nothing in them depends on when they are made, so that the same component is the same artifact.
    pub(crate) fn parts(self) -> (Config, ImageLayer) {
        let layer = ImageLayer::new(self.bytes, LAYER.to_owned(), None);
        let config = json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.sha256_digest()],
            "component": {"imports": self.imports, "exports": self.exports},
        });
        (Config::new(config.to_string().into_bytes(), CONFIG.to_owned(), None), layer)
    }
}

/// The tag under which cosign 2 writes the signatures of an artifact.
pub(crate) fn cosign_tag(manifest_digest: &str) -> String {
    format!("{}.sig", manifest_digest.replace(':', "-"))
}

/// What the annotations of a layer say that cosign 2 wrote. The layer itself is what was signed.
pub(crate) struct CosignSignature {
    /// The signature, in base64.
    pub signature: String,
    /// The signer's certificate as PEM, where no key signed.
    pub certificate: Option<String>,
    /// The entry of the transparency log, as JSON.
    pub log_entry: Option<String>,
}

impl CosignSignature {
    /// None if the layer is something else.
    pub(crate) fn of(layer: &OciDescriptor) -> Option<Self> {
        let annotations = layer.annotations.as_ref()?;
        let text = |name: &str| annotations.get(name).filter(|text| !text.is_empty()).cloned();
        Some(Self {
            signature: text("dev.cosignproject.cosign/signature")?,
            certificate: text("dev.sigstore.cosign/certificate"),
            log_entry: text("dev.sigstore.cosign/bundle"),
        })
    }
}

fn describe(manifest: &OciImageManifest) -> String {
    let layers: Vec<_> = manifest.layers.iter().map(|layer| layer.media_type.as_str()).collect();
    let layers = if layers.is_empty() { "no layer".to_owned() } else { layers.join(", ") };
    format!("its config is {}, its layers are {layers}", manifest.config.media_type)
}
