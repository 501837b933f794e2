//! What a plugin says within one reconcile. What it made the host write is looked at again; where that shows it nothing else
//! than before, it would only say the same again, and is not asked. Pure.

use pilothouse_engine::{Lookups, Recorded, contract::Response};

use super::inputs::{Converged, Inputs};

/// A plugin's answer, and what it read for it.
pub(super) struct Said {
    pub(super) response: Response,
    pub(super) recorded: Recorded,
    inputs: Inputs,
}

impl Said {
    /// What was said to these inputs.
    pub(super) fn to(inputs: Inputs, response: Response, recorded: Recorded) -> Self {
        Self { response, recorded, inputs }
    }

    /// Whether the plugin would say the same to these.
    pub(super) fn stands(&self, inputs: Inputs, lookups: &dyn Lookups) -> bool {
        Converged::new(self.inputs, &self.recorded).is_some_and(|before| before.still_holds(inputs, lookups))
    }
}
