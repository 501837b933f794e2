//! What a plugin says within one reconcile. What it made the host write is looked at again; where that shows it nothing else
//! than before, it would only say the same again, and is not asked. Pure.

use pilothouse_engine::{Lookups, Recorded, contract::Response};

use super::inputs::{Converged, Inputs};

/// A plugin's answer, and what it read for it.
pub(super) struct Said {
    pub(super) response: Response,
    pub(super) recorded: Recorded,
    based_on: Option<Converged>,
}

impl Said {
    /// What was said to these inputs.
    pub(super) fn to(inputs: Inputs, response: Response, recorded: Recorded) -> Self {
        let based_on = Converged::new(inputs, &recorded);
        Self { response, recorded, based_on }
    }

    /// Whether the plugin would say the same to these.
    pub(super) fn stands(&self, inputs: Inputs, lookups: &dyn Lookups) -> bool {
        self.based_on.as_ref().is_some_and(|based_on| based_on.still_holds(inputs, lookups))
    }
}
