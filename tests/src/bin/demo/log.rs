//! The host's log made readable: from JSON lines to one short line each. It never changes or hides a message.

use std::time::Duration;

use anyhow::Result;
use pilothouse_tests::{
    host::Host,
    wait::{Look, eventually},
};
use serde_json::{Map, Value};

/// The time limit for the host to log what it has done.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fields that every line has and that the demo leaves out.
const LEFT_OUT: [&str; 5] = ["timestamp", "level", "message", "span", "spans"];

/// All lines, readable.
pub fn lines(log: &str) -> Vec<String> {
    log.lines().map(readable).collect()
}

/// A place in the log, to find only what comes after it.
pub struct Mark(usize);

impl Mark {
    /// The present end of the log.
    pub fn here(host: &Host) -> Self {
        Self(host.log().len())
    }

    /// Waits for a line that has all of the texts, and gives it readable.
    ///
    /// # Errors
    /// If the line does not come in time. Quotes the log.
    pub async fn line(&self, host: &Host, texts: &[&str]) -> Result<String> {
        eventually(PATIENCE, &format!("a log line with {texts:?}"), async || {
            let log = host.log();
            let new = lines(log.get(self.0..).unwrap_or_default());
            let found = new.iter().find(|line| texts.iter().all(|text| line.contains(text)));
            Ok(found.cloned().map_or_else(|| Look::NotYet(new.join("\n")), Look::Found))
        })
        .await
    }
}

/// `INFO Drift detected. Updating Deployment. child="…" object="…"`; a line that is not JSON stays as it is.
fn readable(line: &str) -> String {
    let Ok(Value::Object(line)) = serde_json::from_str::<Value>(line) else {
        return line.to_owned();
    };
    let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut fields = line.clone();
    fields.retain(|name, value| !LEFT_OUT.contains(&name.as_str()) && value != "");
    format!("{} {}{}{}", text("level"), text("message"), printed(&span(&line)), printed(&fields))
}

/// Which object the line is about.
fn span(line: &Map<String, Value>) -> Map<String, Value> {
    let span = line.get("span").and_then(Value::as_object);
    let object = span.and_then(|span| span.get("object")).cloned();
    object.map(|object| ("object".to_owned(), object)).into_iter().collect()
}

fn printed(fields: &Map<String, Value>) -> String {
    fields.iter().map(|(name, value)| format!(" {name}={}", unquoted(value))).collect()
}

fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn a_line_becomes_short_and_keeps_its_fields() {
        let line = r#"{"timestamp":"2026-01-01T00:00:00Z","level":"INFO","message":"Drift detected.","child":"Deployment 'shop'","fields":"","span":{"object":"default/shop","name":"reconcile"}}"#;
        assert_eq!(readable(line), "INFO Drift detected. object=default/shop child=Deployment 'shop'");
    }

    #[test]
    fn a_line_that_is_not_json_stays() {
        assert_eq!(readable("thread 'main' panicked"), "thread 'main' panicked");
    }
}
