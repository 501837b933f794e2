//! Stage 3: asks the plugin. Its lookups are answered from caches and remembered; whatever goes wrong in the call is a result,
//! not an error of the host. A call is left out where the plugin would be asked the same as in the round before.

pub mod answer;
pub mod in_sync;
pub mod inputs;

use std::sync::Arc;

use pilothouse_engine::{CallContext, DeniedLookup, Outcome, Verb, contract::Response};

use self::{answer::LastAnswer, in_sync::AnswerId, inputs::Inputs};
use super::{observe::Observed, work_item::WorkItem};
use crate::events::Event;

/// What the plugin is asked.
pub struct Question<'a> {
    /// The object and its children.
    pub observed: &'a Observed,
    /// What names them.
    pub inputs: Inputs,
    /// To reconcile or to finalize.
    pub verb: Verb,
}

/// An answer, and what is remembered of it.
pub struct Answered {
    /// What the plugin said.
    pub response: Arc<Response>,
    /// What is remembered.
    pub answer: LastAnswer,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// Another version has come to work, or none: it is asked instead.
    Superseded,
    /// The call failed.
    Failed(Outcome),
}

/// Asks the plugin, or takes the answer that it gave before, if it would give the same.
///
/// # Errors
/// [`Unanswered`]; what was remembered of the answer before is gone then.
pub async fn ask(
    item: &WorkItem<'_>,
    question: &Question<'_>,
    before: Option<LastAnswer>,
) -> Result<Answered, Unanswered> {
    let Question { observed, inputs, verb } = question;
    let known = before.as_ref().and_then(|before| before.response_to(*inputs, &item.lookups()));
    if let (Some(answer), Some(response)) = (&before, known) {
        item.context.metrics.plugins.call_skipped(&item.plugin.name);
        return Ok(Answered { response, answer: answer.clone() });
    }
    let context = CallContext { lookups: Arc::new(item.indexed_lookups()), now: item.context.clock.now() };
    let call = item.plugin.reconciler.call(*verb, observed.request(&item.plugin.config), context);
    // A call that is under way when another version comes is not waited for: that version is asked instead.
    let call = tokio::select! {
        biased;
        call = call => call,
        () = item.plugin.until_superseded() => return Err(Unanswered::Superseded),
    };
    item.context.metrics.called(&item.plugin.name, &call);
    tell_denials(item, observed, &call.recorded.denied);
    let queries = call.recorded.lookups.iter().map(|lookup| lookup.query.clone()).collect();
    item.context.lookups.record(item.key, queries);
    match call.outcome {
        Outcome::Response(response) => {
            let children = answer_id(item, observed, &response);
            let response = Arc::new(response);
            let answer = LastAnswer::new(*inputs, response.clone(), call.recorded, children).after(before);
            Ok(Answered { response, answer })
        }
        failed => Err(Unanswered::Failed(failed)),
    }
}

fn answer_id(item: &WorkItem<'_>, observed: &Observed, response: &Response) -> Option<AnswerId> {
    let children = response.children.as_deref()?;
    Some(AnswerId::of(item.plugin.reconciler.digest(), observed, children))
}

/// Tells of lookups that were denied, whatever the plugin made of that.
fn tell_denials(item: &WorkItem<'_>, observed: &Observed, denied: &[DeniedLookup]) {
    for DeniedLookup { kind, why } in denied {
        let denial = Event::warning("LookupDenied", why);
        tracing::warn!(reason = denial.reason, %kind, decision = "the plugin goes on without", "{why}");
        item.tell(&observed.object, &denial);
    }
}
