//! `pilothouse render`: prints what a plugin returns for an object, without a cluster. The response passes the same pure stages as in
//! the host.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use pilothouse_controller::{
    object::describe,
    pipeline::{
        check::{Desired, DesiredChild},
        conditions::status_word,
        plan::diff::in_words,
    },
};
use pilothouse_engine::contract::Verdict;
use pilothouse_offline::{Answer, Inputs, NoAnswer, reconcile};
use serde_json::json;

use crate::{cache_dir::CacheDir, config_file::read_config, logging::Logging, offline, output, yaml};

/// Print the children that a plugin returns for an object, as YAML, without a cluster.
///
/// The plugin runs under the host's limits, and its response passes the host's own checks. Standard error shows
/// the verdict, the conditions, and what the host would do with the children given by --children.
#[derive(Args)]
pub struct Render {
    /// The plugin.
    plugin: PathBuf,
    /// YAML or JSON file with the object; - for standard input.
    object: PathBuf,
    /// YAML or JSON file with the object's live children.
    #[arg(long, value_name = "FILE")]
    children: Option<PathBuf>,
    /// YAML or JSON file with the objects that the plugin can look up.
    #[arg(long, value_name = "FILE")]
    lookups: Option<PathBuf>,
    /// YAML or JSON file with the plugin's configuration, or with a Plugin that has it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also print the status that the plugin returns, as the last document.
    #[arg(long)]
    status: bool,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Render {
    /// Runs the command.
    ///
    /// # Errors
    /// If the input is not valid, the plugin fails, or the host would refuse its response.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.render())
    }

    async fn render(&self) -> anyhow::Result<()> {
        let config = self.config.as_deref().map(read_config).transpose()?;
        let plugin = offline::load_configured(&self.plugin, &self.cache_dir, config.as_ref()).await?;
        let read = |path: &Option<PathBuf>| path.as_deref().map(yaml::read).transpose();
        let mut documents = yaml::read(&self.object)?;
        let (Some(object), true) = (documents.pop(), documents.is_empty()) else {
            bail!("'{}' has {} objects; render takes one", self.object.display(), documents.len());
        };
        let inputs = Inputs {
            object,
            children: read(&self.children)?.unwrap_or_default(),
            lookups: read(&self.lookups)?.unwrap_or_default(),
            config: config.unwrap_or_default(),
            now: jiff::Timestamp::now(),
        };
        let round = reconcile(&plugin, &inputs).await.with_context(|| format!("'{}'", self.object.display()))?;
        for denied in &round.recorded.denied {
            eprintln!("lookup: denied: {}", denied.why);
        }
        let answer = round.answer.map_err(|no_answer| match no_answer {
            NoAnswer::Failed(_) => anyhow!("{}: {no_answer}", no_answer.reason()),
            NoAnswer::Refused(refusal) => refusal.into(),
        })?;
        print_verdict(&answer.desired);
        if answer.children.is_some() {
            print_plan(&answer);
        }
        self.print(&answer.desired, answer.children.as_deref().unwrap_or_default())
    }

    fn print(&self, desired: &Desired, children: &[DesiredChild]) -> anyhow::Result<()> {
        let status = desired.status.clone().filter(|_| self.status).map(|status| json!({"status": status}));
        let bodies = children.iter().map(|child| child.body.clone()).chain(status);
        for body in bodies {
            output::print(format_args!("---\n{}", yaml::print(&body)?))?;
        }
        Ok(())
    }
}

/// Prints the verdict, the conditions and the Events to standard error.
fn print_verdict(desired: &Desired) {
    match &desired.verdict {
        Verdict::Done => eprintln!("verdict: done"),
        Verdict::Wait(waiting) => {
            eprintln!("verdict: wait {} s: {}: {}", waiting.seconds, waiting.reason, waiting.message);
        }
        Verdict::Retry(why) => eprintln!("verdict: retry: {why}"),
        Verdict::Invalid(why) => eprintln!("verdict: invalid: {why}"),
    }
    for condition in &desired.conditions {
        let status = status_word(condition.status);
        eprintln!("condition: {}={status} {}: {}", condition.condition_type, condition.reason, condition.message);
    }
    for event in &desired.events {
        eprintln!("event: {}: {}", event.reason, event.message);
    }
}

/// Prints what the host would do with the live children, as far as one object shows it.
fn print_plan(answer: &Answer) {
    let plan = &answer.plan;
    for write in &plan.writes {
        let (finding, fields) = (write.cause.finding(&write.child.kind.kind), in_words(write.cause.differences()));
        eprintln!("plan: {finding} ({}) {fields}", write.cause);
    }
    if let Some(why) = answer.held_back() {
        return eprintln!("plan: hold back {} deletes: the plugin {why}", plan.deletes.len());
    }
    for delete in &plan.deletes {
        eprintln!("plan: delete {} ({})", describe(&delete.kind, &delete.live.name), delete.cause);
    }
    for waiting in &plan.waiting {
        eprintln!("plan: wait: {waiting}");
    }
}
