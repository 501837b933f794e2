//! Inference engines: for each a small table of its image, arguments, ports and paths. The plugin's configuration can change a
//! table and add others. Nothing here knows what any engine does.

mod arguments;
mod builtin;

pub use arguments::{EngineArguments, ModelReference, ServerSettings};
pub use builtin::{CONTAINER, NAMES, builtin};

use crate::image::{self, Version};
use serde::Deserialize;

/// The engine of objects that name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultEngine {
    /// vLLM, whatever the image.
    Vllm,
    /// The one whose own image the object names; else any container.
    ByImage,
}

/// An engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Engine {
    /// Its image; empty if objects must name one.
    pub image: String,
    /// The last parts of the repositories of its own images.
    pub image_names: Vec<String>,
    /// Its command; empty for that of the image.
    pub command: Vec<String>,
    /// The arguments of the server.
    pub arguments: EngineArguments,
    /// The port on which it listens unless it is told another.
    pub port: u32,
    /// The path that answers while it is healthy; empty if only its port tells.
    pub health_path: String,
    /// The path of its Prometheus metrics; empty if it has none.
    pub metrics_path: String,
    /// The names of its metrics.
    pub metrics: EngineMetrics,
    /// The user in its own images who is not root.
    pub user: Option<EngineUser>,
}

/// The names of an engine's metrics; each is empty if it has none. Latencies are histograms in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EngineMetrics {
    /// From the arrival of a request to its first token.
    pub time_to_first_token: String,
    /// From one token to the next.
    pub inter_token_latency: String,
    /// From the arrival of a request to its end.
    pub end_to_end_latency: String,
    /// A gauge: how many requests wait.
    pub queue_length: String,
}

/// A user in the images of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EngineUser {
    /// The first version whose image has the user. Images whose tag tells no version are taken to have none.
    pub since: String,
    /// The user's number.
    pub uid: i64,
}

impl Engine {
    /// The user who is not root in this image, if it is one of the engine's own and known to have one.
    pub fn user_in(&self, image: &str) -> Option<i64> {
        let user = self.user.as_ref()?;
        (self.owns(image) && is_since(image, &user.since)).then_some(user.uid)
    }

    /// Whether an image is one of the engine's own.
    pub fn owns(&self, image: &str) -> bool {
        let name = image::base_name(image);
        self.image_names.iter().any(|own| own == name)
    }
}

/// Whether the tag of an image tells a version that is this one or a later one.
pub fn is_since(image: &str, since: &str) -> bool {
    let versions: (Option<Version>, Option<Version>) = (image::version(image), image::parse_version(since));
    matches!(versions, (Some(version), Some(since)) if version >= since)
}
