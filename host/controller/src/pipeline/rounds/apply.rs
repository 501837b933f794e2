//! Carries out the plan of a round, and remembers of it what later reconciles need. Plans nothing.

use tokio::time::Instant;

use super::{AppliedAnswer, PlannedAnswer, Rounds};
use crate::{
    object::describe,
    pipeline::{
        apply::{self, Applied, Applier, Effect, Written},
        call::{
            answer::LastAnswer,
            in_sync::{ChildrenInSync, MetadataKeys, WrittenStates},
        },
        last_reconcile::Notes,
        observe::Observed,
        plan::{self, DeleteCause, Plan, Recreations, Write, WriteCause, deletion_guard::DeletionDecision},
        report::result::FAULT_BACKOFF,
        state::ObjectState,
    },
    queue::delay_after,
};

/// The part of the retry delay for which a refused write is not repeated, even if events trigger reconciles in the meantime. It
/// is less than one because of the queue's jitter: the retry itself must not come too early for the write.
const REFUSED_WRITE_PAUSE: f64 = 0.85;

impl Rounds<'_> {
    /// Stage 6, for an answer. Remembers the answer, and whether its children are in sync now.
    pub(super) async fn apply_answer(
        &self,
        state: &mut ObjectState,
        observed: &Observed,
        planned: PlannedAnswer,
        mut answer: LastAnswer,
    ) -> AppliedAnswer {
        let PlannedAnswer { desired, keys, mut plan, decision } = planned;
        let (awaited, waiting) = (std::mem::take(&mut plan.awaited), std::mem::take(&mut plan.waiting));
        self.item.notes.waits(awaited.iter().chain(&waiting));
        let applied = self.apply(state, observed, plan).await;
        // While deletes are held back, or a child is still being deleted, the children are not as the answer wants them, and the
        // next reconcile must plan them again.
        if let Some(keys) = keys
            && decision == DeletionDecision::Allow
            && awaited.is_empty()
            && waiting.is_empty()
        {
            remember_in_sync(&mut answer, keys, observed, &applied);
        }
        state.answer = Some(answer);
        AppliedAnswer { desired, decision, awaited, waiting, applied }
    }

    /// Stage 6. Remembers refused writes, normalised values and children to recreate for later reconciles.
    pub(super) async fn apply(&self, state: &mut ObjectState, observed: &Observed, mut plan: Plan) -> Applied {
        let item = &self.item;
        let held = state.refused_writes.hold(&mut plan, Instant::now());
        if !held.is_empty() {
            // A held write counts as a failure, and deletes need a plan without failures.
            plan.deletes.clear();
        }
        if plan.is_empty() {
            return Applied { failures: held, ..Applied::default() };
        }
        log_writes(&plan);
        // A generation that is not observed yet is a user's change, after which another answer is to be expected.
        if is_answer_changed(&plan) && observed.object.is_observed() {
            self.hot_loops.count_changed_answer(item.key);
        }
        let has_deletes = !plan.deletes.is_empty();
        let (host_client, client) = (item.host_client(), item.client());
        let (plugin, object) = (item.plugin, &observed.object);
        let applier = Applier { host_client: &host_client, client: &client, plugin, object, effect: Effect::Lasting };
        let mut applied = apply::apply(&applier, plan).await;
        // The queue counts this failure when the reconcile ends, hence one more. It then computes the same delay, except for
        // jitter.
        let pause = delay_after(FAULT_BACKOFF, item.failures.saturating_add(1)).mul_f64(REFUSED_WRITE_PAUSE);
        state.refused_writes.remember(std::mem::take(&mut applied.refused), pause, Instant::now());
        applied.failures.extend(held);
        note(item.notes, &applied);
        for written in &applied.written {
            match (&written.write.cause, written.has_changed) {
                (WriteCause::Drifted(_), true) => item.context.metrics.plugins.drift_repaired(&item.plugin.name),
                // The apply left the resource version as it was, so it removed none of these differences.
                (WriteCause::Drifted(there) | WriteCause::Changed(there), false) => {
                    state.normalised.remember(&written.write.child, &there.live, &there.differences);
                }
                _ => {}
            }
        }
        // The deletes of a recreation may be missing in the plan, because the guard or a held write keeps them back. The
        // recreations are kept then: to find them anew costs an update that is refused.
        if has_deletes || !applied.recreations.is_empty() {
            state.recreations = Recreations::of(applied.recreations.iter().cloned());
        }
        applied
    }
}

/// Whether the plan follows from a changed answer, and not from somebody else's change of the children.
fn is_answer_changed(plan: &Plan) -> bool {
    let is_changed = plan.writes.iter().any(|write| matches!(write.cause, WriteCause::Changed(_)));
    is_changed || plan.deletes.iter().any(|delete| delete.cause == DeleteCause::NotReturned)
}

/// Remembers that the children are in sync with the answer. After a delete or a failure that is not known.
fn remember_in_sync(answer: &mut LastAnswer, keys: MetadataKeys, observed: &Observed, applied: &Applied) {
    let Some(id) = answer.children() else { return };
    if !applied.failures.is_empty() || !applied.deleted.is_empty() || !applied.recreations.is_empty() {
        return;
    }
    let in_sync = if applied.written.is_empty() {
        ChildrenInSync::compared(id, keys, observed)
    } else {
        let replaced = applied.written.iter().filter_map(|written| written.write.cause.live());
        let writes = WrittenStates {
            replaced: replaced.map(|live| live.fingerprint()).collect(),
            written: applied.written.iter().map(|written| written.state).collect(),
        };
        ChildrenInSync::applied(id, observed, &writes)
    };
    answer.set_in_sync(in_sync);
}

/// Says what was carried out, for people.
fn note(notes: &Notes, applied: &Applied) {
    for Written { write, .. } in &applied.written {
        let verb = if write.cause.live().is_some() { "changed" } else { "created" };
        notes.wrote(|| {
            let fields = changed_fields(write);
            let fields = if fields.is_empty() { String::new() } else { format!(" ({fields})") };
            format!("{verb} {}: {}{fields}", describe(&write.child.kind, &write.child.name), write.cause)
        });
    }
    for delete in &applied.deleted {
        notes.wrote(|| format!("deleted {}: {}", describe(&delete.kind, &delete.live.name), delete.cause));
    }
    applied.failures.iter().for_each(|failure| notes.failed(&failure.message));
}

/// What a write changes, for people: no values of Secrets.
fn changed_fields(write: &Write) -> String {
    plan::diff::in_words(&plan::masked::differences(&write.child.kind, write.cause.differences()))
}

fn log_writes(plan: &Plan) {
    for write in &plan.writes {
        let child = describe(&write.child.kind, &write.child.name);
        let (fields, cause) = (changed_fields(write), write.cause.to_string());
        tracing::info!(child, cause, fields, "{}", write.cause.finding(&write.child.kind.kind));
    }
}
