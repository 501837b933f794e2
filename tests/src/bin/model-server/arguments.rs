//! What the server is told: arguments as vLLM has them, and what on a node is not the container's affair, from the environment.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;

/// The arguments of `vllm serve` that a Pod may have. Others end the server, as they do there.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The model: a path, or its name.
    #[arg(long)]
    pub model: String,
    /// The name by which clients ask for it.
    #[arg(long)]
    pub served_model_name: Option<String>,
    /// The port.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// How many requests it works on at a time.
    #[arg(long, default_value_t = 256)]
    pub max_num_seqs: usize,
    /// How many seconds requests have that are under way when it is asked to end.
    #[arg(long, default_value_t = 0)]
    pub shutdown_timeout: u64,
}

/// What the node gives a container: an address of its own, and its speed.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The address of the Pod.
    pub address: IpAddr,
    /// How long the model takes to load.
    pub load: Duration,
    /// How long a word of an answer takes.
    pub token: Duration,
}

impl Surroundings {
    /// Reads them from the environment.
    ///
    /// # Errors
    /// If one is missing or malformed.
    pub fn read() -> Result<Self> {
        let text = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        let millis = |name: &str| -> Result<Duration> { Ok(Duration::from_millis(text(name)?.parse()?)) };
        Ok(Self {
            address: text("NODE_POD_ADDRESS")?.parse()?,
            load: millis("NODE_LOAD_MS")?,
            token: millis("NODE_TOKEN_MS")?,
        })
    }
}
