//! Stage 3: calls the plugin, unless it would get the same inputs as in the previous round. Answers its lookups from the caches and
//! remembers them. Makes no request; a failure of the plugin is a result, not an error of the host.

pub mod answer;
pub mod in_sync;
pub mod inputs;
pub mod read;

use std::sync::Arc;

use pilothouse_engine::{
    Call, CallContext, DeniedLookup, Outcome, Verb,
    contract::{RefusedChild, Response},
};

use self::{
    answer::LastAnswer,
    in_sync::AnswerId,
    inputs::Inputs,
    read::{NotLearned, ReadError, learn},
};
use super::{observe::Observed, work_item::WorkItem};
use crate::{
    events::{Event, Recorded},
    lookups::NoRoom,
};

/// A call to make.
pub struct PluginCall<'a> {
    /// The object and its children.
    pub observed: &'a Observed,
    /// The children that could not be written before.
    pub refused: Vec<RefusedChild>,
    /// The fingerprint of the inputs.
    pub inputs: Inputs,
    /// The function to call.
    pub verb: Verb,
}

/// The answer to a call.
pub struct PluginAnswer {
    /// The plugin's response.
    pub response: Arc<Response>,
    /// The part to remember for the next reconcile.
    pub answer: LastAnswer,
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum CallError {
    /// Another version of the plugin became active during the call, or the plugin was removed.
    Superseded,
    /// The plugin failed.
    Failed(Outcome),
    /// Nobody can tell what the plugin's account may look up.
    PermissionsUnknown(String),
    /// What the plugin looked up could not be read.
    NotRead(ReadError),
    /// The host cannot remember all that the plugin looked up.
    NotRemembered(NoRoom),
}

/// Calls the plugin, or reuses the previous answer if the inputs are the same.
///
/// # Errors
/// [`CallError`]; the previous answer is lost then, so the next reconcile calls again.
pub async fn call_plugin(
    item: &WorkItem<'_>,
    plugin_call: &PluginCall<'_>,
    before: Option<LastAnswer>,
) -> Result<PluginAnswer, CallError> {
    let PluginCall { observed, inputs, .. } = plugin_call;
    // Not indexed: these are the lookups of the previous call, which are in the index already.
    let known = before.as_ref().and_then(|before| before.response_for(*inputs, &item.lookups()));
    if let (Some(answer), Some(response)) = (&before, known) {
        item.context.metrics.plugins.call_skipped(&item.plugin.name);
        return Ok(PluginAnswer { response, answer: answer.clone() });
    }
    // A swap does not wait for slow calls of the old version: they are dropped, and the new version is called instead. `biased`
    // prefers a call that has just ended.
    let call = tokio::select! {
        biased;
        call = call_with_permissions(item, plugin_call) => call?,
        () = item.plugin.until_superseded() => return Err(CallError::Superseded),
    };
    item.context.metrics.called(&item.plugin.name, &call);
    report_denied_lookups(item, observed, &call.recorded.denied);
    // Also for a failed call. What it looked up may be the cause, and then a change of that has to trigger the next call.
    item.context.lookups.record(item.key, call.recorded.lookups.iter().map(|lookup| &lookup.query));
    match call.outcome {
        Outcome::Response(response) => {
            let children = answer_id(item, observed, &response);
            let response = Arc::new(response);
            let answer = LastAnswer::new(*inputs, response.clone(), call.recorded, children).inheriting(before);
            Ok(PluginAnswer { response, answer })
        }
        failed => Err(CallError::Failed(failed)),
    }
}

/// Calls the plugin. What its account may look up is asked, and what is in a Secret is read, when a call needs it, and the call is made again
/// with the answer. So is one that needed more memory than was free. A plugin that stops at the first lookup that it is denied is called
/// once more for each. That ends, for each time something is asked that nobody knew, and how much is known of an account, or found by a
/// call, has a bound (`identity/permissions.rs`, `lookups/memory.rs`).
async fn call_with_permissions(item: &WorkItem<'_>, plugin_call: &PluginCall<'_>) -> Result<Call, CallError> {
    let PluginCall { observed, refused, verb, .. } = plugin_call;
    let mut has_waited = false;
    loop {
        let lookups = Arc::new(item.indexed_lookups());
        let context = CallContext { lookups: lookups.clone(), now: item.context.clock.now() };
        let request = observed.request(item.plugin.contract(), refused.clone(), &item.plugin.config);
        let call = item.plugin.reconciler.call(*verb, request, context).await;
        if matches!(call.outcome, Outcome::HostMemory(_)) && !has_waited {
            // The next call waits until it has all the memory that it may need. A plugin has no effects, so nothing happens twice.
            has_waited = true;
            continue;
        }
        if let Some(no_room) = lookups.no_room() {
            item.context.metrics.called(&item.plugin.name, &call);
            // What there was room for is of no use without the rest, and others need it.
            item.context.lookups.forget(item.key);
            item.context.contents.forget(item.key);
            return Err(CallError::NotRemembered(no_room));
        }
        if !learn(&lookups.answers, &item.context.identities, &item.host_client(), item.key).await? {
            item.context.contents.use_only(item.key, lookups.answers.needed.used());
            item.notes.asked(lookups.asked());
            return Ok(call);
        }
    }
}

impl From<NotLearned> for CallError {
    fn from(error: NotLearned) -> Self {
        match error {
            NotLearned::Asked(error) => {
                Self::PermissionsUnknown(format!("{error}; the host needs the right to impersonate it"))
            }
            NotLearned::Read(error) => Self::NotRead(error),
        }
    }
}

fn answer_id(item: &WorkItem<'_>, observed: &Observed, response: &Response) -> Option<AnswerId> {
    let children = response.children.as_deref()?;
    Some(AnswerId::of(item.plugin.reconciler.digest(), observed, children))
}

/// Reports lookups that were denied, even if the plugin handled the denial: somebody has to fix its manifest or its request.
fn report_denied_lookups(item: &WorkItem<'_>, observed: &Observed, denied: &[DeniedLookup]) {
    for DeniedLookup { kind, why } in denied {
        let denial = Event::warning("LookupDenied", why);
        // The plugin chooses what is denied, in any number of words: in the log as well, only so many of them.
        if item.record_fault(&observed.object, &denial) == Recorded::Yes {
            tracing::warn!(reason = denial.reason, %kind, decision = "the plugin goes on without", "{why}");
        }
    }
}
