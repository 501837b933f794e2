//! What a new version would do, found out before somebody approves it: the plans that are being computed, and what became of them. Writes
//! nothing.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use pilothouse_engine::Reconciler;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::{config_digest, digest_text, miss::Miss, rollout};
use crate::{
    api::{PlanState, PlanStatus, PlanSummary, Plugin},
    clock::api_time,
    errors::chain,
    pipeline::conditions::within_limit,
    plugin::{Division, PluginSettings},
    source::loader::Prepared,
};

/// After how long a plan is tried again that could not be computed.
const RETRY: SignedDuration = SignedDuration::from_secs(60);

/// Why there is no plan.
pub type PlanError = Box<dyn std::error::Error + Send + Sync>;

/// A version that is not at work.
#[derive(Clone)]
pub struct PlannedVersion {
    /// The version.
    pub version: Arc<dyn Reconciler>,
    /// What the cluster says of the plugin.
    pub settings: PluginSettings,
    /// Which objects it would answer; none for all.
    pub division: Option<Arc<Division>>,
}

/// Finds out what a version would do to the objects of a cluster. The host is given one, for how that is found out builds upon the host.
pub trait Planner: Send + Sync {
    /// What the version would do. Has no effect on the cluster.
    fn plan(&self, planned: PlannedVersion) -> BoxFuture<'static, Result<PlanSummary, PlanError>>;
}

/// What a plan is about: a version, as a generation of its `Plugin` wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The digest of the version, hexadecimal digits.
    pub digest: String,
    /// The digest of its configuration.
    pub config_digest: String,
    /// The generation of the `Plugin`.
    pub generation: i64,
}

impl Subject {
    /// What is held of a `Plugin`.
    pub fn of(plugin: &Plugin, held: &Prepared) -> Self {
        let generation = plugin.metadata.generation.unwrap_or_default();
        Self { digest: held.digest().to_owned(), config_digest: held.config_digest().to_owned(), generation }
    }

    /// Whether a plan is about this.
    pub fn is_of(&self, plan: &PlanStatus) -> bool {
        digest_text::digits(&plan.digest) == Some(&self.digest)
            && plan.config_digest.as_ref() == Some(&self.config_digest)
            && plan.observed_generation == self.generation
    }
}

/// A plan that has ended.
pub struct EndedPlan {
    /// The name of the `Plugin`.
    pub name: String,
    /// What it is about.
    pub subject: Subject,
    /// What the version would do.
    pub result: Result<PlanSummary, PlanError>,
}

/// The plans that are being computed, one for a `Plugin` at most.
pub struct Plans {
    planner: Arc<dyn Planner>,
    tasks: JoinSet<EndedPlan>,
    under_way: BTreeMap<String, (Subject, AbortHandle)>,
}

impl Plans {
    /// None yet.
    pub fn new(planner: Arc<dyn Planner>) -> Self {
        Self { planner, tasks: JoinSet::new(), under_way: BTreeMap::new() }
    }

    /// Begins one in the place of another one of the `Plugin`, unless it is about the same.
    pub fn begin(&mut self, name: &str, subject: Subject, planned: PlannedVersion) {
        if self.under_way.get(name).is_some_and(|(under_way, _)| *under_way == subject) {
            return;
        }
        self.end(name);
        let (plan, ended) = (self.planner.plan(planned), (name.to_owned(), subject.clone()));
        let task = self.tasks.spawn(async move {
            let result = plan.await;
            EndedPlan { name: ended.0, subject: ended.1, result }
        });
        self.under_way.insert(name.to_owned(), (subject, task));
    }

    /// Ends the one of a `Plugin`.
    pub fn end(&mut self, name: &str) {
        if let Some((_, task)) = self.under_way.remove(name) {
            task.abort();
        }
    }

    /// The next one that ends. Waits for ever while none goes on.
    pub async fn next(&mut self) -> EndedPlan {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(ended)) => {
                    self.under_way.retain(|name, (subject, _)| *name != ended.name || *subject != ended.subject);
                    return ended;
                }
                Some(Err(error)) if error.is_cancelled() => {}
                // The next look at the Plugin, a few seconds later, begins it again.
                Some(Err(error)) => {
                    tracing::error!("the plan of a Plugin ended without a result: {error}");
                    self.forget(error.id());
                }
                None => std::future::pending().await,
            }
        }
    }

    fn forget(&mut self, task: Id) {
        self.under_way.retain(|_, (_, it)| it.id() != task);
    }
}

/// What is known of the plan of a version that is held, or was, after a look at its `Plugin`. `before`: what was known before.
pub fn after_look(plugin: &Plugin, held: Option<&Prepared>, before: Option<PlanStatus>) -> Option<PlanStatus> {
    match held {
        Some(held) => {
            let subject = Subject::of(plugin, held);
            let is_it = |plan: &PlanStatus| subject.is_of(plan) && plan.state != PlanState::Approved;
            Some(before.filter(is_it).unwrap_or_else(|| computing(held.version(), &subject)))
        }
        // It stays there to be read, for as long as it is about what was approved.
        None => {
            let is_it = |plan: &PlanStatus| rollout::is_gated(&plugin.spec) && is_of_approved(plugin, plan);
            before.filter(is_it).map(|plan| PlanStatus { state: PlanState::Approved, message: None, ..plan })
        }
    }
}

/// Whether a plan is about the version that is approved, with the present configuration.
fn is_of_approved(plugin: &Plugin, plan: &PlanStatus) -> bool {
    let approved = plugin.spec.rollout.as_ref().and_then(|rollout| rollout.approved.as_ref());
    let is_so_configured = |digest: &String| *digest == config_digest::of_spec(&plugin.spec);
    approved == Some(&plan.digest) && plan.config_digest.as_ref().is_none_or(is_so_configured)
}

/// What is left of a plan after a look that found no version that loads.
pub fn after_miss(plugin: &Plugin, before: PlanStatus, miss: &Miss) -> Option<PlanStatus> {
    let may_be_it = miss.may_ask_for(&plugin.spec, digest_text::digits(&before.digest)?);
    let is_left = match before.state {
        PlanState::Approved => is_of_approved(plugin, &before),
        // What does not come by itself is no longer what waits.
        _ => miss.is_passing,
    };
    (may_be_it && is_left).then_some(before)
}

fn computing(version: &str, subject: &Subject) -> PlanStatus {
    PlanStatus {
        state: PlanState::Computing,
        version: version.to_owned(),
        digest: digest_text::text(&subject.digest),
        config_digest: Some(subject.config_digest.clone()),
        observed_generation: subject.generation,
        computed_at: None,
        summary: None,
        message: None,
    }
}

/// A plan after it was computed.
pub fn computed(plan: &PlanStatus, result: Result<PlanSummary, PlanError>, now: Timestamp) -> PlanStatus {
    let (state, summary, message) = match result {
        Ok(summary) => (PlanState::AwaitingApproval, Some(summary), None),
        Err(error) => (PlanState::Failed, None, Some(within_limit(&chain(&*error)))),
    };
    PlanStatus { state, summary, message, computed_at: Some(api_time(now)), ..plan.clone() }
}

/// Whether a plan is to be computed by now.
pub fn is_due(plan: &PlanStatus, now: Timestamp) -> bool {
    let computed_at = || plan.computed_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
    match plan.state {
        PlanState::Computing => true,
        PlanState::Failed => computed_at().is_none_or(|at| now.duration_since(at) >= RETRY),
        PlanState::AwaitingApproval | PlanState::Approved => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_left_while_its_version_may_come() -> Result<(), Box<dyn std::error::Error>> {
        let subject = Subject { digest: "ab".to_owned(), config_digest: config_digest::of_text(None), generation: 1 };
        let waits = computed(&computing("2", &subject), Ok(PlanSummary::default()), Timestamp::UNIX_EPOCH);
        let approved = PlanStatus { state: PlanState::Approved, ..waits.clone() };
        let plugin = |digest: Option<&str>, approved_config: Option<&str>| {
            serde_json::from_value::<Plugin>(serde_json::json!({
                "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "web"},
                "spec": {
                    "source": {"configMap": {"name": "web"}}, "digest": digest.map(digest_text::text),
                    "config": approved_config,
                    "rollout": {"plan": "Require", "approved": digest_text::text("ab")},
                },
            }))
        };
        let miss = |found: Option<&str>, is_passing| Miss {
            found: found.map(str::to_owned),
            is_refused: found.is_some(),
            is_not_granted: false,
            is_passing,
        };
        for (what, plan, plugin, miss, is_left) in [
            ("its source is away", &waits, plugin(None, None)?, miss(None, true), true),
            ("it is gone", &waits, plugin(None, None)?, miss(None, false), false),
            ("the machine is busy", &waits, plugin(None, None)?, miss(Some("ab"), true), true),
            ("it is refused", &waits, plugin(None, None)?, miss(Some("ab"), false), false),
            ("the source has another one", &waits, plugin(None, None)?, miss(Some("cd"), true), false),
            ("another one is named", &waits, plugin(Some("cd"), None)?, miss(None, true), false),
            ("it was approved, and its source is gone", &approved, plugin(None, None)?, miss(None, false), true),
            ("it was approved otherwise", &approved, plugin(None, Some("x"))?, miss(None, false), false),
        ] {
            assert_eq!(after_miss(&plugin, plan.clone(), &miss).is_some(), is_left, "{what}");
        }
        Ok(())
    }

    #[test]
    fn a_plan_that_failed_is_tried_again_and_others_are_not() {
        let subject = Subject { digest: "ab".to_owned(), config_digest: String::new(), generation: 1 };
        let after = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let computing = computing("2", &subject);
        let failed = computed(&computing, Err("no CRD".into()), after(0));
        let awaiting = computed(&computing, Ok(PlanSummary::default()), after(0));
        assert_eq!((failed.state, failed.message.as_deref()), (PlanState::Failed, Some("no CRD")));
        for (plan, seconds, expected) in
            [(&computing, 0, true), (&failed, 59, false), (&failed, 60, true), (&awaiting, 3600, false)]
        {
            assert_eq!(is_due(plan, after(seconds)), expected, "{:?} after {seconds} s", plan.state);
        }
    }
}
