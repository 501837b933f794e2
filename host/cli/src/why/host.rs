//! What the host remembers of the last reconciles of an object. Asks the host itself, over HTTP, and not the API server.

use anyhow::Context;
use jiff::Timestamp;
use kube::{Client, Config, api::GetParams, core::Request};
use pilothouse_controller::{lines::Lines, pipeline::LastReconcile};
use pilothouse_engine::contract::KindRef;

use crate::{age::age, table::printable};

/// How to reach the host.
pub const HINT: &str = "What its last reconcile saw, asked, decided and wrote is told by the host that leads. Run \
    `kubectl -n pilothouse port-forward deploy/pilothouse 8081` beside this, and add --host http://127.0.0.1:8081.";

/// Asks a host.
///
/// # Errors
/// If it does not answer.
pub async fn last_reconciles(
    host: &str,
    kind: &KindRef,
    namespace: Option<&str>,
    name: &str,
) -> anyhow::Result<Vec<LastReconcile>> {
    let asked = async {
        let client = Client::try_from(Config::new(host.parse()?))?;
        let or_minus = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let (group, namespace) = (or_minus(kind.group()), or_minus(namespace.unwrap_or_default()));
        let path = format!("/last-reconciles/{group}/{}/{namespace}", kind.kind);
        let request = Request::new(path).get(name, &GetParams::default())?;
        anyhow::Ok(serde_json::from_str(&client.request_text(request).await?)?)
    };
    asked.await.with_context(|| {
        format!(
            "failed to ask the host at {host}; it answers its own pod only, so reach it with `kubectl port-forward`"
        )
    })
}

/// The last reconcile by one plugin, for people.
pub fn in_words(last: &LastReconcile, now: Timestamp) -> String {
    let LastReconcile { plugin, version, milliseconds, .. } = last;
    let since = age(last.ended, now);
    let mut text = format!("LAST RECONCILE by {plugin} {version}, {since} ago, in {milliseconds} ms\n");
    let mut line = |title: &str, words: &str| {
        if !words.is_empty() {
            text.push_str(&format!("  {title:<8}{}\n", printable(words)));
        }
    };
    let all = |line: &mut dyn FnMut(&str, &str), title: &str, Lines { lines, more }: &Lines| {
        for (number, words) in lines.iter().enumerate() {
            line(if number == 0 { title } else { "" }, words);
        }
        if *more > 0 {
            line("", &format!("and {more} more"));
        }
    };
    line("saw", &last.saw);
    all(&mut line, "asked", &last.asked);
    line("answer", &last.answer);
    all(&mut line, "wrote", &last.wrote);
    if let Some(wrote_at) = last.wrote_at.filter(|wrote_at| *wrote_at != last.ended) {
        line("", &format!("by a reconcile {} ago", age(wrote_at, now)));
    }
    all(&mut line, "waits", &last.waits);
    all(&mut line, "failed", &last.failed);
    line("status", &last.health);
    line("next", &last.next);
    if let Some(at_rest) = last.at_rest {
        line("since", &format!("looked at again {} ago, and nothing was to be done", age(at_rest, now)));
    }
    text
}
