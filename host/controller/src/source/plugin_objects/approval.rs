//! Holds a new version of a `Plugin` until somebody approves it, and has a plan of it computed meanwhile (`planning.rs`). Approves nothing,
//! and writes nothing but the status of the `Plugin`.

use std::sync::Arc;

use kube::ResourceExt;
use pilothouse_engine::contract::KindRef;

use super::{
    PluginObjects,
    candidate::Candidate,
    miss::Miss,
    planning::{self, EndedPlan, PlannedVersion, Subject, computed, is_due},
    rollout,
};
use crate::{
    api::{LeftBehind, PlanState, PlanStatus, PlanSummary, Plugin},
    plugin::Versions,
    source::loader::Prepared,
};

impl PluginObjects {
    /// Begins to find out what a version would do that is held, if this host may and nobody has yet.
    pub(super) fn begin_plan(&mut self, name: &str) {
        if !self.may_write(name) {
            return self.plans.end(name);
        }
        let (Some(plugin), Some(held)) = (self.plugins.get(name), self.held.get(name)) else {
            return self.plans.end(name);
        };
        let now = self.now();
        let Some(known) = self.known.get_mut(name) else { return };
        let subject = Subject::of(plugin, held);
        // Another host may have led before, and have computed it.
        let said = plugin.status.as_ref().and_then(|status| status.plan.clone());
        if let Some(plan) = &mut known.plan
            && plan.state == PlanState::Computing
            && let Some(said) = said.filter(|said| said.state == PlanState::AwaitingApproval && subject.is_of(said))
        {
            *plan = said;
        }
        if !known.plan.as_ref().is_some_and(|plan| subject.is_of(plan) && is_due(plan, now)) {
            return;
        }
        // What another version has done to objects of a canary that has ended is about to be undone, and would be taken for what is there.
        let is_undone = |versions: &Versions| versions.iter().all(|version| version.new_version.has_seen_all());
        if self.is_loaded(name) && !self.at_work_as_loaded(name).is_some_and(|(_, active)| is_undone(&active)) {
            return;
        }
        let candidate = Candidate { digest: held.digest(), version: held.version() };
        let planned = PlannedVersion {
            version: held.reconciler(),
            settings: held.settings().clone(),
            division: rollout::division_by_pins(plugin, &candidate),
        };
        self.plans.begin(name, subject, planned);
    }

    /// Notes what a version would do that is held.
    pub(super) async fn finish_plan(&mut self, EndedPlan { name, subject, result }: EndedPlan) {
        let (now, left_behind) = (self.now(), self.left_behind(&name));
        let result = result.map(|summary| PlanSummary { left_behind, ..summary });
        let Some(known) = self.known.get_mut(&name) else { return };
        // Meanwhile it may have been approved, or another one may be held.
        let Some(plan) = known.plan.as_mut().filter(|plan| subject.is_of(plan) && plan.state != PlanState::Approved)
        else {
            return;
        };
        *plan = computed(plan, result, now);
        tracing::info!(source = name, version = plan.version, state = ?plan.state, "a new version waits for approval");
        self.report(&name).await;
    }

    /// The objects that nobody would reconcile any more once the version works that is held.
    fn left_behind(&self, name: &str) -> Option<LeftBehind> {
        let (held, active) = (self.held.get(name)?, self.active(name)?);
        let manifest = active.manifest();
        let is_left = manifest.decorates.is_none() && !manifest.reconciles.is_same_kind(held.kind());
        let KindRef { api_version, kind } = manifest.reconciles.clone();
        let objects = || active.objects.store().select(None, |_| true).len();
        is_left.then(|| LeftBehind { api_version, kind, objects: objects() })
    }

    /// What would keep a version of a `Plugin` from work that waits for approval: its name, its kind or a metric belongs to another plugin.
    pub(super) fn in_the_way(&self, plugin: &Plugin) -> Option<String> {
        let held = self.held.get(&plugin.name_any())?;
        let conflict = self.room_for(plugin, held.manifest()).err()?;
        Some(format!("{conflict} ({})", conflict.reason()))
    }

    /// What is left of the plan of a version after a look that found none that loads. If it does not wait any more, nobody can approve it.
    pub(super) fn left_to_approve(
        &mut self,
        plugin: &Plugin,
        plan: Option<PlanStatus>,
        miss: &Miss,
    ) -> Option<PlanStatus> {
        let left = plan.and_then(|plan| planning::after_miss(plugin, plan, miss));
        if left.as_ref().is_none_or(|plan| plan.state == PlanState::Approved) {
            self.held.remove(&plugin.name_any());
        }
        left
    }

    /// A version of a `Plugin` waits for approval.
    pub(super) fn hold(&mut self, plugin: &Plugin, prepared: Arc<Prepared>) {
        self.held.insert(plugin.name_any(), prepared);
    }
}
