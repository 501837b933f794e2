//! The status that kinds of LLM servers share.

use serde::{Deserialize, Serialize};

/// The state of a server. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ServingStatus {
    /// How many Pods exist, of the current and of older revisions.
    pub replicas: i32,
    /// How many Pods are ready to serve.
    pub ready_replicas: i32,
    /// The label selector of the Pods, for autoscalers.
    pub selector: String,
    /// Where the server is reached from inside the cluster.
    pub url: String,
    /// The names of the LoRA adapters that the server offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lora_adapters: Vec<String>,
}
