//! Prints a plan for people: the objects that would change or be in error, like a diff, and the counts. Decides nothing.

use std::fmt::Write;

use clap::builder::styling::{AnsiColor, Style};
use pilothouse_forecast::report::{
    Action, ChildCounts, ChildReport, Counts, Field, ObjectReport, PresentVersion, Report, State,
};
use serde_json::Value;

use crate::{output, table::printable, yaml};

/// Prints a plan.
///
/// # Errors
/// If nobody reads it.
pub fn print(report: &Report) -> anyhow::Result<()> {
    Ok(output::print(text(report, output::has_colours())?)?)
}

/// The text of a plan.
///
/// # Errors
/// If a value cannot be written as YAML.
pub fn text(report: &Report, has_colours: bool) -> anyhow::Result<String> {
    let paint = Paint { is_on: has_colours };
    let mut out = String::new();
    for object in &report.objects {
        print_object(&mut out, object, paint)?;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    print_summary(&mut out, report)?;
    Ok(out)
}

/// Whether to use colours.
#[derive(Clone, Copy)]
struct Paint {
    is_on: bool,
}

impl Paint {
    fn with(self, color: AnsiColor, text: &str) -> String {
        if !self.is_on {
            return text.to_owned();
        }
        let style = Style::new().fg_color(Some(color.into()));
        format!("{style}{text}{style:#}")
    }
}

fn print_object(out: &mut String, object: &ObjectReport, paint: Paint) -> anyhow::Result<()> {
    let name = object.full_name();
    let why = || {
        let (reason, message) = (object.reason.as_deref().unwrap_or_default(), object.message.as_deref());
        printable(&format!("{reason}: {}", message.unwrap_or_default())).into_owned()
    };
    match object.state {
        // Nothing to read about.
        State::Unchanged | State::LeftAlone | State::Pinned | State::Deleting => return Ok(()),
        State::InError if object.is_in_error_today => {
            writeln!(out, "{} {name}: {} (as today)", paint.with(AnsiColor::Yellow, "!"), why())?;
        }
        State::InError => writeln!(out, "{} {name}: {}", paint.with(AnsiColor::Red, "!"), why())?,
        State::Changed => writeln!(out, "{} {name}", paint.with(AnsiColor::Yellow, "~"))?,
    }
    if object.adds_finalizer {
        writeln!(out, "  {} a finalizer", paint.with(AnsiColor::Green, "+"))?;
    }
    for field in &object.fields {
        print_field(out, "  ", field, paint)?;
    }
    for (number, step) in object.steps.iter().enumerate() {
        if number > 0 {
            writeln!(out, "  then")?;
        }
        for child in step {
            print_child(out, child, &object.namespace, paint)?;
        }
    }
    Ok(())
}

fn print_child(out: &mut String, child: &ChildReport, namespace: &str, paint: Paint) -> anyhow::Result<()> {
    let color = match child.action {
        Action::Create => AnsiColor::Green,
        Action::Update => AnsiColor::Yellow,
        Action::Recreate | Action::Delete => AnsiColor::Red,
        Action::HoldBack => AnsiColor::Magenta,
    };
    let sign = child.action.sign();
    let elsewhere = if child.namespace == namespace || child.namespace.is_empty() {
        String::new()
    } else {
        format!(" in {}", child.namespace)
    };
    let cause = match (child.action, &child.cause) {
        (Action::HoldBack, Some(cause)) => format!(": held back, for {cause}"),
        (_, Some(cause)) => format!(": {cause}"),
        (Action::Recreate, None) => ": a field cannot be changed".to_owned(),
        (Action::Update, None) if child.fields.is_empty() => ": fields that are no longer returned go".to_owned(),
        (_, None) => String::new(),
    };
    writeln!(out, "  {} {} {}{elsewhere}{cause}", paint.with(color, sign), child.kind, child.name)?;
    for field in &child.fields {
        print_field(out, "      ", field, paint)?;
    }
    if let Some(body) = &child.body {
        for line in yaml::print(&without_marks(body))?.lines() {
            writeln!(out, "      {}", paint.with(AnsiColor::Green, &printable(line)))?;
        }
    }
    if let Some(refused) = &child.refused {
        let words = format!("{}: {}", refused.reason, refused.message);
        let words = printable(&words);
        writeln!(out, "      {} {words}", paint.with(AnsiColor::Red, "refused:"))?;
    }
    Ok(())
}

fn print_field(out: &mut String, indent: &str, field: &Field, paint: Paint) -> std::fmt::Result {
    let old = |value: &Value| paint.with(AnsiColor::Red, &printable(&value.to_string()));
    let new = |value: &Value| paint.with(AnsiColor::Green, &printable(&value.to_string()));
    let path = printable(&field.path);
    match (&field.from, &field.to) {
        (Value::Null, to) => writeln!(out, "{indent}+ {path}: {}", new(to)),
        (from, Value::Null) => writeln!(out, "{indent}- {path}: {}", old(from)),
        (from, to) => writeln!(out, "{indent}~ {path}: {} -> {}", old(from), new(to)),
    }
}

/// A body without what the host adds to every child.
fn without_marks(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
        for field in ["labels", "annotations"] {
            let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) else { continue };
            entries.retain(|key, _| !key.starts_with("pilothouse.dev/"));
            if entries.is_empty() {
                metadata.remove(field);
            }
        }
    }
    body
}

fn print_summary(out: &mut String, report: &Report) -> std::fmt::Result {
    let Report { version, present, kind, counts, objects } = report;
    let short = |digest: &str| digest.trim_start_matches("sha256:").chars().take(12).collect::<String>();
    write!(out, "{} {} ({})", version.name, printable(&version.version), short(&version.digest))?;
    match present {
        Some(PresentVersion { name, version: Some(at_work), digest }) => {
            let (at_work, digest) = (printable(at_work), digest.as_deref().map(short).unwrap_or_default());
            writeln!(out, " in the place of {at_work} ({digest}) of the Plugin '{name}':")?;
        }
        Some(PresentVersion { name, version: None, .. }) => {
            writeln!(out, " for the Plugin '{name}', of which no version is at work:")?;
        }
        None => writeln!(out, ":")?,
    }
    let Counts { changed, unchanged, left_alone, pinned, deleting, in_error, in_error_today, children, written: _ } =
        counts;
    let today = if *in_error_today > 0 { format!(" ({in_error_today} of them as today)") } else { String::new() };
    writeln!(
        out,
        "  {} of kind {kind}: {changed} changed, {unchanged} unchanged, {in_error} in error{today}, {pinned} pinned, {left_alone} left \
         alone, {deleting} being deleted",
        objects.len()
    )?;
    let ChildCounts { created, changed, recreated, deleted, held_back, refused } = children;
    write!(
        out,
        "  children: {created} created, {changed} changed, {recreated} created anew, {deleted} deleted, {held_back} held back"
    )?;
    let words = if *refused > 0 { format!(", {refused} refused by the API server") } else { String::new() };
    writeln!(out, "{words}")
}
