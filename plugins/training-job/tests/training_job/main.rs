//! Checks what a `TrainingJob` asks for, how it is followed to its end and how it is reported, without a cluster.

mod changes;
mod children;
mod cleanup;
mod crd;
mod environment;
mod finalize;
mod gates;
mod guide;
mod limits;
mod manifest;
mod phases;
mod refusals;
mod restarts;
mod simulation;
mod status;
mod suspension;
mod told;
mod world;
