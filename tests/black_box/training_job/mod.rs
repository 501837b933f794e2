//! The plugin `training-job` on a real API server. A simulated node starts, ends and fails the Pods.

mod deletion;
mod disruptions;
mod ends;
mod failure_rules;
mod failures;
mod gang;
mod group_restart;
mod guide;
mod hangs;
mod hundred;
mod jax;
mod kueue;
mod machine;
mod managed;
mod mpi;
mod mpirun;
mod nodes;
mod parameter_servers;
mod phases;
mod pod_template;
mod progress;
mod refusals;
mod rendezvous;
mod replacement;
mod sample;
mod snapshots;
mod suspension;
mod tensorflow;
mod thousand;
mod torchrun;
pub mod words;

use crate::suite::Suite;

pub fn register(suite: &mut Suite) {
    hundred::register(suite);
    thousand::register(suite);
    sample::register(suite);
    guide::register(suite);
    progress::register(suite);
    replacement::register(suite);
    failures::register(suite);
    failure_rules::register(suite);
    disruptions::register(suite);
    nodes::register(suite);
    hangs::register(suite);
    group_restart::register(suite);
    suspension::register(suite);
    deletion::register(suite);
    refusals::register(suite);
    phases::register(suite);
    ends::register(suite);
    parameter_servers::register(suite);
    pod_template::register(suite);
    gang::register(suite);
    managed::register(suite);
    snapshots::register(suite);
    rendezvous::register(suite);
    torchrun::register(suite);
    jax::register(suite);
    kueue::register(suite);
    mpi::register(suite);
    mpirun::register(suite);
    tensorflow::register(suite);
}
