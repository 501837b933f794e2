//! Shared by the black-box tests, the benchmarks and the demo: a running host, a client with helpers, waiting for
//! conditions, and a proxy for fault injection.
//! Uses only the host's external interfaces: its command line, log, HTTP server, and effects in the API server.

pub mod api_servers;
pub mod app_services;
pub mod artifacts;
pub mod audit;
pub mod bad_plugins;
pub mod blocks;
#[cfg(test)]
mod cases;
pub mod cgroup;
pub mod cluster;
pub mod compiled_code;
pub mod copies;
pub mod dev_loop;
pub mod everything;
#[cfg(test)]
mod examples;
pub mod foreign_controller;
#[cfg(test)]
mod guarantees;
pub mod gzip;
pub mod helm;
pub mod host;
pub mod http;
pub mod keda;
pub mod keda_webhook;
pub mod kueue;
pub mod languages;
pub mod lint;
pub mod lws;
pub mod machine_clock;
pub mod manifests;
pub mod metrics;
pub mod metrics_api;
pub mod needs;
pub mod nodes;
#[cfg(test)]
mod page_blocks;
#[cfg(test)]
mod pages;
pub mod pod;
pub mod process;
pub mod process_group;
pub mod project;
pub mod prometheus;
pub mod proxy;
pub mod registry;
pub mod sigstore;
#[cfg(test)]
mod site;
pub mod sockets;
#[cfg(test)]
mod structure;
pub mod table;
pub mod third_party;
pub mod thoroughness;
pub mod tls;
pub mod wait;
pub mod webhooks;
