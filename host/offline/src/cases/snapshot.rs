//! A case of what a plugin is called with and what it answers now. Writes no file.

use std::path::Path;

use pilothouse_engine::Reconciler;
use serde_json::Value;

use super::{
    file::{CaseError, Place, parse},
    run::{Ran, StepFailure, run},
    update::{rewrite, text_of},
};
use crate::Inputs;

/// A case in the place of a file that is not there.
const FILE: &str = "the captured case";

/// A case with what a plugin answers.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its text.
    pub text: String,
    /// What is wrong with the answer, so that the case does not pass: empty if it does.
    pub failures: Vec<StepFailure>,
    /// What is worth to know.
    pub notes: Vec<String>,
}

/// Why there is no case.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The inputs make none.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// What is expected cannot be written.
    #[error("{0}: what is expected cannot be written")]
    Rewrite(Place),
}

/// Makes a case of what a plugin is called with. All of what it answers is expected.
///
/// # Errors
/// [`SnapshotError`]: the inputs make no case.
pub async fn snapshot(plugin: &dyn Reconciler, name: &str, inputs: &Inputs) -> Result<Snapshot, SnapshotError> {
    let Inputs { object, children, lookups, config, now } = inputs;
    let mut sections = vec![("name", Value::from(name)), ("now", now.to_string().into())];
    if !config.is_null() {
        sections.push(("config", config.clone()));
    }
    sections.push(("object", object.clone()));
    for (section, objects) in [("children", children), ("lookups", lookups)] {
        if !objects.is_empty() {
            sections.push((section, objects.clone().into()));
        }
    }
    let mut text: String = sections.iter().map(text_of).collect();
    let first = attempt(plugin, &text).await?;
    text = rewrite(&text, first.rewrites).map_err(SnapshotError::Rewrite)?;
    let Ran { failures, notes, .. } = attempt(plugin, &text).await?;
    Ok(Snapshot { text, failures, notes })
}

/// Runs the case in a text.
async fn attempt(plugin: &dyn Reconciler, text: &str) -> Result<Ran, CaseError> {
    let file = Path::new(FILE);
    match parse(file, text)?.first() {
        Some(case) => Ok(run(plugin, case).await),
        None => Err(CaseError::Empty(file.to_owned())),
    }
}
