//! Deletes objects that expire at a time in a field that the plugin's manifest declares, or so many seconds after it as another field
//! says. The delete has the resource version as
//! precondition, so it fails if somebody extends the time at the same moment. Finalizers and garbage collection of children work
//! as with any deletion.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use pilothouse_engine::Manifest;

use super::managed;
use crate::{
    errors::is_object_missing,
    object::Object,
    pipeline::apply::{
        Failure, FailureReason,
        delete::{Grace, Precondition, delete_exact},
    },
    plugin::ActivePlugin,
    queue::Action,
};

/// The remaining lifetime of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until somebody deletes it.
    Unlimited,
    /// It expires after this time.
    Left(Duration),
    /// It has expired.
    Over,
}

/// The remaining lifetime. Objects that are being deleted or that somebody else manages do not expire.
pub fn lifetime(object: &Object, manifest: &Manifest, now: Timestamp) -> Lifetime {
    let pointer =
        manifest.expires.as_deref().filter(|_| !object.deleting && !managed::names_another_manager(object, manifest));
    let Some(pointer) = pointer else { return Lifetime::Unlimited };
    let Some(end) = end(object, pointer, manifest.expires_after.as_deref()) else { return Lifetime::Unlimited };
    // A duration in the past is negative, which `Duration` cannot hold.
    match Duration::try_from(end.duration_since(now)) {
        Ok(left) if !left.is_zero() => Lifetime::Left(left),
        _ => Lifetime::Over,
    }
}

/// When an object's time is over. A value that is no time, or no number of seconds, does not expire the object.
fn end(object: &Object, time: &str, seconds: Option<&str>) -> Option<Timestamp> {
    let time: Timestamp = object.text_at(time)?.parse().ok()?;
    match seconds {
        None => Some(time),
        Some(seconds) => time.checked_add(Duration::from_secs(object.number_at(seconds)?)).ok(),
    }
}

/// The action, but at the object's expiry at the latest. A backoff stays as it is, because its delay belongs to a failure.
pub fn action_until(action: Action, lifetime: Lifetime) -> Action {
    match (action, lifetime) {
        (Action::Backoff(_) | Action::BackoffUntil { .. } | Action::Requeue, _) | (_, Lifetime::Unlimited) => action,
        (Action::RequeueAfter(asked), Lifetime::Left(left)) => Action::RequeueAfter(asked.min(left)),
        (Action::AwaitChange | Action::Terminal, Lifetime::Left(left)) => Action::RequeueAfter(left),
        (_, Lifetime::Over) => Action::Requeue,
    }
}

/// Deletes an object in exactly the state that was observed.
///
/// # Errors
/// [`Failure`] if the API server refuses or the object has changed.
pub async fn delete(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let Some(installed) = plugin.objects.installed() else {
        let message = format!("{} is not installed any more", plugin.objects.kind());
        return Err(Failure::new(FailureReason::NotFound, message));
    };
    let api = installed.api(client, &object.name.namespace);
    let store = plugin.objects.store();
    match delete_exact(&api, &installed.resource, object, Precondition::SameState, Grace::Own).await {
        Ok(Some(terminating)) => {
            store.record_write(terminating);
            Ok(())
        }
        Ok(None) => {
            store.mark_terminated(object);
            Ok(())
        }
        Err(error) if is_object_missing(&error) => {
            store.mark_terminated(object);
            Ok(())
        }
        Err(error) => Err(Failure::of(&error, "delete", &object.name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::KindRef;
    use serde_json::json;

    use super::*;

    fn manifest(expires: Option<&str>) -> Manifest {
        let (expires, managed_by) = (expires.map(str::to_owned), Some("/managedBy".to_owned()));
        Manifest { expires, managed_by, ..Manifest::new("web", "1", KindRef::new("example.com/v1", "Web")) }
    }

    #[test]
    fn an_object_expires_at_the_time_in_the_declared_field() -> Result<(), jiff::Error> {
        let (field, now) = (Some("/status/end"), "2026-01-01T00:00:10Z".parse()?);
        let soon = Lifetime::Left(Duration::from_secs(5));
        for (expires, end, manager, deleting, expected) in [
            (field, json!("2026-01-01T00:00:15Z"), "pilothouse.dev/web", false, soon),
            (field, json!("2026-01-01T00:00:10Z"), "pilothouse.dev/web", false, Lifetime::Over),
            (field, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", false, Lifetime::Over),
            (field, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", true, Lifetime::Unlimited),
            (field, json!("2025-01-01T00:00:00Z"), "example.com/other", false, Lifetime::Unlimited),
            (field, json!("never"), "pilothouse.dev/web", false, Lifetime::Unlimited),
            (field, json!(null), "pilothouse.dev/web", false, Lifetime::Unlimited),
            (None, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", false, Lifetime::Unlimited),
        ] {
            let text = json!({"managedBy": manager, "status": {"end": end}}).to_string().into();
            let object = Object { text, deleting, ..Object::sample("ns", "a") };
            assert_eq!(lifetime(&object, &manifest(expires), now), expected, "{expires:?} {end} {manager} {deleting}");
        }
        Ok(())
    }

    #[test]
    fn an_object_lives_on_for_so_many_seconds_after_the_time() -> Result<(), jiff::Error> {
        let now = "2026-01-01T00:00:10Z".parse()?;
        let manifest = Manifest { expires_after: Some("/spec/seconds".to_owned()), ..manifest(Some("/status/end")) };
        let ended = json!("2026-01-01T00:00:00Z");
        for (end, seconds, expected) in [
            (&ended, json!(15), Lifetime::Left(Duration::from_secs(5))),
            (&ended, json!(10), Lifetime::Over),
            (&ended, json!(0), Lifetime::Over),
            (&ended, json!(-1), Lifetime::Unlimited),
            (&ended, json!("1"), Lifetime::Unlimited),
            (&ended, json!(null), Lifetime::Unlimited),
            (&ended, json!(u64::MAX), Lifetime::Unlimited),
            (&json!(null), json!(0), Lifetime::Unlimited),
        ] {
            let text = json!({"status": {"end": end}, "spec": {"seconds": seconds}}).to_string().into();
            let object = Object { text, ..Object::sample("ns", "a") };
            assert_eq!(lifetime(&object, &manifest, now), expected, "{end} {seconds}");
        }
        Ok(())
    }

    #[test]
    fn an_object_is_reconciled_at_its_expiry_at_the_latest() {
        let (left, second) = (Duration::from_millis(300), Duration::from_secs(1));
        let soon = Lifetime::Left(left);
        for (asked, life, expected) in [
            (Action::AwaitChange, Lifetime::Unlimited, Action::AwaitChange),
            (Action::AwaitChange, soon, Action::RequeueAfter(left)),
            (Action::Terminal, soon, Action::RequeueAfter(left)),
            (Action::RequeueAfter(second), soon, Action::RequeueAfter(left)),
            (Action::RequeueAfter(left / 3), soon, Action::RequeueAfter(left / 3)),
            (Action::AwaitChange, Lifetime::Over, Action::Requeue),
            (Action::Backoff(second), Lifetime::Over, Action::Backoff(second)),
            (Action::Backoff(second), soon, Action::Backoff(second)),
        ] {
            assert_eq!(action_until(asked, life), expected, "{asked:?} {life:?}");
        }
    }
}
