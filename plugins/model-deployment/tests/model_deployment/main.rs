//! Checks the plugin without a cluster: the children of a `ModelDeployment`, who decides how many Pods there are, and whether its SLA is
//! met.

mod case;
mod children;
mod crd;
mod groups;
mod guide;
mod others;
mod progress;
mod refusals;
mod scaling;
mod sla;
