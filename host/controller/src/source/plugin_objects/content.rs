//! Reads a component from ConfigMaps: finds the key, puts pieces together, unpacks, and compares the digest. Runs nothing of it.

use std::io::Read;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use pilothouse_engine::digest;

use crate::{
    api::{ConfigMapSource, PluginSpec},
    errors::chain,
};

/// The most bytes of an unpacked component. A component of Python has some 20 MiB.
const MAX_BYTES: u64 = 64 << 20;

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// A ConfigMap is not there.
    #[error("the ConfigMap '{0}' does not exist in the host's namespace")]
    NoConfigMap(String),
    /// The API server does not say what is in it.
    #[error("failed to read the ConfigMap '{name}': {why}")]
    Unreadable {
        /// The ConfigMap.
        name: String,
        /// Why.
        why: String,
    },
    /// It has no such key.
    #[error("the ConfigMap '{name}' has no key '{key}' in binaryData")]
    NoKey {
        /// The ConfigMap.
        name: String,
        /// The key.
        key: String,
    },
    /// It does not have exactly one key, and none is named.
    #[error(
        "the ConfigMap '{name}' has {found} keys in binaryData; put one component into it, or name the key in \
         spec.source.configMap.key"
    )]
    NotOneKey {
        /// The ConfigMap.
        name: String,
        /// How many it has.
        found: usize,
    },
    /// It cannot be unpacked.
    #[error("failed to unpack it: {0}")]
    Packing(String),
    /// It is too large when it is unpacked.
    #[error("unpacked it has more than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// It has another digest than the `Plugin` wants.
    #[error("its digest is sha256:{found}, but spec.digest is {wanted}")]
    Digest {
        /// Its digest.
        found: String,
        /// The digest that is wanted.
        wanted: String,
    },
}

impl ContentError {
    /// The CamelCase word for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoConfigMap(_) => "ConfigMapMissing",
            Self::Unreadable { .. } => "ConfigMapUnreadable",
            Self::NoKey { .. } | Self::NotOneKey { .. } => "KeyMissing",
            Self::Packing(_) => "PackingDamaged",
            Self::TooLarge => "TooLarge",
            Self::Digest { .. } => "DigestMismatch",
        }
    }

    /// Whether it may pass without a change of the `Plugin` or the ConfigMaps.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreadable { .. })
    }
}

/// A component and its digest.
pub struct Component {
    /// The component.
    pub bytes: Vec<u8>,
    /// Its SHA-256 in hexadecimal digits.
    pub digest: String,
}

/// The component of a plugin.
///
/// # Errors
/// [`ContentError`].
pub async fn read(api: &Api<ConfigMap>, spec: &PluginSpec) -> Result<Component, ContentError> {
    let source = &spec.source.config_map;
    let mut packed = Vec::new();
    for name in names(source) {
        packed.extend(of_config_map(&name, get(api, &name).await?, source.key.as_deref())?);
    }
    let bytes = unpacked(packed)?;
    let digest = digest(&bytes);
    match &spec.digest {
        Some(wanted) if *wanted != format!("sha256:{digest}") => {
            Err(ContentError::Digest { found: digest, wanted: wanted.clone() })
        }
        _ => Ok(Component { bytes, digest }),
    }
}

/// The names of the ConfigMaps of a source.
pub fn names(source: &ConfigMapSource) -> Vec<String> {
    match source.pieces {
        None => vec![source.name.clone()],
        Some(pieces) => (0..pieces).map(|piece| format!("{}-{piece}", source.name)).collect(),
    }
}

async fn get(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, ContentError> {
    match api.get_opt(name).await {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(ContentError::NoConfigMap(name.to_owned())),
        Err(error) => Err(ContentError::Unreadable { name: name.to_owned(), why: chain(&error) }),
    }
}

fn of_config_map(name: &str, map: ConfigMap, key: Option<&str>) -> Result<Vec<u8>, ContentError> {
    let mut data = map.binary_data.unwrap_or_default();
    let found = match key {
        Some(key) => {
            data.remove(key).ok_or_else(|| ContentError::NoKey { name: name.to_owned(), key: key.to_owned() })?
        }
        None => match (data.len(), data.pop_first()) {
            (1, Some((_, only))) => only,
            (found, _) => return Err(ContentError::NotOneKey { name: name.to_owned(), found }),
        },
    };
    Ok(found.0)
}

/// What compressed files begin with.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Unpacks what is compressed, and no more than [`MAX_BYTES`] of it.
fn unpacked(packed: Vec<u8>) -> Result<Vec<u8>, ContentError> {
    if packed.starts_with(GZIP) {
        bounded(flate2::read::MultiGzDecoder::new(&*packed))
    } else if packed.starts_with(ZSTD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(&*packed);
        bounded(decoder.map_err(|error| ContentError::Packing(error.to_string()))?)
    } else {
        Ok(packed)
    }
}

fn bounded(packed: impl Read) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    // One byte more shows that there is more.
    let read = packed.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| ContentError::Packing(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES { Err(ContentError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use k8s_openapi::ByteString;

    use super::*;

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn what_is_compressed_is_unpacked_within_a_limit() {
        let many = vec![7; 1 << 20];
        for (packed, expected) in [
            (b"plain".to_vec(), Ok(b"plain".to_vec())),
            (gzipped(&many), Ok(many.clone())),
            (zstd(&many), Ok(many)),
            (gzipped(b"cut")[..12].to_vec(), Err("PackingDamaged")),
            (ZSTD.to_vec(), Err("PackingDamaged")),
            (gzipped(&vec![0; (MAX_BYTES as usize) + 1]), Err("TooLarge")),
            (zstd(&vec![0; (MAX_BYTES as usize) + 1]), Err("TooLarge")),
        ] {
            assert!(unpacked(packed).map_err(|error| error.reason()) == expected, "{:?}", expected.err());
        }
    }

    #[test]
    fn the_component_is_the_only_key_or_the_one_that_is_named() {
        let map = |keys: &[&str]| {
            let data = keys.iter().map(|key| ((*key).to_owned(), ByteString(key.as_bytes().to_vec())));
            ConfigMap { binary_data: Some(data.collect()), ..ConfigMap::default() }
        };
        for (keys, named, expected) in [
            (&["a"][..], None, Ok("a")),
            (&["a", "b"], Some("b"), Ok("b")),
            (&["a", "b"], None, Err("KeyMissing")),
            (&[], None, Err("KeyMissing")),
            (&["a"], Some("c"), Err("KeyMissing")),
        ] {
            let found = of_config_map("map", map(keys), named).map_err(|error| error.reason());
            assert_eq!(found, expected.map(|text: &str| text.as_bytes().to_vec()), "{keys:?} {named:?}");
        }
    }

    #[test]
    fn pieces_are_numbered() {
        let source = |pieces| ConfigMapSource { name: "web".to_owned(), key: None, pieces };
        assert_eq!(names(&source(None)), ["web"]);
        assert_eq!(names(&source(Some(2))), ["web-0", "web-1"]);
    }
}
