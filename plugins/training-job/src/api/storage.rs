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
