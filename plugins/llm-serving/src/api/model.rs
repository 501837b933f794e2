//! The fields that say what a model is and what its server needs, wherever the server runs.

use super::source::ModelSource;
#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use pilothouse_pods::api::{EnvFrom, EnvVar, LocalRef, PullPolicy, SecurityContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model is and what its server needs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelFields {
    /// The inference engine: `vllm`, `sglang`, `llama-cpp`, `container` for an image that gets nothing but the variables
    /// `MODEL_NAME` and `PORT`, or one that the plugin's configuration adds.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The container image of the server. Default: that of the engine.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When the image is pulled, as in a Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets in the object's namespace to pull the image with.
    #[cfg_attr(feature = "crd", schemars(length(max = 16)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalRef>,
    /// The command of the server. Default: that of the engine, or else of the image.
    #[cfg_attr(feature = "crd", schemars(length(max = 128), inner(length(max = 16384))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments after those that follow from the other fields.
    #[cfg_attr(feature = "crd", schemars(length(max = 256), inner(length(max = 16384))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the server, besides `MODEL_NAME` and `PORT`.
    #[cfg_attr(feature = "crd", schemars(length(max = 128)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// ConfigMaps and Secrets whose keys become environment variables.
    #[cfg_attr(feature = "crd", schemars(length(max = 16)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFrom>,

    /// The directory or file of the model in the container. Default: where `modelSource` puts it; without either, the engine
    /// gets the model by its name.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._-]+)+/?$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
    /// Where the model comes from. Default: that of the plugin's configuration, or else the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_source: Option<ModelSource>,
    /// LoRA adapters that the server offers beside the model.
    #[cfg_attr(feature = "crd", schemars(length(max = 64)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lora_adapters: Vec<LoraAdapter>,

    /// The type of the GPUs, such as `H100`: Pods run on nodes with such GPUs only.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// How much memory each GPU has at least, such as `80G`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::quantity"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<Value>,
    /// The resource name of a GPU. Default: `nvidia.com/gpu`.
    #[cfg_attr(
        feature = "crd",
        schemars(length(max = 316), regex(pattern = r"^[a-z0-9.-]+/[A-Za-z0-9][A-Za-z0-9_.-]*$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_resource: Option<String>,
    /// Asks for the GPUs by dynamic resource allocation, as devices of this class (`gpu.nvidia.com`), and not by a resource.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_device_class: Option<String>,
    /// The size of `/dev/shm`. Default: 8Gi with more than one GPU, and what the node gives otherwise.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::quantity"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm_size: Option<Value>,
    /// The user and groups that the server runs as. Default: a user that is not root where the engine's own image has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
}

/// A LoRA adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoraAdapter {
    /// The name by which requests ask for it.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))
    )]
    pub name: String,
    /// Its directory or file in the container, or its name on the Hugging Face hub.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$")))]
    pub path: String,
}
