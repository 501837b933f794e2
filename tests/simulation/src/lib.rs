//! A simulated cluster for the operator host: an API server in memory, and what lives on it. Never part of the host, and never a
//! measure of it: the black-box tests on a real API server are what it is checked against.

pub mod api_server;
pub mod cluster;
mod documents;
pub mod fault;
pub mod history;
pub mod host_id;
pub mod kinds;
mod leases;
mod log;
pub mod network;
pub mod paths;
pub mod plugin;
pub mod properties;
pub mod record;
pub mod run;
pub mod search;
pub mod shrink;
pub mod time;
pub mod world;
