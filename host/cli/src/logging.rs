//! The host's log: to standard error, as text for people or JSON for collectors.

use clap::{Args, ValueEnum};
use pilothouse_controller::server::LogLevel;
use tracing_subscriber::{EnvFilter, reload};

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

/// The level of a log that was started, which can be changed.
pub struct Level {
    current: Box<dyn Fn() -> String + Send + Sync>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl Logging {
    /// Starts logging.
    ///
    /// # Errors
    /// Where the level is malformed.
    pub fn start(&self) -> anyhow::Result<Level> {
        let filter = filter(&self.log_level).map_err(anyhow::Error::msg)?;
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
        let (level, started) = match self.log_format {
            Format::Text => {
                let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
                let builder = builder.with_ansi(colours).with_filter_reloading();
                (Level::of(builder.reload_handle()), builder.try_init())
            }
            Format::Json => {
                let builder = builder.json().flatten_event(true).with_filter_reloading();
                (Level::of(builder.reload_handle()), builder.try_init())
            }
        };
        started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))?;
        Ok(level)
    }
}

impl Level {
    fn of<S: 'static>(handle: reload::Handle<EnvFilter, S>) -> Self {
        let reader = handle.clone();
        Self {
            current: Box::new(move || reader.with_current(ToString::to_string).unwrap_or_default()),
            reload: Box::new(move |filter| handle.reload(filter)),
        }
    }
}

impl LogLevel for Level {
    fn current(&self) -> String {
        (self.current)()
    }

    fn change(&self, text: &str) -> Result<(), String> {
        (self.reload)(filter(text)?).map_err(|error| format!("the log level cannot be changed: {error}"))
    }
}

/// Reads a filter. A word alone must be a level: anything else would be taken for a part of the program of which
/// everything is logged, and nothing else.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let example = "write error, warn, info, debug or trace, or a filter such as info,pilothouse_controller=debug";
    for part in text.split(',').map(str::trim).filter(|part| !part.contains(['=', '['])) {
        if !["off", "error", "warn", "info", "debug", "trace"].contains(&part.to_lowercase().as_str()) {
            return Err(format!("the log level '{text}' is malformed: '{part}' is not a level; {example}"));
        }
    }
    EnvFilter::try_new(text).map_err(|error| format!("the log level '{text}' is malformed: {error}; {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_and_more_levels_for_parts() {
        for text in ["info", "DEBUG", "off", "info,pilothouse_controller=debug", "warn,kube[span{field=x}]=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for (text, word) in [("", "''"), ("debgu", "'debgu'"), ("info,,warn", "''"), ("info,a=loud", "loud")] {
            let why = filter(text).err().unwrap_or_default();
            assert!(why.contains(word) && why.contains("info,pilothouse_controller=debug"), "{text}: {why}");
        }
    }
}
