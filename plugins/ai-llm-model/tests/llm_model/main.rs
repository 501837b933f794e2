//! Checks the plugin without a cluster: the children of an `LLMModel`, what is refused, and what its status says.

mod case;
mod children;
mod conditions;
mod conflicts;
mod crd;
mod engines;
mod gpus;
mod guide;
mod manifest;
mod pod_template;
mod refusals;
mod rollouts;
mod security;
mod sources;
mod surroundings;
