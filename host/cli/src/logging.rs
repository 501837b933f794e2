//! The host's log: to standard error, as text for people or JSON for collectors.

use anyhow::Context;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// How the log looks.
#[derive(Args, Clone, Debug)]
pub struct Logging {
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,pilothouse_controller=debug`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// How it is written.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: Format,
}

/// A way to write log lines.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Format {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl Logging {
    /// Starts logging.
    ///
    /// # Errors
    /// Where the level is malformed.
    pub fn start(&self) -> anyhow::Result<()> {
        let filter = EnvFilter::try_new(&self.log_level)
            .with_context(|| format!("the log level '{}' is malformed", self.log_level))?;
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
        let started = match self.log_format {
            Format::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
            Format::Json => builder.json().flatten_event(true).try_init(),
        };
        started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))
    }
}
