//! The simulated plugin as a native function. Decides nothing: it looks up what the answer is based on, and records it.

use pilothouse_engine::{
    AnsweredLookup, Call, CallContext, Limits, Outcome, Query, Recorded, Scope, Usage, Verb, contract::KindRef,
    lookups::fingerprint_of,
};
use serde_json::Value;

use super::{
    decide::{self, Inputs, decide, finalize},
    version::Version,
};

/// Calls a version of the plugin for an object with its children.
pub(super) fn call(
    version: Version,
    verb: Verb,
    (object, children): (&Value, &[Value]),
    context: &CallContext,
) -> Call {
    let mut recorded = Recorded::default();
    let response = match verb {
        Verb::Reconcile => {
            let followed = decide::followed(object).and_then(|(namespace, name)| {
                let kind = KindRef::new("v1", "ConfigMap");
                let scope = namespace.map_or(Scope::OwnNamespace, |namespace| Scope::Namespace(namespace.to_owned()));
                look_up(Query::by_name(kind, scope, &name), context, &mut recorded)
            });
            let children: Vec<_> = children.iter().collect();
            decide(Inputs { version, object, children: &children, followed: followed.as_deref() })
        }
        Verb::Finalize => finalize(),
    };
    Call { outcome: Outcome::Response(pilothouse_native_plugin::response(response)), usage: Usage::default(), recorded }
}

/// The value of a ConfigMap; none if it does not exist.
fn look_up(query: Query, context: &CallContext, recorded: &mut Recorded) -> Option<String> {
    let limit = Limits::default().lookup_bytes;
    let found = context.lookups.answer(&query, limit);
    recorded.lookups.push(AnsweredLookup { query, limit, answer: fingerprint_of(&found) });
    let found: Value = serde_json::from_str(found.ok()?.objects.first()?).ok()?;
    Some(decide::value_of(&found).to_owned())
}
