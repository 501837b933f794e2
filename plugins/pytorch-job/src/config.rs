//! The configuration of the plugin: what the training operator takes from its command line.

use serde::{Deserialize, Serialize};
use training_job::api::GangScheduler;

/// The configuration.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// The gang scheduler of all jobs: `volcano` or `scheduler-plugins`. Default: none.
    pub gang_scheduler: Option<GangScheduler>,
    /// The image of the container in which a worker waits until the name of the master is known; empty for no such container.
    pub init_container_image: String,
    /// How many times it asks for the name, every two seconds.
    pub init_container_max_tries: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { gang_scheduler: None, init_container_image: "alpine:3.10".to_owned(), init_container_max_tries: 100 }
    }
}
