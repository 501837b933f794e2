//! What the API server says where somebody would give rights that he does not have himself, in words that say what to do. Pure.

use super::failure::{Failure, FailureReason};

/// The group of roles and of their bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// What the API server says before the rules that are lacking, each in a line (`NewForbiddenEscalation` and its callers in
/// k8s.io/kubernetes/pkg/registry/rbac).
const NOT_HELD: &str = "attempting to grant RBAC permissions not currently held:";

/// The failure of a write of this group, if it would have given such rights.
pub(super) fn explained(group: &str, failure: &Failure) -> Option<Failure> {
    let (_, lacking) = failure.message.split_once(NOT_HELD).filter(|_| group == GROUP)?;
    let (subject, _) = failure.message.split_once(':')?;
    let rules: Vec<_> = lacking.lines().map(str::trim).filter(|rule| !rule.is_empty()).collect();
    let message = format!(
        "{subject}: it would give rights that the account which writes it does not have. Nobody can give more than that: grant the account the same \
         rights, or the verb `escalate` on the role (`bind` for a binding). It lacks {}",
        rules.join(", ")
    );
    Some(Failure { reason: FailureReason::Forbidden, message, child: failure.child.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "failed to apply Role 'web': roles.rbac.authorization.k8s.io \"web\" is forbidden: user \"host\" \
                           (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
                           {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}\n{APIGroups:[\"apps\"], Resources:[\"deployments\"], \
                           Verbs:[\"get\"]}";

    #[test]
    fn the_rights_that_are_lacking_are_named_in_one_line() {
        let failure = Failure::new(FailureReason::AdmissionDenied, REFUSED);
        let explained = explained(GROUP, &failure);
        let message = explained.as_ref().map(|failure| failure.message.as_str()).unwrap_or_default();
        assert_eq!(explained.as_ref().map(|failure| failure.reason), Some(FailureReason::Forbidden));
        assert!(message.starts_with("failed to apply Role 'web': it would give rights"), "{message}");
        let rules = "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}, {APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\"]}";
        assert!(message.ends_with(rules) && !message.contains('\n'), "{message}");
    }

    #[test]
    fn other_refusals_are_what_they_are() {
        for (group, message) in [("apps", REFUSED), (GROUP, "failed to apply Role 'web': a policy says no")] {
            assert!(explained(group, &Failure::new(FailureReason::AdmissionDenied, message)).is_none(), "{message}");
        }
    }
}
