//! The reference plugin `llm-model`: an `LLMModel` of `llm.example.com` says what a model is, and its status which LLMDeployments serve
//! it. It has no children: the plugin `llm-deployment` makes the servers.

pub mod api;
#[cfg(feature = "crd")]
pub mod crd;
mod reconcile;
pub mod server;

pub use reconcile::reconcile;

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "llm-model",
    reconciles: "llm.example.com/v1alpha1" "LLMModel",
    children: [],
    lookups: ["llm.example.com/v1alpha1" "LLMDeployment"],
    reads: ["/spec"],
    reconcile: reconcile,
}
