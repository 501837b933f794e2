//! Why there is no component, in words that say what to do.

use pilothouse_artifact::{ImageError, NotVerified, PolicyError, RegistryError};

use super::component::MAX_BYTES;

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// It does not name one source.
    #[error("spec.source names {0} sources; name one: configMap, oci or directory")]
    NotOneSource(usize),
    /// The host has no directory with files.
    #[error(
        "this host has no directory for spec.source.directory; start it with --plugin-files DIR, which is pluginFiles in the values of its \
         chart, or name a ConfigMap or an image"
    )]
    NoDirectory,
    /// It names no file of the directory.
    #[error("spec.source.directory.fileName: '{0}' is not the plain name of a file that ends with .wasm")]
    FileName(String),
    /// There is no such file.
    #[error("the file '{0}' does not exist in the directory that the host has by --plugin-files; put it there")]
    NoFile(String),
    /// It is a symbolic link to somewhere else.
    #[error("the file '{0}' leads out of the directory that the host has by --plugin-files; put the file itself there")]
    OutsideFile(String),
    /// It is written at the moment.
    #[error("the file '{0}' has changed while it was read; write another one, and rename it to this name")]
    FileChanging(String),
    /// A ConfigMap is not there.
    #[error("the ConfigMap '{0}' does not exist in the host's namespace")]
    NoConfigMap(String),
    /// A Secret is not there.
    #[error("the Secret '{0}' does not exist in the host's namespace")]
    NoSecret(String),
    /// The API server or the disk does not say what is in it.
    #[error("failed to read the {what} '{name}': {why}")]
    Unreadable {
        /// What it is.
        what: &'static str,
        /// Its name.
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
    /// A key that is needed beside the component is missing.
    #[error("the {what} '{name}' has no key '{key}'")]
    NoDataKey {
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
        /// The key.
        key: &'static str,
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
    /// The image has no such name.
    #[error("spec.source.oci.image: {0}")]
    Image(#[from] ImageError),
    /// The pull secret has no credentials in it.
    #[error("the Secret '{name}': {why}")]
    Credentials {
        /// The Secret.
        name: String,
        /// Why.
        why: String,
    },
    /// The registry does not give it.
    #[error("'{image}': {why}")]
    Registry {
        /// The image.
        image: String,
        /// Why.
        why: RegistryError,
    },
    /// It cannot be said who must have signed.
    #[error("spec.verification: {0}")]
    Policy(#[from] PolicyError),
    /// Nobody has signed who counts.
    #[error("spec.verification: {0}")]
    NotVerified(#[from] NotVerified),
}

/// What a source gave that is not what its `Plugin` may have.
#[derive(Debug)]
pub struct NoComponent {
    /// Why.
    pub why: ContentError,
    /// The digest of what the source has, hexadecimal digits; none if it gave nothing.
    pub found: Option<String>,
}

impl From<ContentError> for NoComponent {
    fn from(why: ContentError) -> Self {
        Self { why, found: None }
    }
}

impl ContentError {
    /// The CamelCase word for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotOneSource(_) | Self::FileName(_) | Self::OutsideFile(_) => "SourceInvalid",
            Self::NoDirectory => "DirectoryMissing",
            Self::NoFile(_) => "FileMissing",
            Self::FileChanging(_) => "FileUnreadable",
            Self::NoConfigMap(_) => "ConfigMapMissing",
            Self::NoSecret(_) => "SecretMissing",
            Self::Unreadable { what, .. } => match *what {
                "Secret" => "SecretUnreadable",
                "file" => "FileUnreadable",
                _ => "ConfigMapUnreadable",
            },
            Self::NoKey { .. } | Self::NotOneKey { .. } | Self::NoDataKey { .. } => "KeyMissing",
            Self::Packing(_) => "PackingDamaged",
            Self::TooLarge => "TooLarge",
            Self::Digest { .. } => "DigestMismatch",
            Self::Image(_) => "ImageInvalid",
            Self::Credentials { .. } => "CredentialsInvalid",
            Self::Registry { why, .. } => of_registry(why),
            Self::Policy(_) => "VerificationInvalid",
            Self::NotVerified(_) => "NotVerified",
        }
    }

    /// Whether it may pass without a change of the `Plugin`, the ConfigMaps or the files. A signature may still come.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::NoSecret(_) | Self::FileChanging(_) => true,
            Self::Registry { why, .. } => why.is_passing(),
            Self::NotVerified(_) => true,
            _ => false,
        }
    }
}

fn of_registry(why: &RegistryError) -> &'static str {
    match why {
        RegistryError::Unauthorized(_) => "RegistryUnauthorized",
        RegistryError::NotFound(_) => "ImageMissing",
        RegistryError::Unavailable(_) | RegistryError::TimedOut(_) | RegistryError::Client(_) => "RegistryUnavailable",
        RegistryError::NotComponent(_) => "NoPlugin",
        RegistryError::TooLarge(_) => "TooLarge",
        RegistryError::Damaged(_) => "ImageDamaged",
    }
}
