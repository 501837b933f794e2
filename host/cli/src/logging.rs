//! The host's log on standard error, as text for people or as JSON for log collectors.

use std::{
    fmt,
    io::{self, IsTerminal},
};

use clap::{Args, ValueEnum};
use pilothouse_controller::server::{LogLevel, LogLevelError};
use tracing::field::Field;
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    filter::ParseError,
    fmt::{
        format::{Writer, debug_fn},
        writer::BoxMakeWriter,
    },
    reload,
};

/// What the client of Kubernetes logs where nobody asks for more of it.
const QUIET: &str = "kube_client=info";

/// The arguments of the log.
#[derive(Args, Clone, Debug)]
pub struct Logging {
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,pilothouse_controller=debug`. What the API server answers
    /// word for word, with values of Secrets that it refuses, is only logged by `kube_client=debug`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// How it is written.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: Format,
}

/// A format for log lines.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Format {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The level of the running log, which can be changed.
pub struct Level {
    current: Box<dyn Fn() -> String + Send + Sync>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl Logging {
    /// Starts logging.
    ///
    /// # Errors
    /// If the level is malformed.
    pub fn start(&self) -> anyhow::Result<Level> {
        self.start_to(BoxMakeWriter::new(io::stderr), io::stderr().is_terminal())
    }

    /// Starts logging to another place than standard error.
    ///
    /// # Errors
    /// If the level is malformed.
    pub fn start_to(&self, writer: BoxMakeWriter, has_colours: bool) -> anyhow::Result<Level> {
        let filter = filter(&self.log_level)?;
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_target(false);
        let (level, started) = match self.log_format {
            Format::Text => {
                let fields = debug_fn(write_field).delimited(" ");
                let builder = builder.with_ansi(has_colours).fmt_fields(fields).with_filter_reloading();
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

    fn change(&self, text: &str) -> Result<(), LogLevelError> {
        (self.reload)(filter(text)?).map_err(|error| LogLevelError::NotChangeable(error.to_string()))
    }
}

/// Writes one field in one line. A plugin's words may have line breaks, which would look like further lines of the log.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    writer.write_str(&in_one_line(&format!("{value:?}")))
}

/// A text with its control characters escaped.
fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() { line.extend(character.escape_default()) } else { line.push(character) }
    }
    line
}

/// Parses a filter. A part without `=` must be a level: tracing would take any other word for a target and log only that target.
fn filter(text: &str) -> Result<EnvFilter, LogLevelError> {
    let malformed = |why: String| LogLevelError::Malformed { filter: text.to_owned(), why };
    for part in text.split(',').map(str::trim).filter(|part| !part.contains(['=', '['])) {
        if !["off", "error", "warn", "info", "debug", "trace"].contains(&part.to_lowercase().as_str()) {
            return Err(malformed(format!("'{part}' is not a level")));
        }
    }
    let parsed = EnvFilter::try_new(text).map_err(|error| malformed(error.to_string()))?;
    if !quotes_refusals(text) {
        return Ok(parsed);
    }
    let quiet = QUIET.parse().map_err(|error: ParseError| malformed(error.to_string()))?;
    Ok(parsed.add_directive(quiet))
}

/// Whether the client of Kubernetes would log refusals as the API server words them, though nobody asked for its log. They quote values,
/// also those of Secrets.
fn quotes_refusals(text: &str) -> bool {
    let mut parts = text.split(',').map(str::trim);
    !text.contains("kube") && parts.any(|part| ["debug", "trace"].contains(&part.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_line_breaks_is_one_line() {
        for (text, line) in
            [("plain ü", "plain ü"), ("a\nERROR forged", "a\\nERROR forged"), ("\u{1b}[31m", "\\u{1b}[31m")]
        {
            assert_eq!(in_one_line(text), line);
        }
    }

    #[test]
    fn the_client_of_kubernetes_is_quiet_unless_it_is_named() {
        for (text, is_quiet) in [
            ("info", false),
            ("debug", true),
            ("TRACE", true),
            ("warn,plugin=debug", false),
            ("debug,pilothouse_controller=trace", true),
            ("debug,kube_client=debug", false),
        ] {
            let kept = filter(text).map(|filter| filter.to_string()).unwrap_or_default();
            assert_eq!(kept.contains(QUIET), is_quiet, "{text}: {kept}");
        }
    }

    #[test]
    fn a_filter_is_a_level_and_more_levels_for_parts() {
        for text in ["info", "DEBUG", "off", "info,pilothouse_controller=debug", "warn,kube[span{field=x}]=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for (text, word) in [("", "''"), ("debgu", "'debgu'"), ("info,,warn", "''"), ("info,a=loud", "loud")] {
            let why = filter(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(why.contains(word) && why.contains("info,pilothouse_controller=debug"), "{text}: {why}");
        }
    }
}
