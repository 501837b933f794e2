//! The imports for tests and for plugins that are linked natively: a cluster of plain values, one per thread. It denies a
//! lookup only where a test says so.

use super::selector;
use crate::raw::{Json, KindRef, Level, LookupError, Scope};
use serde_json::Value;
use std::cell::RefCell;

/// What lookups and the clock return in the current thread, and what was logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fake {
    /// The namespace of the object being reconciled.
    pub(crate) namespace: Option<String>,
    pub(crate) now: Option<String>,
    pub(crate) objects: Vec<Value>,
    /// Kinds that the plugin may not look up.
    pub(crate) denied: Vec<KindRef>,
    /// Kinds that the cluster does not have.
    pub(crate) not_installed: Vec<KindRef>,
    /// Log lines, kept only where a test asks for them: a native host does not read them here.
    pub(crate) lines: Option<Vec<(Level, String)>>,
    /// The children to delete at once, by their places in the request; kept where lines are.
    pub(crate) forced_deletions: Vec<u32>,
}

thread_local! {
    static FAKE: RefCell<Fake> = RefCell::default();
}

/// Puts `fake` in the place of the current thread's fake, and returns the old one.
pub(crate) fn replace(fake: Fake) -> Fake {
    FAKE.with(|cell| cell.replace(fake))
}

/// Does nothing: the test harness shows a native panic.
pub(crate) fn report_panics() {}

/// Drops a value: a native program goes on after the call.
pub(crate) fn dispose<T>(value: T) {
    drop(value);
}

pub(crate) fn now() -> String {
    let now = FAKE.with_borrow(|fake| fake.now.clone());
    now.unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

pub(crate) fn write(level: Level, message: &str) {
    FAKE.with_borrow_mut(|fake| {
        if let Some(lines) = &mut fake.lines {
            lines.push((level, message.to_owned()));
        }
    });
}

pub(crate) fn force_deletion(child: u32) {
    FAKE.with_borrow_mut(|fake| {
        if fake.lines.is_some() {
            fake.forced_deletions.push(child);
        }
    });
}

/// Fields are not cut out: what a type does not read does no harm to it.
pub(crate) fn get(kind: &KindRef, scope: &Scope, name: &str, _fields: &[String]) -> Result<Option<Json>, LookupError> {
    let found = find(kind, scope)?;
    let named = found.iter().find(|object| text(object, "/metadata/name") == Some(name));
    Ok(named.map(Value::to_string))
}

pub(crate) fn select(
    kind: &KindRef,
    scope: &Scope,
    label_selector: &str,
    _fields: &[String],
) -> Result<Vec<Json>, LookupError> {
    let mut found = find(kind, scope)?;
    found.retain(|object| selector::matches(label_selector, &object["metadata"]["labels"]));
    found.sort_by_key(|object| ["/metadata/namespace", "/metadata/name"].map(|at| text(object, at).map(str::to_owned)));
    Ok(found.iter().map(Value::to_string).collect())
}

fn find(kind: &KindRef, scope: &Scope) -> Result<Vec<Value>, LookupError> {
    FAKE.with_borrow(|fake| {
        if fake.denied.contains(kind) {
            return Err(LookupError::Denied(format!("the manifest does not declare {}", kind.kind)));
        }
        if fake.not_installed.contains(kind) {
            return Err(LookupError::NotInstalled(format!("{} is not installed in this cluster", kind.kind)));
        }
        let in_scope = |found: &str| match scope {
            Scope::OwnNamespace => fake.namespace.as_deref() == Some(found),
            Scope::Namespace(namespace) => namespace == found,
            Scope::AllNamespaces => true,
        };
        let objects = fake.objects.iter().filter(|object| {
            text(object, "/apiVersion") == Some(&kind.api_version)
                && text(object, "/kind") == Some(&kind.kind)
                && text(object, "/metadata/namespace").is_none_or(in_scope)
        });
        Ok(objects.cloned().collect())
    })
}

fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}
