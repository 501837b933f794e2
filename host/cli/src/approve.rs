//! `pilothouse approve`: shows what a new version of a plugin would do, and approves it. Computes no plan: the host does.

use anyhow::{Context, bail};
use clap::Args;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use pilothouse_controller::{
    api::{
        Condition, LeftBehind, PlanState, PlanStatus, PlanSummary, PlannedChildren, PlannedObjects, Plugin, find_plugin,
    },
    pipeline::conditions::READY,
};
use serde_json::json;

use crate::{
    cluster::{Cluster, block_on},
    confirm::confirm,
    output::{self, PrintError},
    table,
};

/// The field manager of the approval.
const MANAGER: &str = "pilothouse-approve";
/// How often a Plugin is looked at again that has changed meanwhile.
const ATTEMPTS: usize = 10;
/// The API server's answer where something has changed meanwhile.
const CONFLICT: u16 = 409;

/// Approve the new version of a plugin that waits for it, after showing what it would do.
///
/// A Plugin with `rollout.plan: Require` holds every new version until its digest is approved. Only that digest is, with the configuration
/// that the plan is about: another version, or another configuration before the version is at work, waits for an approval of its own.
#[derive(Args)]
pub struct Approve {
    /// The name of the Plugin.
    name: String,
    /// The digest of the version, sha256:…; another one is not approved. Default: that of the version that waits.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    cluster: Cluster,
}

impl Approve {
    /// Runs the command.
    ///
    /// # Errors
    /// If nothing waits for approval, nobody confirms, or the API server refuses it.
    pub fn execute(&self) -> anyhow::Result<()> {
        block_on(self.approve())
    }

    async fn approve(&self) -> anyhow::Result<()> {
        let (client, name) = (self.cluster.client().await?, &self.name);
        let Some(plugin) = find_plugin(client.clone(), name).await.context("failed to look for the Plugin")? else {
            bail!("there is no Plugin '{name}'; `pilothouse list` shows those that there are");
        };
        let plan = self.waiting(&plugin)?;
        print(&plugin, plan)?;
        let version = table::printable(&plan.version);
        confirm(&format!("Approve version {version} ({})?", table::printable(&plan.digest)), self.yes)?;
        self.write(client, &plugin, plan).await?;
        eprintln!("{name}: version {version} is approved");
        Ok(())
    }

    /// Approves the version that was shown, with the configuration of its plan. While somebody looked at it, the source may have got another
    /// version, and that may have been approved by somebody else: an approval would take that back. Or somebody may have edited the
    /// `Plugin`: what nobody was shown is not approved.
    async fn write(&self, client: Client, shown: &Plugin, plan: &PlanStatus) -> anyhow::Result<()> {
        let (api, name) = (Api::<Plugin>::all(client.clone()), &self.name);
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        for _ in 0..ATTEMPTS {
            let now = find_plugin(client.clone(), name).await.context("failed to look for the Plugin")?;
            let now = now.filter(|now| now.uid() == shown.uid());
            let Some(now) = now else {
                bail!("the Plugin '{name}' is gone, and nothing was approved");
            };
            if is_approved(&now, plan) {
                return Ok(());
            }
            if now.metadata.generation != shown.metadata.generation {
                bail!(
                    "somebody has changed the Plugin '{name}' since you were shown the plan, and nothing was approved; see the plan of \
                     what it asks for now: pilothouse approve {name}"
                );
            }
            let waits = now.status.as_ref().and_then(|status| status.plan.as_ref());
            if !waits.is_some_and(|waits| is_same_plan(waits, plan)) {
                bail!(
                    "the version that you were shown no longer waits for approval, and was not approved; see what waits now: pilothouse \
                     approve {name}"
                );
            }
            let approval = json!({
                "metadata": {"uid": now.uid(), "resourceVersion": now.resource_version()},
                "spec": {"rollout": {"approved": plan.digest, "approvedConfig": plan.config_digest}},
            });
            match api.patch_metadata(name, &parameters, &Patch::Merge(approval)).await {
                Ok(_) => return Ok(()),
                // Something else of the Plugin has changed meanwhile, most often the counts in its status.
                Err(kube::Error::Api(status)) if status.code == CONFLICT => {}
                Err(error) => return Err(error).context("failed to approve it"),
            }
        }
        bail!("failed to approve it: the Plugin changes all the time; run it again")
    }

    /// The plan of the version that waits.
    fn waiting<'p>(&self, plugin: &'p Plugin) -> anyhow::Result<&'p PlanStatus> {
        let (name, plan) = (&self.name, plugin.status.as_ref().and_then(|status| status.plan.as_ref()));
        let Some(plan) = plan.filter(|plan| plan.state != PlanState::Approved) else {
            bail!("no version of '{name}' waits for approval{}", table::printable(&in_the_way(plugin)));
        };
        if let Some(digest) = self.digest.as_ref().filter(|digest| **digest != plan.digest) {
            bail!(
                "the version of '{name}' that waits for approval is {}, and not {digest}",
                table::printable(&plan.digest)
            );
        }
        if plan.state == PlanState::Computing {
            let version = table::printable(&plan.version);
            bail!("what version {version} would do is still being found out; try again in a moment");
        }
        if plugin.metadata.generation != Some(plan.observed_generation) {
            let (version, why) = (table::printable(&plan.version), in_the_way(plugin));
            bail!(
                "the plan of version {version} is about an earlier state of '{name}'{}; what it would do now is found out as soon as that \
                 version loads: try again in a moment, or see `kubectl describe plugin {name}`",
                table::printable(&why)
            );
        }
        Ok(plan)
    }
}

/// Whether two plans are of one version with one configuration, about one state of the `Plugin`.
fn is_same_plan(one: &PlanStatus, other: &PlanStatus) -> bool {
    let subject = |plan: &PlanStatus| (plan.digest.clone(), plan.config_digest.clone(), plan.observed_generation);
    subject(one) == subject(other)
}

/// Whether somebody has approved what a plan is about.
fn is_approved(plugin: &Plugin, plan: &PlanStatus) -> bool {
    let said = plugin.spec.rollout.as_ref().map(|rollout| (rollout.approved.clone(), rollout.approved_config.clone()));
    said == Some((Some(plan.digest.clone()), plan.config_digest.clone()))
}

/// Why nothing waits, or not with a plan of what is asked for now, as far as the conditions tell it.
fn in_the_way(plugin: &Plugin) -> String {
    let conditions = plugin.status.iter().flat_map(|status| &status.conditions);
    let is_it = |it: &&Condition| it.condition_type == READY && it.status == "False";
    let told = conditions.into_iter().find(is_it);
    told.map(|it| format!(" ({}: {})", it.reason, it.message)).unwrap_or_default()
}

fn print(plugin: &Plugin, plan: &PlanStatus) -> Result<(), PrintError> {
    let at_work = plugin.status.as_ref().and_then(|status| status.version.as_deref());
    let instead = at_work.map(|version| format!(" in the place of {}", table::printable(version))).unwrap_or_default();
    let (version, digest) = (table::printable(&plan.version), table::printable(&plan.digest));
    output::print_line(format_args!("{} {version}{instead} ({digest}):", plugin.name_any()))?;
    match &plan.summary {
        Some(summary) => print_summary(summary),
        None => {
            let why = plan.message.as_deref().unwrap_or_default();
            output::print_line(format_args!("  what it would do could not be found out: {}", table::printable(why)))
        }
    }
}

fn print_summary(summary: &PlanSummary) -> Result<(), PrintError> {
    for line in &summary.lines {
        output::print_line(format_args!("  {}", table::printable(line)))?;
    }
    if summary.more_lines > 0 {
        let more = summary.more_lines;
        output::print_line(format_args!("  and {more} more lines; `pilothouse plan FILE.wasm` prints all"))?;
    }
    let PlannedObjects { changed, unchanged, in_error, in_error_today, left_alone, pinned, deleting, not_asked } =
        summary.objects;
    output::print_line(format_args!(
        "objects: {changed} changed, {unchanged} unchanged, {in_error} in error ({in_error_today} of them as today), {pinned} pinned, \
         {left_alone} left alone, {deleting} being deleted, {not_asked} not asked about"
    ))?;
    if let Some(LeftBehind { api_version, kind, objects }) = &summary.left_behind {
        let kind = format!("{kind} ({api_version})");
        let kind = table::printable(&kind);
        output::print_line(format_args!(
            "left behind: {objects} objects of kind {kind}: nobody reconciles them any more, and they and their children stay as they are"
        ))?;
    }
    let PlannedChildren { created, changed, recreated, deleted, held_back } = summary.children;
    output::print_line(format_args!(
        "children: {created} created, {changed} changed, {recreated} created anew, {deleted} deleted, {held_back} held back"
    ))
}
