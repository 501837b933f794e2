//! Checks the plugin without a cluster: the children of a `TrainingJob`, what happens to it until its end, and its status.

mod changes;
mod children;
mod cleanup;
mod crd;
mod deadline;
mod disruptions;
mod environment;
mod events_and_measurements;
mod finalize;
mod guide;
mod hangs;
mod histories;
mod host_stops;
mod manifest;
mod mpi;
mod phases;
mod pod_template;
mod preconditions;
mod progress;
mod queue;
mod refusals;
mod restarts;
mod simulated_cluster;
mod status;
mod suspension;
mod waves;
