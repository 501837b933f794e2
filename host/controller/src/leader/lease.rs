//! The rules of a Lease, as in client-go: who may take it and what is written then. Pure: reads no clock and makes no request.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use tokio::time::Instant;

/// A Lease as it was observed last.
#[derive(Clone, Debug)]
pub struct ObservedLease {
    /// The Lease.
    pub lease: Lease,
    /// When this process observed its latest change. The times inside the Lease come from other clocks, so they decide nothing.
    since: Instant,
}

impl ObservedLease {
    /// Observes a Lease. One with the same spec as before has not been renewed.
    pub fn observe(before: Option<Self>, lease: Lease, now: Instant) -> Self {
        let since = before.filter(|before| before.lease.spec == lease.spec).map_or(now, |before| before.since);
        Self { lease, since }
    }

    /// The identity of the holder; empty if nobody holds it.
    pub fn holder(&self) -> &str {
        self.spec().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
    }

    /// Whether another holder has renewed it within its duration.
    pub fn belongs_to_another(&self, identity: &str, now: Instant) -> bool {
        !["", identity].contains(&self.holder()) && now < self.runs_out()
    }

    /// The Lease with `identity` as its holder, renewed now.
    pub fn held_by(&self, identity: &str, duration: Duration, now: Timestamp) -> Lease {
        let before = self.spec().cloned().unwrap_or_default();
        let (acquired, transitions) = if self.holder() == identity {
            (before.acquire_time.clone(), before.lease_transitions)
        } else {
            (Some(MicroTime(now)), Some(before.lease_transitions.unwrap_or_default() + 1))
        };
        let spec = LeaseSpec { acquire_time: acquired, lease_transitions: transitions, ..before };
        self.with(renewed(spec, identity, duration, now))
    }

    /// The Lease without a holder, so that another host takes it at once.
    pub fn released(&self, now: Timestamp) -> Lease {
        let spec = LeaseSpec { acquire_time: Some(MicroTime(now)), ..self.spec().cloned().unwrap_or_default() };
        // One second, as in client-go. The API server refuses a duration of zero.
        self.with(renewed(spec, "", Duration::from_secs(1), now))
    }

    /// The same Lease with `identity` as its holder, for as long as the holder's own Lease is renewed: this one never is.
    pub fn taken_by(&self, identity: &str, now: Timestamp) -> Lease {
        let transitions = self.spec().and_then(|spec| spec.lease_transitions).unwrap_or_default();
        self.with(taken(identity, now, transitions + 1))
    }

    /// The same Lease without a holder.
    pub fn given_up(&self, now: Timestamp) -> Lease {
        let transitions = self.spec().and_then(|spec| spec.lease_transitions).unwrap_or_default();
        self.with(taken("", now, transitions))
    }

    /// When it has not been renewed for its duration, if it is not renewed from now on.
    pub fn runs_out(&self) -> Instant {
        self.since + self.duration()
    }

    fn duration(&self) -> Duration {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        Duration::from_secs(seconds.try_into().unwrap_or_default())
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.lease.spec.as_ref()
    }

    fn with(&self, spec: LeaseSpec) -> Lease {
        Lease { spec: Some(spec), ..self.lease.clone() }
    }
}

/// A new Lease, held by `identity`.
pub fn new_lease(name: &str, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let spec = LeaseSpec { acquire_time: Some(MicroTime(now)), lease_transitions: Some(0), ..LeaseSpec::default() };
    let mut lease = Lease { spec: Some(renewed(spec, identity, duration, now)), ..Lease::default() };
    lease.metadata.name = Some(name.to_owned());
    lease
}

/// A new Lease, taken by `identity` for as long as the holder's own Lease is renewed.
pub fn new_taken(name: &str, identity: &str, now: Timestamp) -> Lease {
    let mut lease = Lease { spec: Some(taken(identity, now, 0)), ..Lease::default() };
    lease.metadata.name = Some(name.to_owned());
    lease
}

fn taken(identity: &str, now: Timestamp, transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        acquire_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

fn renewed(spec: LeaseSpec, identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(duration.as_secs().try_into().unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(now)),
        ..spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);
    const LATER: Duration = Duration::from_secs(16);

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(second)
    }

    fn spec(lease: &Lease) -> LeaseSpec {
        lease.spec.clone().unwrap_or_default()
    }

    #[test]
    fn a_lease_is_anothers_until_it_was_not_renewed_for_its_duration_by_the_own_clock() {
        let (seen, lease) = (Instant::now(), new_lease("l", "other", DURATION, at(0)));
        let observed = ObservedLease::observe(None, lease.clone(), seen);
        assert!(observed.belongs_to_another("me", seen + DURATION - Duration::from_millis(1)));
        assert!(!observed.belongs_to_another("me", seen + DURATION));
        assert!(!observed.belongs_to_another("other", seen), "one's own is no obstacle");

        let again = ObservedLease::observe(Some(observed.clone()), lease, seen + LATER);
        assert!(!again.belongs_to_another("me", seen + LATER), "seeing the same again renews nothing");
        let renewed =
            ObservedLease::observe(Some(observed.clone()), observed.held_by("other", DURATION, at(1)), seen + LATER);
        assert!(renewed.belongs_to_another("me", seen + LATER), "whatever its own clock says");
    }

    #[test]
    fn a_lease_without_a_holder_belongs_to_nobody() {
        let seen = Instant::now();
        let held = ObservedLease::observe(None, new_lease("l", "other", DURATION, at(0)), seen);
        for lease in [held.released(at(1)), Lease::default()] {
            assert!(!ObservedLease::observe(None, lease, seen).belongs_to_another("me", seen));
        }
    }

    #[test]
    fn renewing_keeps_what_taking_over_sets() {
        let seen = Instant::now();
        let mine = new_lease("l", "me", DURATION, at(0));
        assert_eq!((spec(&mine).lease_transitions, spec(&mine).acquire_time), (Some(0), Some(MicroTime(at(0)))));
        let renewed = spec(&ObservedLease::observe(None, mine.clone(), seen).held_by("me", DURATION, at(5)));
        assert_eq!((renewed.lease_transitions, renewed.acquire_time), (Some(0), Some(MicroTime(at(0)))));
        assert_eq!(renewed.renew_time, Some(MicroTime(at(5))));
        let taken = spec(&ObservedLease::observe(None, mine, seen).held_by("other", DURATION, at(9)));
        assert_eq!((taken.lease_transitions, taken.acquire_time), (Some(1), Some(MicroTime(at(9)))));
        assert_eq!((taken.holder_identity.as_deref(), taken.lease_duration_seconds), (Some("other"), Some(15)));
    }

    #[test]
    fn a_lease_that_is_never_renewed_says_who_has_it_and_how_often_it_went_over() {
        let observed = |lease: Lease| ObservedLease::observe(None, lease, Instant::now());
        let first = observed(new_taken("l", "me", at(0)));
        assert_eq!((first.holder(), spec(&first.lease).lease_transitions), ("me", Some(0)));
        let given_up = observed(first.given_up(at(1)));
        assert_eq!((given_up.holder(), spec(&given_up.lease).lease_transitions), ("", Some(0)));
        let taken = observed(given_up.taken_by("other", at(2)));
        assert_eq!((taken.holder(), spec(&taken.lease).lease_transitions), ("other", Some(1)));
        assert_eq!((spec(&taken.lease).renew_time, spec(&taken.lease).lease_duration_seconds), (None, None));
    }

    #[test]
    fn a_released_lease_is_good_for_a_second_and_remembers_its_transitions() {
        let held = ObservedLease::observe(None, new_lease("l", "other", DURATION, at(0)), Instant::now());
        let taken = ObservedLease::observe(None, held.held_by("me", DURATION, at(1)), Instant::now());
        let released = spec(&taken.released(at(2)));
        assert_eq!((released.holder_identity.as_deref(), released.lease_duration_seconds), (Some(""), Some(1)));
        assert_eq!(released.lease_transitions, Some(1));
    }
}
