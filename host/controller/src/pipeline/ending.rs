//! The end of a reconcile: its conclusion goes to the log, to Events and to the status, and into memory. Nothing is decided
//! about children here.

use std::time::Instant;

use super::{
    Pipeline, cadence,
    conclusion::{Conclusion, FAULT, fault},
    guard,
    observe::Unobserved,
    report::{self, StatusWrite},
    samples,
    status::{Health, Report},
};
use crate::{
    cache::Object,
    events::Note,
    plugin::ActivePlugin,
    queue::{BACKOFF_FIRST, Key, Next},
};

impl Pipeline {
    /// Reports a conclusion: log, Events, status.
    pub(super) async fn conclude(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        object: &Object,
        conclusion: Conclusion,
    ) -> Next {
        let Conclusion { report, notes, events, next, measurements, carried_out, converged } = conclusion;
        if carried_out {
            self.memory.update(key, |memory| memory.unsettled = None);
        } else if !guard::is_unchanged(object) {
            self.memory.update(key, |memory| memory.unsettled = Some(object.generation));
        }
        match &report.health {
            Health::Applied => tracing::debug!("reconciled"),
            Health::Progressing(why) => tracing::info!(reason = why.reason, decision = %next, "{}", why.message),
            Health::Stalled(why) => tracing::warn!(reason = why.reason, decision = %next, "{}", why.message),
        }
        notes.iter().for_each(|note| self.tell(plugin, object, note));
        let report = Report { slowed: self.pace.slowed(key), ..report };
        let (known, reported) = self.memory.read(key, |memory| (memory.status, memory.reported));
        // A plugin counts what its status does not say yet, so a count belongs to the one write that makes it say so.
        let exact = samples::counts(plugin.manifest(), &measurements);
        // What failed is tried again later and later, and must not take its message along.
        let hold = cadence::left(reported, Instant::now()).filter(|_| !matches!(next, Next::Backoff(_)));
        match report::write_status(&self.client, plugin, object, &report, known, exact, hold).await {
            Ok(StatusWrite::Held(left)) => cadence::next(next, left),
            Ok(written) => {
                self.metrics.measured(&plugin.name, &measurements);
                events.iter().for_each(|event| self.events.record(plugin.objects.kind(), object, event));
                self.memory.update(key, |memory| match written {
                    StatusWrite::None(known) => {
                        memory.status = known;
                        memory.converged = converged;
                    }
                    StatusWrite::Held(_) => memory.converged = converged,
                    StatusWrite::Written { known, state, .. } => {
                        memory.status = known;
                        memory.converged =
                            converged.zip(state).and_then(|(converged, state)| converged.reported(state));
                        memory.reported = Some(Instant::now());
                    }
                });
                if matches!(written, StatusWrite::Written { changed_meanwhile: true, .. }) { Next::Again } else { next }
            }
            Err(failure) => {
                let next = Next::Backoff(if failure.passing { BACKOFF_FIRST } else { FAULT });
                tracing::warn!(reason = failure.reason, decision = %next, "{}", failure.message);
                if !failure.passing {
                    self.tell(plugin, object, &Note::warning(failure.reason, &failure.message));
                }
                next
            }
        }
    }

    /// Tells of a fault, in the host's own words, where people look.
    pub(super) fn tell(&self, plugin: &ActivePlugin, object: &Object, fault: &Note) {
        self.metrics.fault(&plugin.name, &fault.reason);
        self.events.record(plugin.objects.kind(), object, fault);
    }

    pub(super) async fn unobserved(&self, plugin: &ActivePlugin, key: &Key, reason: Unobserved) -> Next {
        match reason {
            Unobserved::Gone => {
                tracing::debug!(
                    "{} resource not found. Ignoring since object must be deleted",
                    plugin.objects.kind().kind
                );
                self.lookups.forget(key);
                self.pace.forget(key);
                self.memory.forget(key);
                Next::Rest
            }
            // The cache's own sync asks for the object again.
            Unobserved::NotSynced(_, None) => Next::Rest,
            Unobserved::NotSynced(kind, Some(why)) => {
                let Some(object) = plugin.objects.store().get(&key.object) else { return Next::Rest };
                let message = format!("the children of kind {} are not known: {why}", kind.kind);
                self.conclude(plugin, key, &object, fault("ChildrenUnknown", &message)).await
            }
        }
    }
}
