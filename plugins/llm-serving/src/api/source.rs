//! Where a model comes from.

use pilothouse_pods::api::LocalRef;
#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a model comes from, and what it takes to download it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelSource {
    /// One of `pvc://CLAIM/PATH` (a claim, mounted read-only), `hostpath:///PATH` (a cache on the node, mounted read-only),
    /// `hf://ORGANISATION/MODEL:REVISION`, `s3://BUCKET/PATH` (downloaded by an init container) and `oci://IMAGE` (copied out of
    /// an image, which has it in `/models`).
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 7, max = 1024), regex(pattern = r"^(pvc://|hostpath:///|hf://|s3://|oci://)[^\s?#]+$"))
    )]
    pub uri: String,
    /// A Secret whose keys become variables of the download, such as `HF_TOKEN` or `AWS_SECRET_ACCESS_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalRef>,
    /// The claim that keeps what is downloaded. Default: each Pod downloads it for itself.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_claim_name: Option<String>,
    /// The most that a download may take up in a Pod without such a claim.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::quantity"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<Value>,
    /// The image that downloads. Default: that of the plugin's configuration.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downloader_image: Option<String>,
    /// After how many seconds a download is given up and begun anew. Default: 3600.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
    /// The most memory that the download may use. Default: 16Gi.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::quantity"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Value>,
}
