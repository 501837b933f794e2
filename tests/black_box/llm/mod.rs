//! The plugins that serve models, on a real API server. A simulated node runs the Pods.

mod autoscaling;
mod comings;
mod deployment;
mod ending;
mod foreign;
mod foreign_kinds;
mod groups;
mod health;
mod keda;
mod load;
mod many;
mod model;
mod model_deployment;
mod names;
mod node;
mod operator;
mod pods;
mod references;
mod refusals;
mod rollouts;
mod scrape;
pub mod scripts;
mod seen;
mod served;
mod stale;
mod upgrade;
pub mod words;

use crate::suite::Suite;

/// The tests that measure how long something takes.
pub fn register_timed(suite: &mut Suite) {
    references::register_timed(suite);
    many::register_timed(suite);
}

pub fn register(suite: &mut Suite) {
    model::register(suite);
    deployment::register(suite);
    references::register(suite);
    refusals::register(suite);
    pods::register(suite);
    foreign::register(suite);
    rollouts::register(suite);
    scripts::register(suite);
    model_deployment::register(suite);
    many::register(suite);
    autoscaling::register(suite);
    foreign_kinds::register(suite);
    keda::register(suite);
    comings::register(suite);
    names::register(suite);
    groups::register(suite);
    served::register(suite);
    health::register(suite);
    stale::register(suite);
    upgrade::register(suite);
    operator::register(suite);
}
