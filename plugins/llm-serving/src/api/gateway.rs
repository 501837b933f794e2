//! How the server is reached by the Gateway API and its inference extension.

use serde::{Deserialize, Serialize};

/// A route of the Gateway API.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HttpRoute {
    /// The Gateway that has the route.
    pub gateway: GatewayRef,
    /// The host names of the requests. Default: every host.
    #[cfg_attr(feature = "crd", schemars(length(max = 16), inner(length(min = 1, max = 253))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// The path with which requests begin. Default: `/`.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^/")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GatewayRef {
    /// Its name.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub name: String,
    /// Its namespace. Default: that of the object.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 63)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The listener of it. Default: every listener that takes the route.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

/// A pool of servers, of which an endpoint picker chooses one for each request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InferencePool {
    /// The endpoint picker.
    pub endpoint_picker: EndpointPicker,
}

/// An endpoint picker: a Service in the object's namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EndpointPicker {
    /// The name of the Service.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub name: String,
    /// Its port. Default: 9002.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 65535)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// What becomes of requests while it does not answer. Default: `FailClose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<FailureMode>,
}

/// What becomes of requests while no endpoint picker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum FailureMode {
    /// Any server gets them.
    FailOpen,
    /// They are refused.
    FailClose,
}
