//! What is told of a version that waits for approval: in a condition, and in Events. Pure.

use crate::{
    api::{AWAITING_APPROVAL, LeftBehind, PlanState, PlanStatus, PlanSummary, PlannedObjects},
    events::Event,
};

/// The reason of a plan that could not be computed.
const PLAN_FAILED: &str = "PlanFailed";

/// The reason of an approval.
const APPROVED: &str = "Approved";

/// What a version waits for that has to be approved, and the command for it; none if it has been. `in_the_way`: what would keep it from work all
/// the same.
pub fn waiting(name: &str, plan: Option<&PlanStatus>, in_the_way: Option<&str>) -> Option<String> {
    let waiting = awaited(name, plan?)?;
    Some(match in_the_way {
        Some(in_the_way) => format!("{waiting}. Once approved, it would not be loaded all the same: {in_the_way}"),
        None => waiting,
    })
}

fn awaited(name: &str, plan: &PlanStatus) -> Option<String> {
    let PlanStatus { state, version, digest, summary, message, .. } = plan;
    let command = format!("pilothouse approve {name} --digest {digest}");
    match state {
        PlanState::Computing => {
            Some(format!("what version {version} would do is being found out; then it waits for approval"))
        }
        PlanState::AwaitingApproval => {
            let PlanSummary { objects, left_behind, .. } = summary.as_ref()?;
            let PlannedObjects { changed, in_error, in_error_today, .. } = objects;
            let errors = in_error.saturating_sub(*in_error_today);
            let left_behind = left_behind.as_ref().map(|LeftBehind { kind, objects, .. }| {
                format!(", and nobody would reconcile the {objects} objects of kind {kind} any more")
            });
            Some(format!(
                "version {version} would change {changed} objects and bring {errors} into error{}, as status.plan shows; it waits for \
                 approval: {command}",
                left_behind.unwrap_or_default()
            ))
        }
        PlanState::Failed => {
            let why = message.as_deref().unwrap_or_default();
            Some(format!(
                "what version {version} would do cannot be found out: {why}. It waits for approval all the same: {command}"
            ))
        }
        PlanState::Approved => None,
    }
}

/// The Event that tells that a plan is in another state.
pub fn plan_event(name: &str, before: Option<&PlanStatus>, after: Option<&PlanStatus>) -> Option<Event> {
    let after = after?;
    let state = |plan: &PlanStatus| (plan.digest.clone(), plan.state);
    if before.map(state) == Some(state(after)) {
        return None;
    }
    let PlanStatus { version, digest, .. } = after;
    match (after.state, awaited(name, after)) {
        (PlanState::Approved, _) => Some(Event::normal(APPROVED, &format!("version {version} ({digest}) is approved"))),
        (PlanState::AwaitingApproval, Some(message)) => Some(Event::normal(AWAITING_APPROVAL, &message)),
        (PlanState::Failed, Some(message)) => Some(Event::warning(PLAN_FAILED, &message)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(state: PlanState) -> PlanStatus {
        let objects = PlannedObjects { changed: 3, in_error: 2, in_error_today: 1, ..PlannedObjects::default() };
        PlanStatus {
            state,
            version: "2.0.0".to_owned(),
            digest: "sha256:ab".to_owned(),
            config_digest: None,
            observed_generation: 1,
            computed_at: None,
            summary: Some(PlanSummary { objects, ..PlanSummary::default() }),
            message: Some("no CRD".to_owned()),
        }
    }

    #[test]
    fn who_has_to_approve_is_told_what_and_how() {
        let command = "pilothouse approve web --digest sha256:ab";
        for (state, words, has_command) in [
            (PlanState::Computing, "is being found out", false),
            (PlanState::AwaitingApproval, "would change 3 objects and bring 1 into error", true),
            (PlanState::Failed, "cannot be found out: no CRD", true),
        ] {
            let message = waiting("web", Some(&plan(state)), None).unwrap_or_default();
            assert!(message.contains(words) && message.ends_with(command) == has_command, "{state:?}: {message}");
        }
        assert_eq!(
            (waiting("web", Some(&plan(PlanState::Approved)), Some("it")), waiting("web", None, None)),
            (None, None)
        );
        let mut other_kind = plan(PlanState::AwaitingApproval);
        let left_behind = Some(LeftBehind { api_version: "a/v1".to_owned(), kind: "Web".to_owned(), objects: 7 });
        other_kind.summary = other_kind.summary.map(|summary| PlanSummary { left_behind, ..summary });
        let message = waiting("web", Some(&other_kind), None).unwrap_or_default();
        assert!(message.contains("nobody would reconcile the 7 objects of kind Web any more"), "{message}");
        let taken =
            waiting("web", Some(&plan(PlanState::AwaitingApproval)), Some("the kind is taken")).unwrap_or_default();
        assert!(
            taken.contains(command) && taken.ends_with("would not be loaded all the same: the kind is taken"),
            "{taken}"
        );
    }

    #[test]
    fn each_state_is_told_once() {
        let told = |before: Option<PlanState>, after| {
            plan_event("web", before.map(plan).as_ref(), Some(&plan(after))).map(|event| event.reason.to_string())
        };
        for (before, after, expected) in [
            (None, PlanState::Computing, None),
            (Some(PlanState::Computing), PlanState::AwaitingApproval, Some("AwaitingApproval")),
            (Some(PlanState::AwaitingApproval), PlanState::AwaitingApproval, None),
            (Some(PlanState::Computing), PlanState::Failed, Some("PlanFailed")),
            (Some(PlanState::AwaitingApproval), PlanState::Approved, Some("Approved")),
        ] {
            assert_eq!(told(before, after).as_deref(), expected, "{before:?} {after:?}");
        }
    }
}
