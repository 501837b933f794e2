//! Objects whose time is over, in a field that the plugin's manifest names: they are deleted, exactly as they were seen, so that
//! somebody who gives one more time at that moment is heard. What that means for children is up to owner references and
//! finalizers, as with any deletion.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use pilothouse_engine::Manifest;

use super::{
    apply::{Failure, explain},
    delete::exactly,
    managed,
};
use crate::{cache::Object, plugin::ActivePlugin, queue::Next};

/// How long an object lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Until somebody deletes it.
    Unlimited,
    /// So much longer.
    Left(Duration),
    /// No longer.
    Over,
}

/// How long an object lives that is not being deleted already, and that nobody else manages.
pub fn life(object: &Object, manifest: &Manifest, now: Timestamp) -> Life {
    let pointer = manifest.expires.as_deref().filter(|_| !object.deleting && !managed::elsewhere(object, manifest));
    let Some(pointer) = pointer else { return Life::Unlimited };
    // What is no time names none.
    let end = object.text_at(pointer).and_then(|end| end.parse::<Timestamp>().ok());
    match end.map(|end| Duration::try_from(end.duration_since(now))) {
        None => Life::Unlimited,
        Some(Ok(left)) if !left.is_zero() => Life::Left(left),
        Some(_) => Life::Over,
    }
}

/// When an object is looked at again that lives so long. What failed keeps its delay.
pub fn next(next: Next, life: Life) -> Next {
    match (next, life) {
        (Next::Backoff(_) | Next::Again, _) | (_, Life::Unlimited) => next,
        (Next::After(asked), Life::Left(left)) => Next::After(asked.min(left)),
        (Next::Rest | Next::GiveUp, Life::Left(left)) => Next::After(left),
        (_, Life::Over) => Next::Again,
    }
}

/// Deletes an object.
///
/// # Errors
/// [`Failure`] where the API server does not do it.
pub async fn delete(client: &Client, plugin: &ActivePlugin, object: &Object) -> Result<(), Failure> {
    let Some(installed) = plugin.objects.installed() else {
        let message = format!("{} is not installed any more", plugin.objects.kind());
        return Err(Failure { reason: "NotFound", message, passing: true });
    };
    let api = installed.api(client, &object.name.namespace);
    let store = plugin.objects.store();
    match exactly(&api, &installed.resource, object, true).await {
        Ok(Some(terminating)) => {
            store.wrote(terminating);
            Ok(())
        }
        Ok(None) => {
            store.ended(object);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            store.ended(object);
            Ok(())
        }
        Err(error) => Err(explain(&error, "delete", &object.name.to_string())),
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
    fn an_object_lives_until_the_time_that_it_names_and_not_a_second_longer() -> Result<(), jiff::Error> {
        let (field, now) = (Some("/status/end"), "2026-01-01T00:00:10Z".parse()?);
        let soon = Life::Left(Duration::from_secs(5));
        for (expires, end, manager, deleting, expected) in [
            (field, json!("2026-01-01T00:00:15Z"), "pilothouse.dev/web", false, soon),
            (field, json!("2026-01-01T00:00:10Z"), "pilothouse.dev/web", false, Life::Over),
            (field, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", false, Life::Over),
            (field, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", true, Life::Unlimited),
            (field, json!("2025-01-01T00:00:00Z"), "example.com/other", false, Life::Unlimited),
            (field, json!("never"), "pilothouse.dev/web", false, Life::Unlimited),
            (field, json!(null), "pilothouse.dev/web", false, Life::Unlimited),
            (None, json!("2025-01-01T00:00:00Z"), "pilothouse.dev/web", false, Life::Unlimited),
        ] {
            let text = json!({"managedBy": manager, "status": {"end": end}}).to_string().into();
            let object = Object { text, deleting, ..Object::sample("ns", "a") };
            assert_eq!(life(&object, &manifest(expires), now), expected, "{expires:?} {end} {manager} {deleting}");
        }
        Ok(())
    }

    #[test]
    fn it_is_looked_at_when_its_time_is_over_at_the_latest() {
        let (left, second) = (Duration::from_millis(300), Duration::from_secs(1));
        let soon = Life::Left(left);
        for (asked, life, expected) in [
            (Next::Rest, Life::Unlimited, Next::Rest),
            (Next::Rest, soon, Next::After(left)),
            (Next::GiveUp, soon, Next::After(left)),
            (Next::After(second), soon, Next::After(left)),
            (Next::After(left / 3), soon, Next::After(left / 3)),
            (Next::Rest, Life::Over, Next::Again),
            (Next::Backoff(second), Life::Over, Next::Backoff(second)),
            (Next::Backoff(second), soon, Next::Backoff(second)),
        ] {
            assert_eq!(next(asked, life), expected, "{asked:?} {life:?}");
        }
    }
}
