//! One round of a reconcile: the plugin is asked, its answer checked, planned and applied. What is to be reported is left to
//! the end of the reconcile.

use std::sync::Arc;

use jiff::Timestamp;
use pilothouse_engine::{
    CallContext, Verb,
    contract::{KindRef, Measurement, Verdict},
};

use super::{
    Pipeline, ROUNDS,
    apply::{Applied, Applier},
    check::{self, Desired, describe},
    conclusion::{Conclusion, answer, answered, failed, fault, held_back, restless},
    finalize,
    guard::{self, Circumstances, Judgement, how_to_confirm},
    inputs::{Converged, Inputs},
    observe::Observed,
    plan::{self, Cause, Plan},
    said::Said,
    settled::{Answer, Marks, Settled},
};
use crate::{
    cache::Object,
    events::Note,
    plugin::ActivePlugin,
    queue::{Key, Next},
};

/// How a round ended.
pub(super) enum Round {
    /// Something was written, or is not as it was known: look again.
    Again,
    /// The plugin has finalized the object, and measured that.
    Finalized(Vec<Measurement>),
    /// The version that was asked is no longer at work.
    Superseded,
    /// The deletes have to wait for a judgement: look again soon.
    Postponed,
    /// There is something to report.
    Concluded(Box<Conclusion>),
}

impl Pipeline {
    pub(super) async fn round(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        (observed, inputs): (&Observed, Inputs),
        said: &Said,
        verb: Verb,
        round: usize,
    ) -> Round {
        let mut response = said.response.clone();
        if finalize::is_being_collected(&observed.object) {
            response.children = None;
        }
        let answer = Answer::of(plugin.reconciler.digest(), &observed.object, response.children.as_deref());
        if self.is_settled(key, answer, observed) {
            response.children = None;
        }
        let mut desired =
            match check::check(plugin.manifest(), &observed.kind, &observed.object, &observed.kinds, response) {
                Ok(desired) => desired,
                Err(refusal) => return Round::Concluded(fault(refusal.reason(), &refusal.to_string()).into()),
            };
        let children = desired.children.take();
        let marks = children.as_deref().map(Marks::of);
        let mut plan = plan::plan(children, observed, &self.memory.read(key, |memory| memory.normalised.clone()));
        let judgement = self.judge(plugin, key, observed, verb, &desired, &plan);
        if judgement != Judgement::Pass {
            plan.deletes.clear();
        }
        let awaited = plan.awaited.clone();
        let applied = self.apply(plugin, key, observed, plan).await;
        if applied.is_outdated() && round < ROUNDS {
            return Round::Again;
        }
        if let Some(failure) = applied.failures.first() {
            return Round::Concluded(failed(failure, Some(&desired)).into());
        }
        if let (Some(answer), Some(marks)) = (answer, marks)
            && judgement == Judgement::Pass
            && awaited.is_empty()
            && applied.deleted.is_empty()
        {
            let settled = match applied.written.is_empty() {
                true => Settled::now(answer, marks, observed),
                false => Settled::after(answer, observed, &applied),
            };
            self.memory.update(key, |memory| memory.settled = Some(settled));
        }
        let events = std::mem::take(&mut desired.events).into_iter().map(Note::from).collect();
        let wrote = applied.written.iter().any(|written| written.changed) || !applied.deleted.is_empty();
        match (wrote, round < ROUNDS) {
            (true, true) => Round::Again,
            (true, false) => Round::Concluded(Conclusion { events, ..restless(desired) }.into()),
            (false, _) if judgement == Judgement::Wait => Round::Postponed,
            (false, _) if verb == Verb::Finalize && desired.verdict == Verdict::Done => {
                Round::Finalized(desired.measurements)
            }
            (false, _) => {
                let conclusion = match &judgement {
                    Judgement::Hold(why) => held_back(desired, why, &how_to_confirm(plugin, &observed.object)),
                    Judgement::Pass | Judgement::Wait => answered(desired, &awaited),
                };
                let converged = Converged::new(inputs, &said.recorded);
                // A plugin that asks for a retry is asked again, whatever it is asked.
                let converged = converged.filter(|_| !matches!(conclusion.next, Next::Backoff(_)));
                Round::Concluded(Conclusion { events, converged, ..conclusion }.into())
            }
        }
    }

    /// Whether there is nothing to check, plan or apply of an answer's children.
    fn is_settled(&self, key: &Key, answer: Option<Answer>, observed: &Observed) -> bool {
        let before = self.memory.read(key, |memory| memory.settled.clone());
        let now = before.zip(answer).and_then(|(before, answer)| before.still(answer, observed));
        let settled = now.is_some();
        if settled {
            self.memory.update(key, |memory| memory.settled = now);
        }
        settled
    }

    /// Stage 3: calls the plugin and records what it read, unless what it said in the round before still stands.
    pub(super) async fn ask(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        (observed, inputs): (&Observed, Inputs),
        verb: Verb,
        before: Option<Said>,
    ) -> Result<Said, Round> {
        if let Some(said) = before.filter(|said| said.stands(inputs, &self.answers(plugin, key))) {
            self.metrics.call_skipped(&plugin.name);
            return Ok(said);
        }
        let context = CallContext { lookups: Arc::new(self.answers(plugin, key)), now: Timestamp::now() };
        let call = plugin.reconciler.call(verb, observed.request("null"), context);
        // A call that is under way when another version comes is not waited for: that version is asked instead.
        let call = tokio::select! {
            biased;
            call = call => call,
            () = plugin.until_superseded() => return Err(Round::Superseded),
        };
        self.metrics.called(&plugin.name, &call.outcome, &call.usage);
        if !call.recorded.denied.is_empty() {
            self.tell_denials(plugin, key, &observed.object, &call.recorded.denied);
        }
        self.lookups.record(key, call.recorded.lookups.iter().map(|(query, _)| query.clone()).collect());
        let response = answer(call.outcome).map_err(Round::Concluded)?;
        Ok(Said::to(inputs, response, call.recorded))
    }

    /// Tells of lookups that were denied, whatever the plugin made of that.
    fn tell_denials(&self, plugin: &ActivePlugin, key: &Key, object: &Object, denied: &[KindRef]) {
        for denial in self.answers(plugin, key).denials(denied) {
            tracing::warn!(reason = denial.reason, decision = "the plugin goes on without", "{}", denial.message);
            self.tell(plugin, object, &denial);
        }
    }

    /// Whether the plan's deletes may be carried out. What a plugin deletes as it finalizes is meant to go.
    fn judge(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        observed: &Observed,
        verb: Verb,
        desired: &Desired,
        plan: &Plan,
    ) -> Judgement {
        let unsettled = self.memory.read(key, |memory| memory.unsettled);
        let circumstances = Circumstances {
            version: plugin.short_digest(),
            on_purpose: desired.removes_many || verb == Verb::Finalize,
            unsettled: unsettled == Some(observed.object.generation),
            probation: &plugin.probation,
        };
        guard::judge(plan, observed, circumstances)
    }

    async fn apply(&self, plugin: &ActivePlugin, key: &Key, observed: &Observed, plan: Plan) -> Applied {
        if plan.is_empty() {
            return Applied::default();
        }
        for write in &plan.writes {
            let fields: Vec<_> = write.cause.differences().iter().map(ToString::to_string).collect();
            let child = describe(&write.child.kind, &write.child.name);
            tracing::info!(child, fields = fields.join("; "), "{}", write.cause.finding(&write.child.kind.kind));
            if matches!(write.cause, Cause::Drifted { .. }) {
                self.metrics.drift_repaired(&plugin.name);
            }
        }
        for delete in &plan.deletes {
            tracing::info!(
                child = describe(&delete.kind, &delete.live.name.name),
                "Deleting {}: no longer wanted.",
                delete.kind.kind
            );
        }
        let applied = Applier { client: &self.client, plugin, object: &observed.object }.apply(plan).await;
        self.remember_normalised(key, &applied);
        applied
    }

    fn remember_normalised(&self, key: &Key, applied: &Applied) {
        for written in applied.written.iter().filter(|written| !written.changed) {
            if let Some(live) = written.write.cause.live() {
                let (child, differences) = (&written.write.child, written.write.cause.differences());
                self.memory.update(key, |memory| memory.normalised.remember(child, live, differences));
            }
        }
    }
}
