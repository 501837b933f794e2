//! What the black-box tests, the benchmarks and the demo share: a running host, a client with readable helpers, waiting for
//! conditions, a proxy that makes things go wrong.
//! Sees the host only from outside: its command line, its log, its HTTP, and what it does in the API server.

pub mod app_services;
pub mod artifacts;
pub mod audit;
pub mod cluster;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod guarantees;
pub mod host;
pub mod http;
pub mod lint;
pub mod metrics;
pub mod pod;
pub mod proxy;
#[cfg(test)]
mod structure;
pub mod wait;
