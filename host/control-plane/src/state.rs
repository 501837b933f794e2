//! What is remembered in the directory about the processes, so that another process, or the next run after a crash,
//! finds them. A hint, never proof: an id is checked before anything is done to it.

use crate::layout::{Layout, write_private};
use crate::ports::Ports;
use crate::{Part, Parts};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// Whether the processes are meant to run without their starter.
    pub(crate) detached: bool,
    pub(crate) parts: Parts,
    pub(crate) audit_log: bool,
    pub(crate) ports: Ports,
    pub(crate) pids: BTreeMap<Part, u32>,
}

impl State {
    pub(crate) fn load(layout: &Layout) -> Result<Option<Self>> {
        let path = layout.state();
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path)?;
        let state = serde_json::from_str(&text)
            .with_context(|| format!("{} is not ours; remove it if nothing runs", path.display()))?;
        Ok(Some(state))
    }

    pub(crate) fn save(&self, layout: &Layout) -> Result<()> {
        let new = layout.state().with_extension("new");
        write_private(&new, &serde_json::to_string_pretty(self)?)?;
        Ok(fs::rename(new, layout.state())?)
    }

    pub(crate) fn remove(layout: &Layout) -> Result<()> {
        if layout.state().exists() {
            fs::remove_file(layout.state())?;
        }
        Ok(())
    }
}
