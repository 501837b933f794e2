//! Volumes of a job.

use serde::{Deserialize, Serialize};

/// The claim with the training data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DataVolume {
    /// Name of a PersistentVolumeClaim in the job's namespace.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))
    )]
    pub claim_name: String,
    /// Mounts the data read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// A claim for storage.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Name of a PersistentVolumeClaim in the job's namespace.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))
    )]
    pub claim_name: String,
}

/// A ConfigMap whose keys become files.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapMount {
    /// Name of a ConfigMap in the job's namespace. It is copied when the job starts.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 190)))]
    pub name: String,
    /// The directory of the files.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._-]+)+$")))]
    pub mount_path: String,
}
