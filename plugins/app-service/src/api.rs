//! The API types of `AppService`, from which its CRD is made. They hold no behaviour.

use serde::{Deserialize, Serialize};

/// What the user asks for: a stateless web application.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppServiceSpec {
    /// How many instances run at the same time. At least two, so that one can fail or be replaced.
    #[cfg_attr(feature = "crd", schemars(range(min = 2)))]
    pub replicas: i32,
    /// The container image of the application.
    #[cfg_attr(feature = "crd", schemars(length(min = 1)))]
    pub image: String,
    /// The port on which the application listens for HTTP. The Service offers it as port 80.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 65535)))]
    #[serde(default = "default_port")]
    pub port: i32,
}

/// What the plugin reports. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppServiceStatus {
    /// How many instances exist, of the current and of older revisions.
    pub replicas: i32,
    /// How many instances are ready to serve.
    pub ready_replicas: i32,
    /// The label selector of the instances, for autoscalers.
    pub selector: String,
    /// Where the application is reached from inside the cluster.
    pub url: String,
}

fn default_port() -> i32 {
    8080
}
